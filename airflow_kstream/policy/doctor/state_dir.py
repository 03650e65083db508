"""Checks of the state_dir: who may write there, and who may speak for streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airflow_kstream.model.clusters.authors import ALL_STREAMS, OrderFile
from airflow_kstream.model.clusters.cluster_facts import ClusterFacts, known
from airflow_kstream.model.clusters.hdfs_path import as_word
from airflow_kstream.model.finding import Concern, Severity
from airflow_kstream.policy.doctor.check import FindingDraft
from airflow_kstream.policy.state_dir import few, is_readable_by_all, openness


def open_state_dir(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find a state_dir in which others can create something."""
    rights = known(facts.state_dir).rights
    if reasons := openness(rights):
        yield FindingDraft(
            Severity.WARNING,
            f"{rights.path} is open: {'; '.join(reasons)}. What strangers write there counts for nothing, but they can "
            "take the name of a stream's folder before its first start",
            "`kstream connection check` prints the commands, which lock nobody out who uses it",
            f"HDFS: {rights.path} has the mode {rights.permission}, {rights.owner}:{rights.group}",
        )


def strangers(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find what strangers left in the state_dir, or in a stream's folder."""
    state_dir = known(facts.state_dir)
    path = state_dir.rights.path
    found = [(f"{path}/{name}", owner) for name, owner in state_dir.strangers.items()]
    inside = [(f"{each.path}/{name}", owner) for each in state_dir.folders for name, owner in each.strangers.items()]
    if found or inside:
        yield FindingDraft(
            Severity.WARNING,
            f"in {path} lies what belongs to nobody who may speak there: {_few(found + inside)}. It counts for "
            "nothing. If one of them should speak for streams, a supervisor is missing",
            f"hdfs dfs -rm -r {as_word((found + inside)[0][0])}; or add its owner's name to {path}/supervisors",
            f"HDFS: {len(found) + len(inside)} entries of {_owners(found + inside)}",
            concerns=tuple(
                Concern(each.stream, f"its folder has {_few(each.strangers.items())}")
                for each in state_dir.folders
                if each.strangers
            ),
        )


def open_stream_folders(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find streams' folders in which others can write."""
    folders = [each for each in known(facts.state_dir).folders if not each.closed]
    if folders:
        yield FindingDraft(
            Severity.WARNING,
            "others can write in streams' folders: each file has to be judged by its own owner, and a folder that is "
            "handed over by chown proves nothing",
            f"its next start closes it; or hdfs dfs -setfacl -b {as_word(folders[0].path)} and hdfs dfs -chmod 755 "
            f"{as_word(folders[0].path)}, once strangers' files are gone",
            f"HDFS: {_few((each.path, f'{each.owner}, {each.rights}') for each in folders)}",
            concerns=tuple(Concern(each.stream, "others can write in its folder") for each in folders),
        )


def supervisors_streams(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find streams that run as a supervisor's user."""
    state_dir = known(facts.state_dir)
    running = [each for each in state_dir.folders if each.user and each.user in state_dir.supervisors]
    if running:
        yield FindingDraft(
            Severity.WARNING,
            "a stream that runs as a supervisor's user can say everything that a supervisor can, for all streams: its "
            "code can freeze the cluster, and choose what is submitted as any other stream's user",
            "a principal of its own for each stream, in its declaration's credentials, or for the connection",
            f"HDFS: their newest claims belong to {', '.join(sorted({each.user for each in running}))}; supervisors "
            f"are {state_dir.supervisors}",
            concerns=tuple(Concern(each.stream, f"it speaks for all streams, as {each.user}") for each in running),
        )


def no_supervisor(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find a connection whose principal speaks for no stream but those that run as itself."""
    state_dir, user = known(facts.state_dir), known(facts.user)
    if user and user not in state_dir.supervisors:
        yield FindingDraft(
            Severity.WARNING,
            f"{user}, the connection's principal, is not a supervisor: its copies of declarations and its orders on "
            "others' streams count for nothing",
            "`kstream connection check` prints the commands that name it",
            f"HDFS: supervisors are {state_dir.supervisors}",
        )


def unbounded(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find a connection that does not bound what its declarations use."""
    needed = known(facts.unbounded)
    if needed is not None:
        yield FindingDraft(
            Severity.WARNING,
            "the connection has no allow: its declarations may use any keytab, proxied user, secret and file that its "
            "workers reach, and any notifier",
            f"add one to its extra: {needed.advice()}",
            "the connection's extra; what its streams need is in the supervisors' copies of their declarations",
        )


def supervisors_file(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find a file of supervisors that not everybody may read, or with lines that name nobody."""
    state_dir = known(facts.state_dir)
    file = f"{state_dir.rights.path}/supervisors"
    if not is_readable_by_all(state_dir.names_mode):
        yield FindingDraft(
            Severity.WARNING,
            f"not everybody may read {file}: who may not can't judge anything in it, and its streams stop being looked "
            "after",
            f"hdfs dfs -chmod 644 {as_word(file)}",
            f"HDFS: its mode is {state_dir.names_mode}",
        )
    if names := state_dir.supervisors.misnamed:
        yield FindingDraft(
            Severity.WARNING,
            f"{file} has lines that are not a short name of a user: {few(map(repr, names))}. They name nobody",
            "one short name a line, as HDFS shows it as the owner of that user's files",
            f"HDFS: {len(names)} lines of {file}",
        )


def void_orders(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find orders that outrank what counts, of authors who may not say them: perhaps they could, once."""
    state_dir = known(facts.state_dir)
    orders = state_dir.void_orders
    if orders:
        yield FindingDraft(
            Severity.WARNING,
            f"orders count for nothing that are newer than what counts: {few(map(_order_words, orders))}. If one of "
            "these authors could speak when it was given, what it stopped, held or froze runs again",
            f"hdfs dfs -cat {as_word(orders[0].path)} shows it; {_repeating(orders[0])} repeats it, by one who may "
            "speak; hdfs dfs -rm deletes it",
            f"HDFS: {few(order.path for order in orders)}; supervisors are {state_dir.supervisors}",
            concerns=tuple(
                Concern(_subject(order), f"an order of {order.author} on it counts for nothing")
                for order in orders
                if order.subject != ALL_STREAMS
            ),
        )


def long_listings(facts: ClusterFacts) -> Iterator[FindingDraft]:
    """Find folders with more entries than are looked at."""
    state_dir = known(facts.state_dir)
    long = [(state_dir.rights.path, state_dir.cut), *((each.path, each.cut) for each in state_dir.folders)]
    cut = [(path, words) for path, words in long if words]
    if cut:
        yield FindingDraft(
            Severity.WARNING,
            "folders have more entries than anybody looks at, and each look takes long: of the owner who has the "
            "most, the rest is as if it were not there",
            f"hdfs dfs -ls {as_word(cut[0][0])} shows what they are; `kstream state clean` deletes what is old",
            few((f"{path}: {words}" for path, words in cut), between="; "),
            concerns=tuple(
                Concern(each.stream, "strangers flood its folder") for each in state_dir.folders if each.cut
            ),
        )


def _few(entries: Iterable[tuple[str, str]]) -> str:
    return few(f"{name} ({owner})" for name, owner in entries)


def _owners(entries: Iterable[tuple[str, str]]) -> str:
    return few(sorted({owner for _, owner in entries}))


def _subject(order: OrderFile) -> str:
    """Return the name of the stream that an order is on."""
    return order.subject.rpartition("-")[0]


def _order_words(order: OrderFile) -> str:
    about = "on all streams, a freeze or its end," if order.subject == ALL_STREAMS else f"on {_subject(order)}"
    return f"one {about} by {order.author} of {order.at:%Y-%m-%d %H:%M} UTC"


def _repeating(order: OrderFile) -> str:
    """Return the command that repeats an order if it was a stop, or a freeze."""
    if order.subject == ALL_STREAMS:
        return "`kstream streams freeze`"
    return f"`kstream streams stop {_subject(order)}` (or hold)"
