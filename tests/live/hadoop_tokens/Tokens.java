import java.io.DataInputStream;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.crypto.key.kms.KMSDelegationToken;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.security.token.delegation.DelegationTokenIdentifier;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.v2.api.MRDelegationTokenIdentifier;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.security.token.TokenIdentifier;
import org.apache.hadoop.security.token.delegation.AbstractDelegationTokenIdentifier;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.security.AMRMTokenIdentifier;
import org.apache.hadoop.yarn.security.client.RMDelegationTokenIdentifier;
import org.apache.hadoop.yarn.security.client.TimelineDelegationTokenIdentifier;

/**
 * Hadoop's own classes write and read credentials files. `write FOLDER` makes the files `java` and `protobuf` with a
 * token of every kind; `tell FILE` prints, tab-separated, what Hadoop reads in each token, and no password.
 */
public final class Tokens {
    private static final Text[] PEOPLE = {new Text("streamer@EXAMPLE.COM"), new Text("yarn"), new Text("gateway")};
    private static final Map<String, Supplier<AbstractDelegationTokenIdentifier>> DELEGATION = new TreeMap<>(Map.of(
            "HDFS_DELEGATION_TOKEN", DelegationTokenIdentifier::new,
            "WEBHDFS delegation", DelegationTokenIdentifier.WebHdfsDelegationTokenIdentifier::new,
            "SWEBHDFS delegation", DelegationTokenIdentifier.SWebHdfsDelegationTokenIdentifier::new,
            "kms-dt", KMSDelegationToken.KMSDelegationTokenIdentifier::new,
            "HIVE_DELEGATION_TOKEN", org.apache.hadoop.hive.thrift.DelegationTokenIdentifier::new,
            "MR_DELEGATION_TOKEN", MRDelegationTokenIdentifier::new,
            "RM_DELEGATION_TOKEN", RMDelegationTokenIdentifier::new,
            "TIMELINE_DELEGATION_TOKEN", TimelineDelegationTokenIdentifier::new));

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("write")) {
            write(new File(arguments[1]));
        } else {
            tell(new Path(arguments[1]));
        }
    }

    private static void write(File folder) throws Exception {
        Credentials credentials = new Credentials();
        int number = 0;
        for (Supplier<AbstractDelegationTokenIdentifier> make : DELEGATION.values()) {
            add(credentials, dated(make.get(), number++));
        }
        ApplicationId application = ApplicationId.newInstance(1795252545929L, 12345);
        add(credentials, new AMRMTokenIdentifier(ApplicationAttemptId.newInstance(application, 2), -7));
        // As KafkaTokenUtil of Spark makes it.
        credentials.addToken(new Text("kafka"), new Token<TokenIdentifier>(bytes("an id"), bytes("password of kafka"),
                new Text("KAFKA_DELEGATION_TOKEN"), new Text("kafka.server.delegation.token.prod")));
        credentials.addToken(new Text("\u6d41 \u00fc"), new Token<TokenIdentifier>(new byte[300], bytes("password"),
                new Text("of tomorrow"), new Text()));
        credentials.addSecretKey(new Text("job.key"), new byte[] {1, 2, 3});
        credentials.addSecretKey(new Text("nothing"), new byte[0]);
        for (Credentials.SerializedFormat format : Credentials.SerializedFormat.values()) {
            boolean java = format == Credentials.SerializedFormat.WRITABLE;
            File file = new File(folder, java ? "java" : "protobuf");
            credentials.writeTokenStorageFile(new Path(file.toURI()), new Configuration(false), format);
        }
    }

    private static AbstractDelegationTokenIdentifier dated(AbstractDelegationTokenIdentifier identifier, int number) {
        identifier.setOwner(PEOPLE[0]);
        identifier.setRenewer(PEOPLE[1]);
        identifier.setRealUser(PEOPLE[2]);
        identifier.setIssueDate(1795252545929L + number);
        identifier.setMaxDate(1795857345929L + number);
        // One byte, two and more of a VInt; protobuf has another limit.
        identifier.setSequenceNumber(number * number * 31);
        identifier.setMasterKeyId(number);
        return identifier;
    }

    private static void add(Credentials credentials, TokenIdentifier identifier) {
        String kind = identifier.getKind().toString();
        credentials.addToken(new Text("alias of " + kind), new Token<TokenIdentifier>(identifier.getBytes(),
                bytes("password of " + kind), identifier.getKind(), new Text("ha-hdfs:prod")));
    }

    private static void tell(Path file) throws Exception {
        Credentials credentials = Credentials.readTokenStorageFile(file, new Configuration(false));
        for (Text alias : credentials.getAllSecretKeys()) {
            print("secret key", alias, credentials.getSecretKey(alias).length);
        }
        for (Map.Entry<Text, Token<? extends TokenIdentifier>> entry : credentials.getTokenMap().entrySet()) {
            Token<? extends TokenIdentifier> token = entry.getValue();
            Supplier<AbstractDelegationTokenIdentifier> make = DELEGATION.get(token.getKind().toString());
            if (make != null) {
                AbstractDelegationTokenIdentifier read = make.get();
                read.readFields(new DataInputStream(new ByteArrayInputStream(token.getIdentifier())));
                print(entry.getKey(), token.getKind(), token.getService(), read.getOwner(), read.getRenewer(),
                        read.getRealUser(), read.getIssueDate(), read.getMaxDate(), read.getSequenceNumber(),
                        read.getMasterKeyId());
            } else if (token.getKind().equals(AMRMTokenIdentifier.KIND_NAME)) {
                AMRMTokenIdentifier read = new AMRMTokenIdentifier();
                read.readFields(new DataInputStream(new ByteArrayInputStream(token.getIdentifier())));
                print(entry.getKey(), token.getKind(), token.getService(), read.getApplicationAttemptId(),
                        read.getKeyId());
            } else {
                print(entry.getKey(), token.getKind(), token.getService(), token.getIdentifier().length);
            }
        }
    }

    private static void print(Object... cells) {
        StringBuilder line = new StringBuilder();
        for (Object cell : cells) {
            line.append(line.length() > 0 ? "\t" : "").append(cell);
        }
        System.out.println(new String(line.toString().getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8));
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
