package kstream.flink;

import com.sun.net.httpserver.HttpServer;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Collections;
import java.util.Locale;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.security.token.delegation.DelegationTokenIdentifier;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.token.Token;

/** Lets a test call what the jar keeps to itself; one line is printed for each answer. */
public final class Checks {
    private static final Text PASSWORD = new Text("password");

    public static void main(String[] words) throws Exception {
        switch (words[0]) {
            case "write": // FILE TOKEN...
                write(words);
                break;
            case "read": // FILE...
                for (int at = 1; at < words.length; at++) {
                    System.out.println(read(words[at]));
                }
                break;
            case "keep": // FILE TOKEN...: the tokens are what the process holds
                System.out.println(new TokenFile(words[1]).keep(credentials(words)));
                break;
            case "put": // NAME: many times while HDFS is full, once when it is not; how many files there are after each
                full(words[1]);
                break;
            case "try": // SERVICE
                System.out.println(tried(words[1]));
                break;
            case "push": // LANGUAGE NAME: what is read and written for it in a JVM of that language
                Locale.setDefault(Locale.forLanguageTag(words[1]));
                Push push = Push.of(words[2]);
                System.out.println(push.file() + " " + push.applied() + " " + push.refused());
                break;
            case "listen":
                try (ServerSocket four = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"));
                        ServerSocket any = new ServerSocket(0)) {
                    System.out.println("127.0.0.1:" + four.getLocalPort() + " 127.0.0.1:" + any.getLocalPort());
                    System.out.println(String.join(" ", OwnRest.listening()));
                }
                break;
            case "find": // JOB: beside a port that never answers
                HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
                answer(server, "/jobs/" + words[1], "{\"jid\": \"" + words[1] + "\"}");
                answer(server, "/taskmanagers", "{\"taskmanagers\": [{\"id\": \"one\"}, {\"id\": \"two\"}]}");
                try (ServerSocket silent = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
                    server.start();
                    System.out.println(String.join(" ", new OwnRest(words[1]).taskManagers()));
                } finally {
                    server.stop(0);
                }
                break;
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static void full(String name) {
        Configuration conf = new Configuration(false);
        conf.set("fs.hdfs.impl", FullHdfs.class.getName());
        StateFolder folder = new StateFolder("hdfs://one/orders", conf);
        for (int times = 0; times < 4; times++) {
            FullHdfs.full = times < 3;
            try {
                folder.put(name, Collections.emptyMap());
                System.out.println(FullHdfs.FILES);
            } catch (IOException e) {
                System.out.println(FullHdfs.FILES.size() + " " + e.getMessage());
            }
        }
    }

    private static String tried(String service) throws InterruptedException {
        Token<?> token = new Token<>(
                new byte[0], PASSWORD.getBytes(), DelegationTokenIdentifier.HDFS_DELEGATION_KIND, new Text(service));
        try {
            Trial.of(token, new Configuration(false));
            return "taken";
        } catch (IOException | Refused e) {
            return Brief.of(e);
        }
    }

    private static void answer(HttpServer server, String path, String body) {
        server.createContext(path, exchange -> {
            exchange.sendResponseHeaders(200, body.length());
            exchange.getResponseBody().write(body.getBytes(StandardCharsets.US_ASCII));
            exchange.close();
        });
    }

    private static String read(String file) throws Exception {
        try {
            return "read " + Tokens.read(Files.readAllBytes(Paths.get(file))).numberOfTokens();
        } catch (Refused e) {
            return e.getMessage();
        }
    }

    private static void write(String[] words) throws Exception {
        credentials(words).writeTokenStorageFile(
                new org.apache.hadoop.fs.Path(new File(words[1]).toURI()), new Configuration());
    }

    /** A token is written ALIAS,KIND,SERVICE,NUMBER, or with ",private" after it; its number is its time, too. */
    private static Credentials credentials(String[] words) {
        Credentials credentials = new Credentials();
        for (int at = 2; at < words.length; at++) {
            String[] parts = words[at].split(",");
            DelegationTokenIdentifier identifier =
                    new DelegationTokenIdentifier(new Text("orders"), new Text("yarn"), new Text());
            identifier.setSequenceNumber(Integer.parseInt(parts[3]));
            identifier.setIssueDate(Long.parseLong(parts[3]));
            Token<DelegationTokenIdentifier> token = new Token<>(
                    identifier.getBytes(), PASSWORD.getBytes(), new Text(parts[1]), new Text(parts[2]));
            if (parts.length > 4) {
                token = token.privateClone(new Text(parts[2]));
            }
            credentials.addToken(new Text(parts[0]), token);
        }
        return credentials;
    }
}
