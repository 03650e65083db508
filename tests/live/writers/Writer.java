import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.client.HdfsDataOutputStream;
import org.apache.hadoop.hdfs.client.HdfsDataOutputStream.SyncFlag;
import org.apache.hadoop.ipc.RemoteException;

/**
 * A client of HDFS that does to its files what standard input says, and answers on standard output when it is done.
 *
 * <p>A line is a verb and its arguments, URL-encoded, with tabs between; an answer is `done` and a value, or `refused`,
 * the class of the exception and its message. At the end of its input it exits as any client does: Hadoop's shutdown
 * hook closes its files. Byte i of every file is i modulo 251.
 */
public final class Writer {
    private interface Verb {
        Object run(String path, String argument) throws IOException;
    }

    private static final int PERIOD = 251;
    private static final int BUFFER = 4096;

    private final DistributedFileSystem hdfs;
    private final Map<String, HdfsDataOutputStream> streams = new HashMap<>();
    private final List<HdfsDataOutputStream> abandoned = new ArrayList<>();
    private final ScheduledExecutorService background = Executors.newSingleThreadScheduledExecutor(Writer::daemon);
    private final Map<String, Verb> verbs = Map.ofEntries(
            Map.entry("open", this::open),
            Map.entry("append", this::append),
            Map.entry("write", (path, bytes) -> write(streams.get(path), Integer.parseInt(bytes))),
            Map.entry("hflush", (path, none) -> { streams.get(path).hflush(); return ""; }),
            Map.entry("hsync", (path, none) -> { streams.get(path).hsync(); return ""; }),
            Map.entry("hsync-length", (path, none) -> hsyncLength(streams.get(path))),
            Map.entry("close", (path, none) -> { streams.remove(path).close(); return ""; }),
            Map.entry("abandon", (path, none) -> abandoned.add(streams.remove(path))),
            Map.entry("interrupt-close", this::interruptClose),
            Map.entry("delete", this::delete),
            Map.entry("rename", this::rename),
            Map.entry("grow", (path, millis) -> grow(streams.get(path), Long.parseLong(millis))),
            Map.entry("write-utf", this::writeUtf));

    private Writer(DistributedFileSystem hdfs) {
        this.hdfs = hdfs;
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream answers = System.out;
        // Whatever a library prints must not pass for an answer.
        System.setOut(System.err);
        DistributedFileSystem hdfs = (DistributedFileSystem) FileSystem.get(new Configuration());
        Writer writer = new Writer(hdfs);
        answers.println(done(hdfs.getClient().getClientName()));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            answers.println(writer.answer(line.split("\t")));
        }
        System.exit(0);
    }

    private String answer(String[] words) {
        String[] given = Arrays.stream(words).map(Writer::decoded).toArray(String[]::new);
        try {
            return done(verbs.get(given[0]).run(given[1], given.length > 2 ? given[2] : ""));
        } catch (RemoteException refusal) {
            return refused(refusal.getClassName(), refusal);
        } catch (IOException | RuntimeException refusal) {
            return refused(refusal.getClass().getName(), refusal);
        }
    }

    private static String refused(String kind, Exception refusal) {
        // What follows the first line of a RemoteException is the server's stack.
        String message = String.valueOf(refusal.getMessage()).lines().findFirst().orElse("");
        return "refused\t" + encoded(kind) + "\t" + encoded(message);
    }

    private static String done(Object value) {
        return "done\t" + encoded(value);
    }

    private static String encoded(Object value) {
        return URLEncoder.encode(String.valueOf(value), StandardCharsets.UTF_8);
    }

    private static String decoded(String word) {
        return URLDecoder.decode(word, StandardCharsets.UTF_8);
    }

    private long open(String path, String replicas) throws IOException {
        Path file = new Path(path);
        short count = replicas.isEmpty() ? hdfs.getDefaultReplication(file) : Short.parseShort(replicas);
        return keep(path, hdfs.create(file, false, BUFFER, count, hdfs.getDefaultBlockSize(file)));
    }

    private long append(String path, String none) throws IOException {
        return keep(path, hdfs.append(new Path(path)));
    }

    private long keep(String path, FSDataOutputStream stream) {
        streams.put(path, (HdfsDataOutputStream) stream);
        return stream.getPos();
    }

    private static long write(HdfsDataOutputStream stream, int bytes) throws IOException {
        synchronized (stream) {
            byte[] content = new byte[bytes];
            for (int i = 0; i < bytes; i++) {
                content[i] = (byte) ((stream.getPos() + i) % PERIOD);
            }
            stream.write(content);
            return stream.getPos();
        }
    }

    private static String hsyncLength(HdfsDataOutputStream stream) throws IOException {
        stream.hsync(EnumSet.of(SyncFlag.UPDATE_LENGTH));
        return "";
    }

    /** Closes a stream as a task does that is cancelled meanwhile, and tells whether the NameNode never heard of it. */
    private boolean interruptClose(String path, String none) throws IOException {
        Thread.currentThread().interrupt();
        try {
            streams.remove(path).close();
        } catch (IOException interrupted) {
            // As it should be.
        } finally {
            Thread.interrupted();
        }
        return !hdfs.isFileClosed(new Path(path));
    }

    private boolean delete(String path, String none) throws IOException {
        return hdfs.delete(new Path(path), false);
    }

    private boolean rename(String from, String to) throws IOException {
        if (streams.containsKey(from)) {
            streams.put(to, streams.remove(from));
        }
        return hdfs.rename(new Path(from), new Path(to));
    }

    private String grow(HdfsDataOutputStream stream, long millis) {
        background.scheduleWithFixedDelay(() -> growOnce(stream), 0, millis, TimeUnit.MILLISECONDS);
        return "";
    }

    private static void growOnce(HdfsDataOutputStream stream) {
        try {
            write(stream, PERIOD);
            stream.hflush();
        } catch (IOException closed) {
            // An exception is what ends a scheduled task.
            throw new IllegalStateException(closed);
        }
    }

    private long writeUtf(String path, String text) throws IOException {
        try (FSDataOutputStream stream = hdfs.create(new Path(path), false)) {
            stream.writeUTF(text);
            return stream.getPos();
        }
    }

    private static Thread daemon(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    }
}
