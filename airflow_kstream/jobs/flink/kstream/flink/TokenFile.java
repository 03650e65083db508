package kstream.flink;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.security.token.TokenIdentifier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The token file of the JobManager's container, $HADOOP_TOKEN_FILE_LOCATION.
 *
 * <p>Flink reads it for each new TaskManager's container (org.apache.flink.yarn.Utils) and never writes it: a node that
 * has not run the application before could not fetch its files once the tokens of the submission are dead.
 */
final class TokenFile {
    private static final Logger LOG = LoggerFactory.getLogger(TokenFile.class);

    private final File file;
    /** When it was last rewritten here, empty if never. */
    private String rewritten = "";

    TokenFile(String path) {
        file = new File(path);
    }

    /** Brings the file up to what the process holds, and returns whether that changed it. */
    boolean keep(Credentials held) throws IOException {
        Credentials old = content();
        Credentials now = Tokens.merged(old, held);
        if (isSame(old, now)) {
            return false;
        }
        Path draft = new File(file.getPath() + ".kstream").toPath();
        Files.deleteIfExists(draft);
        Files.createFile(draft, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        Files.write(draft, Tokens.written(now));
        Files.move(draft, file.toPath(), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        rewritten = Json.now();
        LOG.info("kstream: new TaskManagers start with fresh tokens from now on");
        return true;
    }

    String rewritten() {
        return rewritten;
    }

    /** Says which tokens the file holds. */
    List<Map<String, Object>> tokens() throws IOException {
        List<Map<String, Object>> described = new ArrayList<>();
        for (Token<? extends TokenIdentifier> token : content().getAllTokens()) {
            described.add(Tokens.described(token));
        }
        return described;
    }

    private Credentials content() throws IOException {
        return Credentials.readTokenStorageFile(file, new org.apache.hadoop.conf.Configuration(false));
    }

    private static boolean isSame(Credentials one, Credentials other) throws IOException {
        if (one.numberOfTokens() != other.numberOfTokens()) {
            return false;
        }
        return Tokens.entries(one).stream()
                .allMatch(each -> isSame(each.getValue(), other.getToken(each.getKey())));
    }

    private static boolean isSame(Token<?> one, Token<?> other) {
        return other != null && Arrays.equals(one.getIdentifier(), other.getIdentifier());
    }
}
