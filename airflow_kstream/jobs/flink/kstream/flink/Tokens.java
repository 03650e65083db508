package kstream.flink;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.AbstractMap.SimpleEntry;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.WritableUtils;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.security.token.TokenIdentifier;
import org.apache.hadoop.security.token.delegation.AbstractDelegationTokenIdentifier;

/** Reads and compares tokens. Nothing here shows a password. */
final class Tokens {
    /** More than any credentials file needs. */
    static final int LONGEST_FILE = 1 << 20;

    private static final byte[] MAGIC = "HDTS\0".getBytes(StandardCharsets.US_ASCII);
    private static final Text AMRM = new Text("YARN_AM_RM_TOKEN");

    private Tokens() {}

    /**
     * Reads a credentials file that somebody else wrote.
     *
     * <p>Hadoop's own reader believes each length that it finds, so this one checks them first: the JVM is the job's.
     *
     * @throws Refused if it is no such file, has no token or anything beside tokens, or a token goes by another name
     *     than its service: Hadoop's clients would keep using the old one for a NameNode of a pair (HDFS-9276)
     */
    static Credentials read(byte[] content) throws Refused {
        if (content.length < MAGIC.length || !Arrays.equals(Arrays.copyOf(content, MAGIC.length), MAGIC)) {
            throw new Refused("it is not a credentials file");
        }
        ByteArrayInputStream rest = new ByteArrayInputStream(content, MAGIC.length, content.length - MAGIC.length);
        try {
            checkShape(new DataInputStream(rest));
            Credentials read = new Credentials();
            read.readTokenStorageStream(new DataInputStream(new ByteArrayInputStream(content)));
            return read;
        } catch (IOException | RuntimeException e) {
            throw new Refused("the credentials file can't be read: " + Brief.of(e));
        }
    }

    private static void checkShape(DataInputStream in) throws IOException, Refused {
        int count = number(in);
        for (int at = 0; at < count; at++) {
            byte[] alias = sized(in);
            checkIdentifier(new DataInputStream(new ByteArrayInputStream(sized(in))));
            sized(in); // password
            sized(in); // kind
            if (!Arrays.equals(alias, sized(in))) {
                throw new Refused("a token's name in the credentials file is not its service");
            }
        }
        if (count == 0 || number(in) != 0 || in.available() > 0) {
            throw new Refused("the credentials file has no token, or holds more than tokens");
        }
    }

    /** Hadoop's reader of it believes lengths, too. One of another form names nobody, so it renews nothing. */
    private static void checkIdentifier(DataInputStream in) throws IOException, Refused {
        if (in.read() != 0) {
            throw new Refused("a token in the credentials file is none that a NameNode or a KMS issues");
        }
        for (int part = 0; part < 3; part++) { // owner, renewer, real user
            sized(in);
        }
    }

    private static byte[] sized(DataInputStream in) throws IOException, Refused {
        int length = number(in);
        if (length > in.available()) {
            throw new Refused("the credentials file ends too early");
        }
        byte[] bytes = new byte[length];
        in.readFully(bytes);
        return bytes;
    }

    private static int number(DataInputStream in) throws IOException, Refused {
        long number = WritableUtils.readVLong(in);
        if (number < 0 || number > LONGEST_FILE) {
            throw new Refused("a number in the credentials file makes no sense");
        }
        return (int) number;
    }

    /**
     * Returns what the container's token file is to hold: what it has, with each token of the process that is younger.
     *
     * <p>The ApplicationMaster's own token stays as YARN gave it, and clones for single NameNodes are no business of
     * other processes.
     */
    static Credentials merged(Credentials file, Credentials held) throws IOException {
        Credentials merged = new Credentials(file);
        for (Map.Entry<Text, Token<? extends TokenIdentifier>> each : entries(held)) {
            Token<? extends TokenIdentifier> token = each.getValue();
            boolean own = token.getKind().equals(AMRM) || token.isPrivate();
            if (!own && isNews(token, file.getToken(each.getKey()))) {
                merged.addToken(each.getKey(), token);
            }
        }
        return merged;
    }

    /** Returns the tokens with their names. They are read from its written form: getTokenMap came with Hadoop 3.2. */
    static List<Map.Entry<Text, Token<? extends TokenIdentifier>>> entries(Credentials credentials) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        credentials.write(new DataOutputStream(bytes));
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes.toByteArray()));
        List<Map.Entry<Text, Token<? extends TokenIdentifier>>> entries = new ArrayList<>();
        for (int left = WritableUtils.readVInt(in); left > 0; left--) {
            Text name = new Text();
            name.readFields(in);
            new Token<>().readFields(in);
            // What was read does not tell whether it is a clone.
            entries.add(new SimpleEntry<>(name, credentials.getToken(name)));
        }
        return entries;
    }

    private static boolean isNews(Token<? extends TokenIdentifier> token, Token<? extends TokenIdentifier> old) {
        if (old == null) {
            return true;
        }
        if (Arrays.equals(token.getIdentifier(), old.getIdentifier())) {
            return false;
        }
        AbstractDelegationTokenIdentifier now = identifier(token);
        AbstractDelegationTokenIdentifier then = identifier(old);
        return now == null || then == null || isYounger(now, then);
    }

    static boolean isYounger(AbstractDelegationTokenIdentifier one, AbstractDelegationTokenIdentifier other) {
        return one.getIssueDate() != other.getIssueDate()
                ? one.getIssueDate() > other.getIssueDate()
                : one.getSequenceNumber() > other.getSequenceNumber();
    }

    /** Returns a delegation token's identifier; null if it is of a kind that nobody here can read. */
    static AbstractDelegationTokenIdentifier identifier(Token<? extends TokenIdentifier> token) {
        try {
            TokenIdentifier identifier = token == null ? null : token.decodeIdentifier();
            return identifier instanceof AbstractDelegationTokenIdentifier
                    ? (AbstractDelegationTokenIdentifier) identifier
                    : null;
        } catch (IOException | RuntimeException | LinkageError e) {
            return null;
        }
    }

    /** Says what a token is, for a file that all may read; times in milliseconds since 1970. */
    static Map<String, Object> described(Token<? extends TokenIdentifier> token) {
        AbstractDelegationTokenIdentifier read = identifier(token);
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("kind", token.getKind().toString());
        fields.put("service", token.getService().toString());
        if (read != null) {
            fields.put("owner", words(read.getOwner()));
            fields.put("real_user", words(read.getRealUser()));
            fields.put("renewer", words(read.getRenewer()));
            fields.put("issued", read.getIssueDate());
            fields.put("max_date", read.getMaxDate());
            fields.put("sequence_number", read.getSequenceNumber());
        }
        return fields;
    }

    static byte[] written(Credentials credentials) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        credentials.writeTokenStorageToStream(new DataOutputStream(bytes));
        return bytes.toByteArray();
    }

    private static String words(Text text) {
        return text == null ? "" : text.toString();
    }
}
