package kstream.flink;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** An announced push. `until` is when its first token ends, in seconds since 1970; 0 for a test of the channel. */
final class Push {
    private static final Pattern NAME = Pattern.compile("push-(\\d{6,9})-(\\d{1,14})-(\\d{1,11})");

    final String name;
    final int generation;
    final long id;
    final long until;

    private Push(Matcher named) {
        name = named.group();
        generation = Integer.parseInt(named.group(1));
        id = Long.parseLong(named.group(2));
        until = Long.parseLong(named.group(3));
    }

    /** Reads the name of a file; null if it announces no push. */
    static Push of(String name) {
        Matcher named = NAME.matcher(name);
        return named.matches() ? new Push(named) : null;
    }

    boolean bringsTokens() {
        return until > 0;
    }

    boolean hasEnded() {
        return bringsTokens() && until * 1000 <= System.currentTimeMillis();
    }

    String file() {
        return String.format(Locale.ROOT, "tokens/%06d-%d", generation, id);
    }

    String applied() {
        return String.format(Locale.ROOT, "applied-%06d-%d", generation, id);
    }

    String refused() {
        return String.format(Locale.ROOT, "refused-%06d-%d", generation, id);
    }
}
