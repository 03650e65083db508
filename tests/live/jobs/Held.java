package kstream.tests;

import java.io.IOException;
import java.net.URI;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.core.fs.FSDataOutputStream;
import org.apache.flink.core.fs.FileSystem;
import org.apache.flink.core.fs.FileSystem.WriteMode;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;

/**
 * `SECONDS FOLDER` counts from 0 into FOLDER as the demonstration's job does, and fails twice: after ten seconds, and
 * so many seconds later. Its first attempt writes a further part file, whose close is interrupted, as a cancelled
 * task's is: nobody completes the file, and the TaskManager's client, which the next attempts share, keeps its lease.
 */
public final class Held extends RichMapFunction<String, String> {
    private final String file;
    private final long[] failsAfter;
    private transient FSDataOutputStream out;
    private transient long end;

    private Held(String file, long seconds) {
        this.file = file;
        failsAfter = new long[] {10, seconds};
    }

    public static void main(String[] words) throws Exception {
        StreamExecutionEnvironment job = StreamExecutionEnvironment.getExecutionEnvironment();
        FileSink<String> files = FileSink.forRowFormat(new Path(words[1]), new SimpleStringEncoder<String>())
                .withRollingPolicy(OnCheckpointRollingPolicy.build())
                .build();
        DataGeneratorSource<String> source = new DataGeneratorSource<>(
                number -> Long.toString(number), Long.MAX_VALUE, RateLimiterStrategy.perSecond(20), Types.STRING);
        job.fromSource(source, WatermarkStrategy.noWatermarks(), "counted").uid("source")
                .map(new Held(words[1] + "/.part-held-0.inprogress.held", Long.parseLong(words[0]))).uid("held")
                .sinkTo(files).name("files").uid("files");
        job.execute("held");
    }

    @Override
    public void open(OpenContext context) throws Exception {
        int attempt = getRuntimeContext().getTaskInfo().getAttemptNumber();
        end = attempt < failsAfter.length ? System.currentTimeMillis() + 1000 * failsAfter[attempt] : Long.MAX_VALUE;
        if (attempt == 0) {
            // With the sink's own client, and not closed behind our back at the task's end.
            out = FileSystem.getUnguardedFileSystem(URI.create(file)).create(new Path(file), WriteMode.NO_OVERWRITE);
        }
    }

    @Override
    public String map(String row) throws Exception {
        if (out != null) {
            out.write((row + "\n").getBytes());
            out.flush();
        }
        if (System.currentTimeMillis() > end) {
            throw new IOException("as with a disk that fails");
        }
        return row;
    }

    @Override
    public void close() throws Exception {
        if (out == null) {
            return;
        }
        Thread.currentThread().interrupt();
        try {
            out.close();
        } finally {
            Thread.interrupted();
        }
    }
}
