package kstream.flink;

import java.io.IOException;
import java.net.ConnectException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One stop with savepoint, by the JobManager's own REST server, and what became of it in `resume-n`.
 *
 * <p>The savepoint goes to a folder that this job alone has, and whose name was known before the job ran. So nothing is
 * lost if the application ends before its path can be written, or HDFS does not take the answer: a folder in there that
 * has a `_metadata` is the savepoint. A job that goes on after its savepoint is done makes newer checkpoints, and of both
 * the one with the higher number counts.
 */
final class Stop implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(Stop.class);
    private static final long POLL_MILLIS = 200;
    private static final long HOOK_MILLIS = 4_000;
    private static final long START_SECONDS = 60;
    private static final int OK = 200;
    private static final int ACCEPTED = 202;
    private static final String PENDING = "IN_PROGRESS";

    private final Settings settings;
    private final StateFolder folder;
    private final OwnRest rest;
    private final String trigger;
    private volatile boolean over;

    /** Each marker is one try: `marker` is when it was written. */
    Stop(Settings settings, StateFolder folder, OwnRest rest, long marker) {
        this.settings = settings;
        this.folder = folder;
        this.rest = rest;
        byte[] name = (settings.job + "-" + marker).getBytes(StandardCharsets.US_ASCII);
        trigger = UUID.nameUUIDFromBytes(name).toString().replace("-", "");
    }

    /** Begins it, in a thread for which the JVM waits a moment at its end: the answer may just be on its way. */
    void begin() {
        Thread thread = new Thread(this, "kstream-stop");
        thread.setDaemon(true);
        thread.start();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                // Flink halts a JVM whose hooks take five seconds.
                thread.join(HOOK_MILLIS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }));
    }

    @Override
    public void run() {
        try {
            if (settings.restHasTls) {
                tell("failed", "", "security.ssl.rest.enabled is set, and a stop by marker speaks no TLS");
            } else if (settings.savepoints.isEmpty()) {
                tell("failed", "", "execution.checkpointing.savepoint-dir or the job's fixed id is missing");
            } else {
                tell("asked", "", "");
                stop();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (Throwable e) {
            LOG.warn("kstream: the job is not stopped by its marker", e);
            answer("failed", "", Brief.of(e));
        } finally {
            over = true;
        }
    }

    boolean isOver() {
        return over;
    }

    private void stop() throws IOException, InterruptedException {
        LOG.warn("kstream: generation {} found its stop marker and stops with a savepoint", settings.generation);
        Map<String, Object> body = new LinkedHashMap<>();
        body.put("targetDirectory", settings.savepoints);
        body.put("drain", false);
        body.put("formatType", "NATIVE");
        body.put("triggerId", trigger);
        OwnRest.Answer posted = posted(Json.written(body));
        if (posted.status != ACCEPTED) {
            answer("failed", "", refusal(posted));
            return;
        }
        OwnRest.Answer told = awaited();
        if (told == null) {
            // Its server is closed: the application ends.
            String found = found();
            answer(found.isEmpty() ? "failed" : "completed", found, found.isEmpty() ? "the application ended" : "");
            return;
        }
        JsonNode operation = told.body.path("operation");
        String location = operation.path("location").asText("");
        JsonNode cause = operation.path("failure-cause");
        String more = cause.path("class").asText() + " " + cause.path("stack-trace").asText().split("\n", 2)[0];
        String why = told.status == OK ? more : refusal(told);
        answer(location.isEmpty() ? "failed" : "completed", location, location.isEmpty() ? why : "");
    }

    /** A job that has just started may not be known yet. */
    private OwnRest.Answer posted(byte[] body) throws IOException, InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_SECONDS);
        while (true) {
            try {
                return rest.post(rest.job() + "/stop", body);
            } catch (IOException e) {
                if (System.nanoTime() > deadline) {
                    throw e;
                }
            }
            Thread.sleep(POLL_MILLIS);
        }
    }

    /** Waits for the savepoint; null if the JobManager's server ends before it tells of it. */
    private OwnRest.Answer awaited() throws InterruptedException {
        while (true) {
            try {
                OwnRest.Answer answer = rest.get(rest.job() + "/savepoints/" + trigger);
                if (answer.status != OK || !answer.body.path("status").path("id").asText().equals(PENDING)) {
                    return answer;
                }
            } catch (ConnectException e) {
                return null;
            } catch (IOException e) {
                LOG.debug("kstream: no answer on the savepoint", e);
            }
            Thread.sleep(POLL_MILLIS);
        }
    }

    /** Returns the path of this job's newest complete savepoint, empty if there is none. */
    private String found() throws IOException {
        return folder.ask(hdfs -> {
            FileStatus newest = null;
            for (FileStatus each : hdfs.globStatus(new Path(settings.savepoints, "*/_metadata"))) {
                newest = newest == null || each.getModificationTime() > newest.getModificationTime() ? each : newest;
            }
            return newest == null ? "" : newest.getPath().getParent().toString();
        });
    }

    private static String refusal(OwnRest.Answer answer) {
        return "the JobManager answered " + answer.status + " "
                + answer.body.path("errors").path(0).asText("").split("\n", 2)[0];
    }

    private void answer(String state, String savepoint, String why) {
        try {
            tell(state, savepoint, why);
        } catch (IOException e) {
            LOG.warn("kstream: can't write {}: {}", settings.named("resume"), Brief.of(e));
        }
    }

    private void tell(String state, String savepoint, String why) throws IOException {
        Map<String, Object> said = settings.stamp();
        said.put("state", state);
        said.put("job", settings.job);
        said.put("trigger", trigger);
        said.put("target", settings.savepoints);
        said.put("savepoint", savepoint);
        said.put("why", why);
        folder.put(settings.named("resume"), said);
    }
}
