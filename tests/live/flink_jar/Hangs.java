package kstream.live;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;

/**
 * Counts rows into files, one line each, chained into one vertex, and does what a file of this host says: `slow` takes
 * seven seconds for a row, and `hang` never ends one.
 */
public final class Hangs {
    public static void main(String[] words) throws Exception {
        StreamExecutionEnvironment job = StreamExecutionEnvironment.getExecutionEnvironment();
        DataGeneratorSource<String> source = new DataGeneratorSource<>(
                number -> Long.toString(number), Long.MAX_VALUE, RateLimiterStrategy.perSecond(20), Types.STRING);
        job.fromSource(source, WatermarkStrategy.noWatermarks(), "counted").uid("source")
                .map(new Waits(words[0])).returns(Types.STRING).name("waits").uid("waits")
                .sinkTo(FileSink.forRowFormat(
                                new org.apache.flink.core.fs.Path(words[1]), new SimpleStringEncoder<String>())
                        .withRollingPolicy(OnCheckpointRollingPolicy.build())
                        .build())
                .name("files").uid("files");
        job.execute("hangs");
    }

    static final class Waits implements MapFunction<String, String> {
        private final String file;

        Waits(String file) {
            this.file = file;
        }

        @Override
        public String map(String row) throws Exception {
            Path asked = Paths.get(file);
            String word = Files.exists(asked) ? new String(Files.readAllBytes(asked)) : "";
            while (word.equals("hang")) {
                Thread.sleep(60_000);
            }
            if (word.equals("slow")) {
                Thread.sleep(7_000);
            }
            return row;
        }
    }
}
