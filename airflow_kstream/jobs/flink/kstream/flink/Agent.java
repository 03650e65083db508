package kstream.flink;

import java.io.IOException;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A generation's part in the contract with its supervisor, in a thread of its JobManager. It looks at the token file of
 * its container and at the stream's folder, again and again, and whatever is wrong with that, the job runs on.
 *
 * <pre>
 * gen-n       claim: above its own number it ends this JobManager      written by the supervisor
 * started-n   this job runs and will honour stop-n                     written here
 * stop-n      asks it to stop with a savepoint                         written by the supervisor
 * resume-n    what became of that, and where the savepoint lies        written here
 * kept-n      which tokens new TaskManagers start with                 written here
 * push-n-*    announces tokens, see Pushes                             written by the supervisor
 * </pre>
 *
 * A claim and a stop marker also have to say their generation, since a file that is moved keeps its owner. `stopped-n`
 * is no business of this process: it ends before the application does.
 */
final class Agent implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(Agent.class);
    private static final Pattern CLAIM = Pattern.compile("gen-(\\d{6,9})");
    private static final Pattern OF_A_PUSH = Pattern.compile("(?:push|applied|refused)-(\\d{6,9})-.+");
    private static final long CANCEL_MILLIS = 15_000;
    /** EX_SOFTWARE of sysexits.h, which no other end of a JobManager has. */
    private static final int SUPERSEDED = 70;

    private final Settings settings;
    private final UserGroupInformation user;
    private final StateFolder folder;
    private final OwnRest rest;
    private final Pushes pushes;
    /** Null where this process was given no token file. */
    private final TokenFile file;

    private final Map<String, String> troubles = new HashMap<>();
    private final Set<String> ignored = new HashSet<>();
    /** The last try to stop, and when its marker was written: a supervisor that tries again writes it again. */
    private Stop stop;

    private long obeyed;
    private boolean started;
    private List<Map<String, Object>> told;
    private String toldTrouble = "";
    private long toldAt;

    Agent(Settings settings, UserGroupInformation user, String tokenFile) {
        this.settings = settings;
        this.user = user;
        folder = new StateFolder(settings.folder, settings.hadoop);
        rest = new OwnRest(settings.job);
        pushes = new Pushes(settings, folder, rest);
        file = tokenFile == null ? null : new TokenFile(tokenFile);
    }

    void begin() {
        Thread thread = new Thread(this, "kstream");
        thread.setDaemon(true);
        thread.start();
    }

    /** What each of Flink's rounds hands to all processes. */
    Credentials offered() {
        return pushes.offered();
    }

    @Override
    public void run() {
        try {
            while (true) {
                part("look", () -> user.doAs((PrivilegedExceptionAction<Void>) () -> {
                    look();
                    return null;
                }));
                Thread.sleep(settings.lookEvery.toMillis());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private interface Part {
        void run() throws Exception;
    }

    private void look() throws InterruptedException {
        // The file first: it is a local one, and needs no server.
        part("keep the token file", () -> {
            if (file != null) {
                file.keep(UserGroupInformation.getCurrentUser().getCredentials());
            }
        });
        Map<String, FileStatus> files = new HashMap<>();
        part("read the stream's folder", () -> files.putAll(folder.files(this::matters)));
        part("obey claims", () -> obeyClaims(files.keySet()));
        part("say that it runs", this::sayStarted);
        part("obey the stop marker", () -> obeyStop(files));
        part("confirm the token file", this::confirm);
        if (settings.takesTokens) {
            part("take tokens", () -> pushes.look(files.keySet()));
        }
    }

    /** Does a part of a look; what is wrong with it is logged once, until it is over, and keeps no other part. */
    private void part(String what, Part part) throws InterruptedException {
        try {
            part.run();
            troubles.remove(what);
        } catch (InterruptedException e) {
            throw e;
        } catch (Throwable e) {
            tell(what, e);
        }
    }

    private void tell(String what, Throwable e) {
        String before = troubles.put(what, Brief.of(e));
        if (before == null || !before.startsWith(e.getClass().getSimpleName())) {
            LOG.warn("kstream: can't {} now", what, e);
        }
    }

    private boolean matters(String name) {
        if (name.equals(settings.named("stop")) || claimed(name) > settings.generation) {
            return true;
        }
        Matcher push = OF_A_PUSH.matcher(name);
        return push.matches() && Integer.parseInt(push.group(1)) == settings.generation;
    }

    private static int claimed(String name) {
        Matcher claim = CLAIM.matcher(name);
        return claim.matches() ? Integer.parseInt(claim.group(1)) : 0;
    }

    /** Returns whether the file is about the generation in its name. */
    private boolean saysSo(String name, int generation) throws IOException {
        JsonNode said = folder.said(name).path("generation");
        if (said.isInt() && said.asInt() == generation) {
            return true;
        }
        if (ignored.add(name)) {
            LOG.warn("kstream: {} ends nothing: it does not say its generation", name);
        }
        return false;
    }

    private void obeyClaims(Set<String> names) throws IOException, InterruptedException {
        for (String name : names) {
            if (claimed(name) > settings.generation && saysSo(name, claimed(name))) {
                end(claimed(name));
            }
        }
    }

    /**
     * Ends this JobManager: another generation may write now. Its tasks are cancelled where that leaves the checkpoints,
     * from which the other one started; the JVM ends in any case, whose TaskManagers can complete no checkpoint then.
     */
    private void end(int newest) throws InterruptedException {
        LOG.error("kstream: stream {}: generation {} was claimed, this job is of {} and ends", settings.stream, newest,
                settings.generation);
        try {
            JsonNode survive = settings.restHasTls
                    ? null
                    : rest.get(rest.job() + "/checkpoints/config").body.path("externalization");
            boolean kept = survive != null && survive.path("enabled").asBoolean()
                    && !survive.path("delete_on_cancellation").asBoolean(true);
            if (kept) {
                rest.get(rest.job() + "/yarn-cancel");
                Thread.sleep(CANCEL_MILLIS);
            }
        } catch (IOException | RuntimeException e) {
            LOG.warn("kstream: its tasks were not cancelled before", e);
        }
        Runtime.getRuntime().halt(SUPERSEDED);
    }

    private void sayStarted() throws IOException {
        if (!started) {
            folder.put(settings.named("started"), settings.stamp());
            started = true;
        }
    }

    private void obeyStop(Map<String, FileStatus> files) throws IOException {
        FileStatus marker = files.get(settings.named("stop"));
        if (marker == null || marker.getModificationTime() == obeyed || stop != null && !stop.isOver()) {
            return;
        }
        if (saysSo(settings.named("stop"), settings.generation)) {
            obeyed = marker.getModificationTime();
            stop = new Stop(settings, folder, rest, obeyed);
            stop.begin();
        }
    }

    /** Says which tokens new TaskManagers start with: when that changes, and from time to time that it still holds. */
    private void confirm() throws IOException {
        List<Map<String, Object>> tokens = file == null ? new ArrayList<>() : file.tokens();
        tokens.forEach(token -> token.put("until", pushes.until(token)));
        String trouble = file == null
                ? "this process was given no " + UserGroupInformation.HADOOP_TOKEN_FILE_LOCATION
                : troubles.getOrDefault("keep the token file", "");
        boolean isDue = System.nanoTime() - toldAt >= settings.confirmEvery.toNanos();
        if (told != null && !isDue && tokens.equals(told) && trouble.equals(toldTrouble)) {
            return;
        }
        Map<String, Object> said = settings.stamp();
        said.put("every_seconds", settings.confirmEvery.getSeconds());
        said.put("rewritten", file == null ? "" : file.rewritten());
        said.put("trouble", trouble);
        said.put("tokens", tokens);
        folder.put(settings.named("kept"), said);
        told = tokens;
        toldTrouble = trouble;
        toldAt = System.nanoTime();
    }
}
