package kstream.flink;

import java.io.Closeable;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.Collections;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.function.Predicate;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.MissingNode;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.io.IOUtils;
import org.apache.hadoop.security.AccessControlException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The stream's folder on HDFS. A file counts by its owner, as `kstream_driver.py` counts it in a driver of Spark's: of
 * this job's own user, of the folder's owner, of its parent's, and of HDFS's superuser, who owns the root. Modes prove
 * nothing, since a folder that nobody else can write in may have been open before.
 *
 * <p>Its FileSystem is its own, since code of the job can close the one in Hadoop's cache, and is opened anew after an
 * error. One thread uses it at a time.
 */
final class StateFolder implements Closeable {
    private static final Logger LOG = LoggerFactory.getLogger(StateFolder.class);
    private static final int LONGEST_WORD = 1 << 20;

    private final Path root;
    private final org.apache.hadoop.conf.Configuration conf;
    private final Set<String> strangers = new HashSet<>();
    private DistributedFileSystem filesystem;
    /** As HDFS names it; unknown until a file was written here. */
    private String user;
    /** What a write that failed has left, at most one file: each look may write again, for as long as HDFS is full. */
    private Path draft;

    StateFolder(String uri, org.apache.hadoop.conf.Configuration hadoop) {
        root = new Path(uri);
        conf = new org.apache.hadoop.conf.Configuration(hadoop);
        // It also writes while the JVM ends.
        conf.setBoolean("fs.automatic.close", false);
    }

    /** What is asked of HDFS. */
    interface Act<T> {
        T with(DistributedFileSystem filesystem) throws IOException;
    }

    synchronized <T> T ask(Act<T> act) throws IOException {
        if (filesystem == null) {
            filesystem = opened();
        }
        try {
            return act.with(filesystem);
        } catch (FileNotFoundException e) {
            throw e;
        } catch (IOException | RuntimeException e) {
            close();
            throw e;
        }
    }

    @Override
    public synchronized void close() {
        IOUtils.closeStream(filesystem);
        filesystem = null;
    }

    private DistributedFileSystem opened() throws IOException {
        FileSystem opened = FileSystem.newInstance(root.toUri(), conf);
        if (opened instanceof DistributedFileSystem) {
            return (DistributedFileSystem) opened;
        }
        opened.close();
        throw new IOException(root + " is not on HDFS");
    }

    /** Returns the files that matter, of those alone whose owners may speak to this job. */
    Map<String, FileStatus> files(Predicate<String> matters) throws IOException {
        return ask(hdfs -> {
            Map<String, FileStatus> found = new TreeMap<>();
            Set<String> owners = new HashSet<>();
            for (FileStatus each : hdfs.listStatus(root)) {
                if (matters.test(each.getPath().getName())) {
                    found.put(each.getPath().getName(), each);
                    owners.add(each.getOwner());
                }
            }
            Set<String> believed = believed(hdfs, owners);
            found.values().removeIf(each -> isStrange(each, believed));
            return found;
        });
    }

    private boolean isStrange(FileStatus file, Set<String> believed) {
        if (believed.contains(file.getOwner())) {
            return false;
        }
        if (strangers.add(file.getPath().getName())) {
            LOG.warn("kstream: {} counts for nothing: {} may not speak to this job", file.getPath(), file.getOwner());
        }
        return true;
    }

    private Set<String> believed(DistributedFileSystem hdfs, Set<String> owners) throws IOException {
        Set<String> speakers = new HashSet<>();
        speakers.add(ownUser(hdfs));
        if (!speakers.containsAll(owners)) {
            Path parent = root.getParent();
            for (Path above : new Path[] {root, parent == null ? root : parent, new Path("/")}) {
                speakers.add(hdfs.getFileStatus(above).getOwner());
            }
        }
        return speakers;
    }

    /** Returns this job's user, proven by the owner of a file that it writes: its principal's name may differ. */
    private String ownUser(DistributedFileSystem hdfs) throws IOException {
        if (user == null) {
            write(hdfs, "check", new byte[0]);
            discard(hdfs);
        }
        return user;
    }

    /**
     * Returns a file's content.
     *
     * @throws Refused if it is longer than this, or its owner may not speak to this job
     */
    byte[] read(String name, int longest) throws IOException, Refused {
        Object read = ask(hdfs -> {
            FileStatus status = hdfs.getFileStatus(new Path(root, name));
            if (!believed(hdfs, Collections.singleton(status.getOwner())).contains(status.getOwner())) {
                return name + " is of " + status.getOwner() + ", who may not speak to this job";
            }
            if (status.getLen() > longest) {
                return name + " has " + status.getLen() + " bytes; " + longest + " are allowed";
            }
            byte[] content = new byte[(int) status.getLen()];
            try (InputStream in = hdfs.open(status.getPath())) {
                IOUtils.readFully(in, content, 0, content.length);
            }
            return content;
        });
        if (read instanceof String) {
            throw new Refused((String) read);
        }
        return (byte[]) read;
    }

    /** Returns what a file says as JSON; a missing node if that is none, no file, or none that this job may read. */
    JsonNode said(String name) throws IOException {
        try {
            return Json.read(read(name, LONGEST_WORD));
        } catch (Refused | FileNotFoundException | AccessControlException e) {
            return MissingNode.getInstance();
        }
    }

    /** Deletes a file, past any trash, and returns whether there was one. */
    boolean delete(String name) throws IOException {
        return ask(hdfs -> hdfs.delete(new Path(root, name), false));
    }

    /**
     * Writes or replaces a file, in one step for who reads it. A stranger's file that can't be replaced stays, with a
     * warning: nobody who looks at owners believes it.
     */
    void put(String name, Map<String, Object> fields) throws IOException {
        byte[] content = Json.written(fields);
        ask(hdfs -> {
            write(hdfs, name, content);
            Path place = new Path(root, name);
            try {
                hdfs.rename(draft, place, Options.Rename.OVERWRITE);
                draft = null;
            } catch (IOException e) {
                String owner = hdfs.exists(place) ? hdfs.getFileStatus(place).getOwner() : user;
                if (owner.equals(user)) {
                    throw e;
                }
                LOG.warn("kstream: {} is not written: {} occupies its name", place, owner);
                discard(hdfs);
            }
            return null;
        });
    }

    private void write(DistributedFileSystem hdfs, String name, byte[] content) throws IOException {
        discard(hdfs);
        draft = new Path(root, "." + name + "." + UUID.randomUUID() + ".tmp");
        try (OutputStream out = hdfs.create(draft, false)) {
            out.write(content);
        }
        String owner = hdfs.getFileStatus(draft).getOwner();
        // Whatever the umask and the folder's default ACL. HDFS refuses it for a file that somebody else put there.
        hdfs.setPermission(draft, new FsPermission((short) 0644));
        user = owner;
    }

    private void discard(DistributedFileSystem hdfs) throws IOException {
        if (draft == null) {
            return;
        }
        try {
            hdfs.delete(draft, false);
        } catch (AccessControlException e) {
            LOG.debug("kstream: somebody else has put a file there, which stays", e);
        }
        draft = null;
    }
}
