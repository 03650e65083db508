package kstream.flink;

import java.io.IOException;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.MissingNode;

/** JSON by the library that each Flink has in itself. */
final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {}

    /** Reads what may be anything; a missing node if it is no JSON. */
    static JsonNode read(byte[] content) {
        try {
            JsonNode node = MAPPER.readTree(content);
            return node == null ? MissingNode.getInstance() : node;
        } catch (IOException | StackOverflowError e) {
            return MissingNode.getInstance();
        }
    }

    static byte[] written(Map<String, Object> fields) throws IOException {
        return MAPPER.writerWithDefaultPrettyPrinter().writeValueAsBytes(fields);
    }

    /** This moment in UTC, to the second. */
    static String now() {
        return Instant.now().truncatedTo(ChronoUnit.SECONDS).toString();
    }
}
