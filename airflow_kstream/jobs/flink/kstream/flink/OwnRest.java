package kstream.flink;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.Proxy;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/**
 * The REST server of this JobManager. Nothing tells its port inside the process, so it is looked for among the sockets
 * on which this very process listens: no other process can pass for it.
 */
final class OwnRest {
    private static final int CONNECT_MILLIS = 2_000;
    private static final int ANSWER_MILLIS = 30_000;
    /** For a port that may be of something else, which never answers. */
    private static final int PROBE_MILLIS = 5_000;
    private static final int LONGEST_ANSWER = 1 << 20;
    private static final int LINES_WITH_THE_PORT = 5_000;
    private static final Pattern SOCKET = Pattern.compile("socket:\\[(\\d+)\\]");
    private static final Pattern LOGGED = Pattern.compile("Rest endpoint listening at \\S+:(\\d+)");
    private static final String LISTENS = "0A";

    private final String job;
    private String base;

    OwnRest(String job) {
        this.job = job;
    }

    /** An answer: its status, and its body as JSON. */
    static final class Answer {
        final int status;
        final JsonNode body;

        Answer(int status, JsonNode body) {
            this.status = status;
            this.body = body;
        }
    }

    Answer get(String path) throws IOException {
        return ask("GET", found() + path, null, ANSWER_MILLIS);
    }

    Answer post(String path, byte[] body) throws IOException {
        return ask("POST", found() + path, body, ANSWER_MILLIS);
    }

    /** The path of the one job. */
    String job() {
        return "/jobs/" + job;
    }

    /**
     * Returns the ids of the TaskManagers that are registered now.
     *
     * @throws IOException if the server can't be asked
     */
    List<String> taskManagers() throws IOException {
        List<String> ids = new ArrayList<>();
        get("/taskmanagers").body.path("taskmanagers").forEach(each -> ids.add(each.path("id").asText()));
        return ids;
    }

    private synchronized String found() throws IOException {
        if (base == null) {
            for (String address : likely(listening())) {
                if (knowsTheJob("http://" + address)) {
                    base = "http://" + address;
                    break;
                }
            }
        }
        if (base == null) {
            throw new IOException("the JobManager's REST server was not found, or does not know job " + job + " yet");
        }
        return base;
    }

    private boolean knowsTheJob(String address) {
        try {
            return ask("GET", address + job(), null, PROBE_MILLIS).body.path("jid").asText().equals(job);
        } catch (IOException | RuntimeException e) {
            return false;
        }
    }

    /** Returns the one whose port Flink has logged, else all: its other ports log an error at a request of HTTP. */
    private static List<String> likely(List<String> addresses) {
        String logged = ":" + loggedPort();
        for (String address : addresses) {
            if (address.endsWith(logged)) {
                return Collections.singletonList(address);
            }
        }
        return addresses;
    }

    private static String loggedPort() {
        String log = System.getProperty("log.file", "");
        try (BufferedReader lines = new BufferedReader(
                new InputStreamReader(new FileInputStream(log), StandardCharsets.UTF_8))) {
            String line = lines.readLine();
            for (int at = 0; line != null && at < LINES_WITH_THE_PORT; at++, line = lines.readLine()) {
                Matcher told = LOGGED.matcher(line);
                if (told.find()) {
                    return told.group(1);
                }
            }
        } catch (IOException e) {
            // A site may log to anywhere; then each port is asked.
        }
        return "";
    }

    /** Returns the addresses on which this process listens. */
    static List<String> listening() throws IOException {
        Set<String> inodes = new HashSet<>();
        try (DirectoryStream<Path> open = Files.newDirectoryStream(Paths.get("/proc/self/fd"))) {
            for (Path each : open) {
                Matcher socket = SOCKET.matcher(target(each));
                if (socket.matches()) {
                    inodes.add(socket.group(1));
                }
            }
        }
        List<String> addresses = new ArrayList<>();
        for (String table : new String[] {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
            if (!Files.exists(Paths.get(table))) {
                continue;
            }
            for (String line : Files.readAllLines(Paths.get(table))) {
                String[] columns = line.trim().split("\\s+");
                if (columns.length > 9 && columns[3].equals(LISTENS) && inodes.contains(columns[9])) {
                    addresses.add(readable(columns[1]));
                }
            }
        }
        return addresses;
    }

    private static String target(Path link) {
        try {
            return Files.readSymbolicLink(link).toString();
        } catch (IOException e) {
            return ""; // closed meanwhile
        }
    }

    /** Reads an address of /proc/net/tcp: words of four bytes, each with its last byte first, and the port. */
    private static String readable(String hex) throws IOException {
        String[] parts = hex.split(":");
        byte[] bytes = new byte[parts[0].length() / 2];
        for (int at = 0; at < bytes.length; at++) {
            bytes[at ^ 3] = (byte) Integer.parseInt(parts[0].substring(2 * at, 2 * at + 2), 16);
        }
        InetAddress address = InetAddress.getByAddress(bytes);
        String host = address.isAnyLocalAddress() ? "127.0.0.1" : address.getHostAddress();
        return (host.contains(":") ? "[" + host + "]" : host) + ":" + Integer.parseInt(parts[1], 16);
    }

    private static Answer ask(String method, String url, byte[] body, int millis) throws IOException {
        HttpURLConnection connection = (HttpURLConnection) new URL(url).openConnection(Proxy.NO_PROXY);
        connection.setRequestMethod(method);
        connection.setInstanceFollowRedirects(false);
        connection.setConnectTimeout(CONNECT_MILLIS);
        connection.setReadTimeout(millis);
        try {
            if (body != null) {
                connection.setDoOutput(true);
                connection.setRequestProperty("Content-Type", "application/json");
                try (OutputStream out = connection.getOutputStream()) {
                    out.write(body);
                }
            }
            int status = connection.getResponseCode();
            try (InputStream in = status < 400 ? connection.getInputStream() : connection.getErrorStream()) {
                return new Answer(status, Json.read(in == null ? new byte[0] : upTo(in)));
            }
        } finally {
            connection.disconnect();
        }
    }

    private static byte[] upTo(InputStream in) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        byte[] some = new byte[8192];
        for (int got = in.read(some); got > 0; got = in.read(some)) {
            if (bytes.size() + got > LONGEST_ANSWER) {
                throw new IOException("an answer of more than " + LONGEST_ANSWER + " bytes");
            }
            bytes.write(some, 0, got);
        }
        return bytes.toByteArray();
    }
}
