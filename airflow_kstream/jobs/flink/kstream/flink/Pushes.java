package kstream.flink;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.security.token.TokenIdentifier;
import org.apache.hadoop.security.token.delegation.AbstractDelegationTokenIdentifier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes pushed tokens, by the rules of `kstream_tokens.py`: only what renews a token that this process has (of the same
 * kind, service, owner and real user, and younger), and that its NameNode takes.
 *
 * <p>A push is taken in two steps. A look checks and tries it, deletes its file, and offers it. Flink's next round hands
 * it to this process and to all TaskManagers; the look after that sees it in use and answers.
 */
final class Pushes {
    private static final Logger LOG = LoggerFactory.getLogger(Pushes.class);

    private final Settings settings;
    private final StateFolder folder;
    private final OwnRest rest;
    /** Tokens whose file was deleted here, to use them. */
    private final Map<Long, Credentials> taken = new HashMap<>();
    /** An answer whose name a stranger occupies can't be written. */
    private final Set<Long> answered = new HashSet<>();
    /** When what was pushed ends, in milliseconds since 1970: its issuer knows more than its identifier tells. */
    private final Map<String, Long> ends = new HashMap<>();
    /** All that was taken until now: each round hands it to TaskManagers that are new. */
    private volatile Credentials offered = new Credentials();

    Pushes(Settings settings, StateFolder folder, OwnRest rest) {
        this.settings = settings;
        this.folder = folder;
        this.rest = rest;
    }

    Credentials offered() {
        return offered;
    }

    /** Returns when this token ends, if it was pushed; null if nobody said when. */
    Long until(Map<String, Object> described) {
        return ends.get(key(described));
    }

    private static String key(Map<String, Object> described) {
        return described.get("service") + "#" + described.get("sequence_number");
    }

    /**
     * Answers pushes. A process that was away for a while finds several: it uses the newest one that it does not refuse,
     * and one that can't be answered now keeps no other waiting.
     */
    void look(Set<String> names) throws IOException, InterruptedException {
        List<Push> open = unanswered(names);
        boolean superseded = false;
        IOException trouble = null;
        for (Push push : open) {
            try {
                superseded |= answer(push, superseded);
            } catch (IOException e) {
                trouble = e;
            }
        }
        if (trouble != null) {
            throw trouble;
        }
    }

    private List<Push> unanswered(Set<String> names) {
        List<Push> open = new ArrayList<>();
        for (String name : names) {
            Push push = Push.of(name);
            boolean mine = push != null && push.generation == settings.generation && !answered.contains(push.id);
            if (mine && !names.contains(push.applied()) && !names.contains(push.refused())) {
                open.add(push);
            }
        }
        open.sort((one, other) -> Long.compare(other.id, one.id));
        return open;
    }

    /** Answers a push, if it can be answered yet, and returns whether its tokens are or will be used. */
    private boolean answer(Push push, boolean superseded) throws IOException, InterruptedException {
        try {
            if (push.bringsTokens() && superseded) {
                throw new Refused("newer tokens were pushed after these");
            }
            Map<String, Object> said = applied(push);
            if (said == null) {
                return true;
            }
            put(push, push.applied(), said);
            return push.bringsTokens();
        } catch (Refused e) {
            refuse(push, e.getMessage());
        } catch (IOException e) {
            if (!push.hasEnded()) {
                throw e;
            }
            refuse(push, "its tokens could not be used before they ended: " + Brief.of(e));
        }
        return false;
    }

    private void refuse(Push push, String why) throws IOException {
        LOG.warn("kstream: a push of tokens is refused: {}", why);
        Map<String, Object> said = new HashMap<>();
        said.put("why", why);
        said.putAll(settings.stamp());
        put(push, push.refused(), said);
    }

    private void put(Push push, String name, Map<String, Object> said) throws IOException {
        folder.put(name, said);
        answered.add(push.id);
        if (push.bringsTokens() && taken.remove(push.id) == null) {
            folder.delete(push.file());
        }
    }

