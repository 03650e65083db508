package kstream.flink;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.PipelineOptionsInternal;
import org.apache.flink.configuration.SecurityOptions;
import org.apache.flink.runtime.util.HadoopUtils;

/**
 * What the supervisor tells a generation, in Flink's own configuration.
 *
 * <p>All keys have Flink's prefix for the settings of a delegation token provider. The word "token" in it makes Flink
 * show no value of them, neither in its logs nor in its pages. `model/streams/flink_contract.py` has the same names.
 */
final class Settings {
    static final String PREFIX = "security.delegation.token.provider.kstream.";

    /** The version of the contract, {@value #VERSION}; without it the jar does nothing. */
    static final ConfigOption<String> CONTRACT = text("contract");

    /** The stream's id, which is repeated in whatever is written here. */
    static final ConfigOption<String> STREAM = text("stream");

    /** The number of this submission. */
    static final ConfigOption<Integer> GENERATION =
            ConfigOptions.key(PREFIX + "generation").intType().noDefaultValue();

    /** The stream's folder, an hdfs:// URI. */
    static final ConfigOption<String> STATE = text("state");

    /** Set, to any value, for a job without a keytab that takes the tokens that are pushed to it. */
    static final ConfigOption<String> TOKENS = text("tokens");

    /** How often the token file and the stream's folder are looked at. */
    static final ConfigOption<Duration> LOOK_EVERY = time("look-every", Duration.ofSeconds(5));

    /** How often Flink asks for tokens, if TOKENS is set: what was pushed waits that long. It logs ten lines each time. */
    static final ConfigOption<Duration> ROUND_EVERY = time("round-every", Duration.ofMinutes(1));

    /** How often the keeper confirms that it lives, if nothing changes. */
    static final ConfigOption<Duration> CONFIRM_EVERY = time("confirm-every", Duration.ofMinutes(5));

    static final String VERSION = "1";

    final String stream;
    final int generation;
    final String folder;
    final String application;
    final boolean takesTokens;
    final Duration lookEvery;
    final Duration confirmEvery;
    /** What Flink multiplies with its renewal ratio to get the pause between two rounds. */
    final long roundMillis;

    final org.apache.hadoop.conf.Configuration hadoop;
    /** The id of the one job, empty if it was not fixed before the submission. */
    final String job;
    /** Where this job's savepoints go, empty if there is no place for any. No other job writes there. */
    final String savepoints;

    final boolean restHasTls;

    private Settings(Configuration conf, String application) {
        this.application = application;
        stream = conf.get(STREAM);
        generation = conf.get(GENERATION);
        folder = conf.get(STATE);
        takesTokens = conf.contains(TOKENS);
        lookEvery = conf.get(LOOK_EVERY);
        confirmEvery = conf.get(CONFIRM_EVERY);
        roundMillis = (long) (conf.get(ROUND_EVERY).toMillis()
                / conf.get(SecurityOptions.DELEGATION_TOKENS_RENEWAL_TIME_RATIO));
        hadoop = HadoopUtils.getHadoopConfiguration(conf);
        job = conf.getOptional(PipelineOptionsInternal.PIPELINE_FIXED_JOB_ID).orElse("");
        String all = conf.getOptional(CheckpointingOptions.SAVEPOINT_DIRECTORY).orElse("");
        savepoints = all.isEmpty() || job.isEmpty() ? "" : all.replaceAll("/+$", "") + "/" + job;
        restHasTls = conf.get(SecurityOptions.SSL_REST_ENABLED);
    }

    /**
     * Reads the terms of a generation; null if there are none, as in a job that somebody else submitted.
     *
     * @throws IllegalArgumentException if they are of another version, or incomplete
     */
    static Settings of(Configuration conf, String application) {
        if (!conf.contains(CONTRACT)) {
            return null;
        }
        String version = conf.get(CONTRACT);
        if (!VERSION.equals(version)) {
            throw new IllegalArgumentException(
                    CONTRACT.key() + " is " + version + "; this jar knows " + VERSION + " only");
        }
        for (ConfigOption<?> option : new ConfigOption<?>[] {STREAM, GENERATION, STATE}) {
            if (!conf.contains(option)) {
                throw new IllegalArgumentException(CONTRACT.key() + " is set but " + option.key() + " is not");
            }
        }
        return new Settings(conf, application);
    }

    /** The name of a file of this generation's. */
    String named(String kind) {
        return String.format(Locale.ROOT, "%s-%06d", kind, generation);
    }

    /** What stands in each file that is written here: whose word it is, and since when. */
    Map<String, Object> stamp() {
        Map<String, Object> stamp = new LinkedHashMap<>();
        stamp.put("contract", VERSION);
        stamp.put("stream", stream);
        stamp.put("generation", generation);
        stamp.put("application", application);
        stamp.put("time", Json.now());
        return stamp;
    }

    private static ConfigOption<String> text(String name) {
        return ConfigOptions.key(PREFIX + name).stringType().noDefaultValue();
    }

    private static ConfigOption<Duration> time(String name, Duration usual) {
        return ConfigOptions.key(PREFIX + name).durationType().defaultValue(usual);
    }
}
