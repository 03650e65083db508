package kstream.flink;

import java.io.IOException;
import java.net.URI;
import java.security.PrivilegedExceptionAction;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.security.token.TokenIdentifier;

/** Uses an HDFS token once, in a login that has no other; those of other servers are not tried. */
final class Trial {
    private static final String HDFS = "HDFS_DELEGATION_TOKEN";
    // Before the name of several NameNodes' filesystem, in the service of its token.
    private static final String PAIR = "ha-hdfs:";
    // The next look tries again: a trial that waits for a lost server would keep everything else waiting.
    private static final String[][] BRIEF = {
        {"dfs.client.failover.max.attempts", "3"},
        {"dfs.client.retry.max.attempts", "2"},
        {"dfs.client.retry.policy.enabled", "false"},
        {"ipc.client.connect.max.retries", "1"},
        {"ipc.client.connect.max.retries.on.timeouts", "1"},
        {"ipc.client.connect.timeout", "5000"},
        {"ipc.client.rpc-timeout.ms", "10000"},
    };

    private Trial() {}

    /**
     * Asks the token's NameNode what it tells every login: that needs no permission.
     *
     * @throws Refused if the NameNode refuses the token
     * @throws IOException if anything else fails, which says nothing about the token
     */
    static void of(Token<? extends TokenIdentifier> token, Configuration hadoop)
            throws Refused, IOException, InterruptedException {
        if (!token.getKind().toString().equals(HDFS)) {
            return;
        }
        String service = token.getService().toString();
        String uri = "hdfs://" + (service.startsWith(PAIR) ? service.substring(PAIR.length()) : service);
        Configuration conf = new Configuration(hadoop);
        for (String[] each : BRIEF) {
            conf.set(each[0], each[1]);
        }
        UserGroupInformation login = UserGroupInformation.createRemoteUser("kstream-trial");
        login.addToken(token);
        try {
            login.doAs((PrivilegedExceptionAction<Void>) () -> {
                try (FileSystem filesystem = FileSystem.newInstance(URI.create(uri), conf)) {
                    filesystem.getServerDefaults(new Path("/"));
                }
                return null;
            });
        } catch (IOException e) {
            if (Brief.refusesToken(e)) {
                throw new Refused("the NameNode does not take the token for " + service + ": " + Brief.of(e));
            }
            throw e;
        } catch (RuntimeException e) {
            // As of a filesystem that this host's Hadoop configuration does not know.
            throw new IOException("the token for " + service + " can't be tried: " + Brief.of(e), e);
        }
    }
}
