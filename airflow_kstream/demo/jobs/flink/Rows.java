package kstream.demo;

import java.util.Properties;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;

/**
 * Writes each row once, as a line of a file that a checkpoint has completed: `rate N FOLDER` counts from 0, N rows a
 * second, and `kafka BROKERS TOPIC FOLDER` reads the topic from its beginning.
 */
public final class Rows {
    public static void main(String[] words) throws Exception {
        StreamExecutionEnvironment job = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<String> rows = words[0].equals("kafka") ? topic(job, words[1], words[2]) : counted(job, words[1]);
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

    private static DataStream<String> topic(StreamExecutionEnvironment job, String brokers, String topic) {
        Properties login = new Properties();
        login.setProperty("security.protocol", "SASL_PLAINTEXT");
        login.setProperty("sasl.mechanism", "GSSAPI");
        login.setProperty("sasl.kerberos.service.name", "kafka");
        KafkaSource<String> source = KafkaSource.<String>builder()
                .setBootstrapServers(brokers)
                .setTopics(topic)
                .setGroupId("rows")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setProperties(login)
                .setValueOnlyDeserializer(new SimpleStringSchema())
                .build();
        return job.fromSource(source, WatermarkStrategy.noWatermarks(), topic).uid("source");
    }
}