    /** Returns the answer to a push whose tokens are in use; null while Flink has yet to hand them out. */
    private Map<String, Object> applied(Push push) throws IOException, Refused, InterruptedException {
        List<Map<String, Object>> tokens = new ArrayList<>();
        if (push.bringsTokens()) {
            Credentials fresh = taken.get(push.id);
            if (fresh == null) {
                fresh = checked(Tokens.read(content(push)));
                take(push, fresh);
            }
            if (!areInUse(fresh)) {
                if (push.hasEnded()) {
                    throw new Refused("Flink did not hand its tokens out before they ended");
                }
                return null;
            }
            fresh.getAllTokens().forEach(token -> tokens.add(Tokens.described(token)));
        }
        Map<String, Object> said = settings.stamp();
        said.put("tokens", tokens);
        said.put("executors", taskManagers());
        return said;
    }

    private byte[] content(Push push) throws IOException, Refused {
        try {
            return folder.read(push.file(), Tokens.LONGEST_FILE);
        } catch (FileNotFoundException e) {
            throw new Refused("it was taken back: " + push.file() + " is missing, or no file");
        }
    }

    /** Who deletes the file has the tokens: a supervisor that takes them back cancels none that it can't delete. */
    private void take(Push push, Credentials fresh) throws IOException, Refused {
        if (!folder.delete(push.file())) {
            throw new Refused("it was taken back while it was tried");
        }
        taken.put(push.id, fresh);
        fresh.getAllTokens().forEach(token -> ends.put(key(Tokens.described(token)), push.until * 1000));
        Credentials all = new Credentials(offered);
        all.addAll(fresh);
        offered = all;
    }

    /** Returns these tokens under the names that this process's own have, one that it has already as it has it. */
    private Credentials checked(Credentials pushed) throws IOException, Refused, InterruptedException {
        Credentials held = held();
        Credentials checked = new Credentials();
        for (Map.Entry<Text, Token<? extends TokenIdentifier>> each : Tokens.entries(pushed)) {
            Token<? extends TokenIdentifier> token = each.getValue();
            Text name = name(held, token.getService());
            Token<? extends TokenIdentifier> own = held.getToken(name);
            if (renews(token, own)) {
                Trial.of(token, settings.hadoop);
                own = token;
            }
            checked.addToken(name, own);
        }
        return checked;
    }

    /** Returns whether it is younger than this process's own, false if it is the same one. */
    private static boolean renews(Token<? extends TokenIdentifier> token, Token<? extends TokenIdentifier> own)
            throws Refused {
        AbstractDelegationTokenIdentifier then = Tokens.identifier(own);
        AbstractDelegationTokenIdentifier now = Tokens.identifier(token);
        String service = token.getService().toString();
        if (then == null) {
            throw new Refused("this job has no token for " + service + " that it would renew");
        }
        if (now == null) {
            throw new Refused("the token for " + service + " can't be read");
        }
        if (!whose(token, now).equals(whose(own, then))) {
            throw new Refused("the token for " + service + " is a " + whose(token, now) + ", and this job's is a "
                    + whose(own, then) + ": it would act as somebody else");
        }
        if (now.equals(then)) {
            return false;
        }
        if (!Tokens.isYounger(now, then)) {
            throw new Refused("the token for " + service + " is not younger than the one that this job has");
        }
        return true;
    }

    private static String whose(Token<? extends TokenIdentifier> token, AbstractDelegationTokenIdentifier identifier) {
        String via = identifier.getRealUser() == null ? "" : identifier.getRealUser().toString();
        return token.getKind() + " of " + identifier.getOwner() + (via.isEmpty() ? "" : " by way of " + via);
    }

    /** Returns the name of this service's token: a KMS's is its address (LoadBalancingKMSClientProvider). */
    private static Text name(Credentials held, Text service) throws IOException {
        if (held.getToken(service) == null) {
            for (Map.Entry<Text, Token<? extends TokenIdentifier>> each : Tokens.entries(held)) {
                if (each.getValue().getService().equals(service)) {
                    return each.getKey();
                }
            }
        }
        return service;
    }

    private static boolean areInUse(Credentials fresh) throws IOException {
        Credentials held = held();
        return Tokens.entries(fresh).stream().allMatch(each -> each.getValue().equals(held.getToken(each.getKey())));
    }

    private static Credentials held() throws IOException {
        return UserGroupInformation.getCurrentUser().getCredentials();
    }

    /** Returns those that were told, as Spark's driver names its executors; none if that can't be asked. */
    private List<String> taskManagers() {
        try {
            return settings.restHasTls ? Collections.emptyList() : rest.taskManagers();
        } catch (IOException e) {
            return Collections.emptyList();
        }
    }
}
