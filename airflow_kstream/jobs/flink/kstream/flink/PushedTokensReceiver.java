package kstream.flink;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.security.token.DelegationTokenReceiver;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Uses what was pushed, in the JobManager and in each TaskManager. It never throws: the other receivers come after. */
public final class PushedTokensReceiver implements DelegationTokenReceiver {
    private static final Logger LOG = LoggerFactory.getLogger(PushedTokensReceiver.class);

    @Override
    public String serviceName() {
        return PushedTokens.NAME;
    }

    @Override
    public void init(Configuration conf) {}

    @Override
    public void onNewTokensObtained(byte[] tokens) {
        if (tokens.length == 0) {
            return;
        }
        try {
            Credentials fresh = new Credentials();
            fresh.readTokenStorageStream(new DataInputStream(new ByteArrayInputStream(tokens)));
            UserGroupInformation.getCurrentUser().addCredentials(fresh);
        } catch (Throwable e) {
            LOG.warn("kstream: this process does not use the tokens that were pushed", e);
        }
    }
}
