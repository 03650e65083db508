package kstream.flink;

import java.util.Optional;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.security.token.DelegationTokenProvider;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * By this Flink finds the jar: a provider of delegation tokens that makes none, but hands on those that are pushed.
 *
 * <p>Flink starts it in the JobManager, and in a client that has the jar, where it does nothing. A job with a keytab is
 * asked for no rounds: all providers would run in them, and Flink's own makes a token each time. No method throws: Flink
 * would stop all rounds for an hour.
 */
public final class PushedTokens implements DelegationTokenProvider {
    static final String NAME = "kstream";
    private static final Logger LOG = LoggerFactory.getLogger(PushedTokens.class);
    private static Agent agent;

    private Settings settings;

    @Override
    public String serviceName() {
        return NAME;
    }

    @Override
    public void init(Configuration conf) {
        try {
            // Flink sets it for the JobManager's container alone.
            String application = System.getenv("_APP_ID");
            if (application == null || System.getenv("CONTAINER_ID") == null) {
                return;
            }
            settings = Settings.of(conf, application);
            if (settings != null) {
                begin(settings);
            }
        } catch (Throwable e) {
            settings = null;
            LOG.warn("kstream: this job takes no part in the contract with its supervisor", e);
        }
    }

    private static synchronized void begin(Settings settings) throws Exception {
        if (agent == null) {
            agent = new Agent(settings, UserGroupInformation.getCurrentUser(),
                    System.getenv(UserGroupInformation.HADOOP_TOKEN_FILE_LOCATION));
            agent.begin();
        }
    }

    private static synchronized Credentials offered() {
        return agent == null ? new Credentials() : agent.offered();
    }

    @Override
    public boolean delegationTokensRequired() {
        return settings != null && settings.takesTokens;
    }

    @Override
    public ObtainedDelegationTokens obtainDelegationTokens() {
        byte[] tokens = new byte[0];
        try {
            tokens = Tokens.written(offered());
        } catch (Throwable e) {
            LOG.warn("kstream: no tokens in this round", e);
        }
        return new ObtainedDelegationTokens(tokens, Optional.of(System.currentTimeMillis() + settings.roundMillis));
    }
}
