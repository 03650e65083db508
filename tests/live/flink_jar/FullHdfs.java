package kstream.flink;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/** A NameNode that creates files, while no DataNode takes a block, as over a space quota. A real one needs a cluster. */
public final class FullHdfs extends DistributedFileSystem {
    static final Set<Path> FILES = new TreeSet<>();
    static boolean full = true;

    @Override
    public void initialize(URI uri, Configuration conf) {
        setConf(conf);
    }

    @Override
    public FSDataOutputStream create(Path file, boolean overwrite) throws IOException {
        FILES.add(file);
        return new FSDataOutputStream(new OutputStream() {
            @Override
            public void write(int some) throws IOException {
                if (full) {
                    throw new IOException("no DataNode takes a block");
                }
            }
        }, null);
    }

    @Override
    public FileStatus getFileStatus(Path file) throws IOException {
        if (!FILES.contains(file)) {
            throw new FileNotFoundException(file.toString());
        }
        return new FileStatus(0, false, 1, 1, 0, 0, null, "orders", "orders", file);
    }

    @Override
    public void setPermission(Path file, FsPermission permission) {}

    @Override
    public boolean delete(Path file, boolean recursive) {
        return FILES.remove(file);
    }

    @Override
    public void rename(Path from, Path to, Options.Rename... how) {
        FILES.remove(from);
        FILES.add(to);
    }

    @Override
    public void close() {}
}
