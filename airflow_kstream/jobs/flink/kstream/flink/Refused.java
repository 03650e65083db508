package kstream.flink;

/** A push that this job does not use; the message says why, and holds nothing secret. */
final class Refused extends Exception {
    private static final long serialVersionUID = 1L;

    Refused(String why) {
        super(why);
    }
}
