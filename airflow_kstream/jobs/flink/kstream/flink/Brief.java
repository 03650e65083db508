package kstream.flink;

import java.io.IOException;
import org.apache.hadoop.ipc.RemoteException;
import org.apache.hadoop.security.token.SecretManager.InvalidToken;

/** What an exception says. */
final class Brief {
    // Its words on a wrong password (com.sun.security.sasl.digest.DigestMD5Server). Others are about servers.
    private static final String WRONG_PASSWORD = "Mismatched response";
    private static final int LONGEST_CHAIN = 10;

    private Brief() {}

    /** Returns class and first line: a server's whole stack is in the rest. */
    static String of(Throwable error) {
        String message = error.getMessage();
        String first = message == null ? "" : ": " + message.trim().split("\n", 2)[0];
        return error.getClass().getSimpleName() + first;
    }

    /**
     * Returns whether the server says that it takes the token from nobody. What a server threw is named by the server's
     * class, which is the only sure sign: its words may quote any other. While it becomes active it says the same within
     * a RetriableException, which refuses none.
     */
    static boolean refusesToken(IOException error) {
        Throwable cause = error;
        for (int at = 0; cause != null && at < LONGEST_CHAIN; at++, cause = cause.getCause()) {
            String name = cause instanceof RemoteException
                    ? ((RemoteException) cause).getClassName()
                    : cause.getClass().getName();
            boolean sasl = name.equals("javax.security.sasl.SaslException");
            if (name.equals(InvalidToken.class.getName())
                    || sasl && String.valueOf(cause.getMessage()).contains(WRONG_PASSWORD)) {
                return true;
            }
        }
        return false;
    }
}
