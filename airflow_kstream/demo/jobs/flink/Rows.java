package kstream.demo;

import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * Writes each row once, as a line of a file that a checkpoint has completed: `rate N FOLDER` counts from 0, N rows a
 * second, and `kafka BROKERS TOPIC [PRINCIPAL KEYTAB] FOLDER` reads the topic from its beginning. The keytab is a file
 * in the containers' working folders; without one, Flink's own login is Kafka's, too.
 */
public final class Rows {
    public static void main(String[] words) throws Exception {
        StreamExecutionEnvironment job = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<String> rows = words[0].equals("kafka") ? topic(job, words) : counted(job, words[1]);
        FileSink<String> files =
                FileSink.forRowFormat(new Path(words[words.length - 1]), new SimpleStringEncoder<String>())
                        .withRollingPolicy(OnCheckpointRollingPolicy.build())
                        .build();
        rows.sinkTo(files).name("files").uid("files");
        job.execute("rows");
    }

    private static DataStream<String> counted(StreamExecutionEnvironment job, String rate) {
        DataGeneratorSource<String> source = new DataGeneratorSource<>(
                number -> Long.toString(number), Long.MAX_VALUE,
                RateLimiterStrategy.perSecond(Double.parseDouble(rate)), Types.STRING);
        return job.fromSource(source, WatermarkStrategy.noWatermarks(), "counted").uid("source");
    }

    private static DataStream<String> topic(StreamExecutionEnvironment job, String[] words) {
        Properties login = new Properties();
        login.setProperty("security.protocol", "SASL_PLAINTEXT");
        login.setProperty("sasl.mechanism", "GSSAPI");
        login.setProperty("sasl.kerberos.service.name", "kafka");
        if (words.length > 4) {
            login.setProperty("sasl.jaas.config", String.format(
                    "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
                            + " useTicketCache=false principal=\"%s\" keyTab=\"%s\";", words[3], words[4]));
        }
        KafkaSource<String> source = KafkaSource.<String>builder()
                .setBootstrapServers(words[1])
                .setTopics(words[2])
                .setGroupId("rows")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setProperties(login)
                .setDeserializer(new Line())
                .build();
        return job.fromSource(source, WatermarkStrategy.noWatermarks(), words[2]).uid("source");
    }

    /** A record as a line: its key, its length in bytes, its partition and its offset, each before a tab; its text. */
    private static final class Line implements KafkaRecordDeserializationSchema<String> {
        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<String> lines) {
            String key = record.key() == null ? "" : new String(record.key(), StandardCharsets.UTF_8);
            String text = new String(record.value(), StandardCharsets.UTF_8);
            lines.collect(key + "\t" + record.value().length + "\t" + record.partition() + "\t" + record.offset()
                    + "\t" + text);
        }

        @Override
        public TypeInformation<String> getProducedType() {
            return Types.STRING;
        }
    }
}
