"""The faults of others that this project knows by their number: the one table of the doctor and of triage.

To name a number in a check of the doctor or in a signature, give it a row here. `HadoopVersion` tells whether a
release has a fix.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(.*)")
_BEFORE_RELEASE = re.compile(r"-(alpha|beta|rc|snapshot)", re.IGNORECASE)

# The first release of each branch that has a fix. A branch that is not named has it if it is above all of them: so each
# branch between them that has it must be named.
Fixed = Mapping[tuple[int, int], int]


@dataclass(frozen=True)
class HadoopVersion:
    """A version as a server or a jar's name tells it: `3.4.3`, or a distribution's own such as `2.6.0-cdh5.16.2`."""

    text: str

    @property
    def numbers(self) -> tuple[int, int, int] | None:
        match = _VERSION.match(self.text)
        return (int(match[1]), int(match[2]), int(match[3])) if match else None

    @property
    def of_a_distribution(self) -> bool:
        """Return whether somebody else than Apache built it: they carry fixes back, and their numbers don't tell."""
        match = _VERSION.match(self.text)
        return match is None or bool(match[4])

    def has(self, fixed: Fixed) -> bool | None:
        """Return whether it has the fix; None if its number doesn't tell, as that of a distribution below the fix."""
        numbers = self.numbers
        if numbers is None or _BEFORE_RELEASE.search(self.text):
            return None
        branch, patch = numbers[:2], numbers[2]
        has = patch >= fixed[branch] if branch in fixed else branch > max(fixed)
        return None if not has and self.of_a_distribution else has

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class KnownFault:
    """A fault behind a number, and the releases that mend it: `fixed` for Hadoop's. `releases` says instead, in words,
    which mend or which have it.

    Both are empty where it is open, is a property and no defect, or where it is not known.
    """

    title: str
    releases: str = ""
    fixed: Fixed = field(default_factory=dict)

    @property
    def where(self) -> str:
        """Return its releases in words, or nothing."""
        first = ", ".join(f"{major}.{minor}.{patch}" for (major, minor), patch in sorted(self.fixed.items()))
        return self.releases or (f"mended in {first}" if first else "")


def _of_hadoop(title: str, *first: str) -> KnownFault:
    numbers = [tuple(int(part) for part in release.split(".")) for release in first]
    return KnownFault(title, fixed={(major, minor): patch for major, minor, patch in numbers})


KNOWN_FAULTS: Mapping[str, KnownFault] = {
    # HDFS: leases and their recovery.
    "HDFS-4504": KnownFault("a close() that fails leaves the file open, and its lease is renewed"),
    "HDFS-6917": KnownFault("a check whether a lease is another's that takes its own for one"),
    "HDFS-10549": _of_hadoop("a close() that is interrupted keeps the lease", "2.8.0", "2.9.0", "2.10.0", "3.0.0"),
    "HDFS-10763": _of_hadoop(
        "a file can lose its lease and stay open", "2.6.5", "2.7.4", "2.8.0", "2.9.0", "2.10.0", "3.0.0"
    ),
    "HDFS-11486": KnownFault("a client closes a file before its last block is reported"),
    "HDFS-11576": _of_hadoop("each repeated recoverLease begins the recovery again", "2.9.1", "2.10.0", "3.0.0"),
    "HDFS-11817": _of_hadoop("a faulty DataNode makes a block's recovery fail", "2.8.2", "2.9.0", "2.10.0", "3.0.0"),
    "HDFS-12070": _of_hadoop(
        "one replica that fails ends the recovery of its block", "2.8.4", "2.9.1", "2.10.0", "3.0.2"
    ),
    "HDFS-14694": _of_hadoop("the client can recover a file whose close() failed", "3.4.0"),
    "HDFS-14758": _of_hadoop("a dead writer's lease ends after 20 minutes", "2.10.1", "3.1.4", "3.2.2", "3.3.0"),
    "HDFS-17150": _of_hadoop("an erasure-coded file with too few internal blocks can't be recovered", "3.4.0"),
    "HDFS-17358": _of_hadoop("erasure-coded groups with empty blocks are recovered without end", "3.5.0"),
    "HDFS-17430": _of_hadoop("a recovery waits for a DataNode whose host lost its power", "3.5.0"),
    "HDFS-17861": _of_hadoop("mass recovery can crash the standby NameNode", "3.5.0"),
    "HDFS-17863": KnownFault("a file under construction can't be read while its block's length is not known"),
    # Tokens and logins.
    "HDFS-9276": _of_hadoop("new tokens don't reach connections to an HA pair", "2.8.2", "2.9.0", "2.10.0", "3.0.0"),
    "SPARK-11182": KnownFault("new tokens of Spark don't reach the connections to an HA pair, for HDFS-9276"),
    "SPARK-22290": KnownFault("tokens of Hive for a job without a keytab"),
    "SPARK-23361": KnownFault("a driver restarts after the end of its tokens"),
    "SPARK-25689": KnownFault("the driver itself renews tokens"),
    "SPARK-26595": KnownFault("tokens are renewed from a ticket cache"),
    "SPARK-34295": KnownFault("filesystems can be left out of YARN's renewal of tokens"),
    "SPARK-37205": KnownFault("a token's configuration goes with it to the ResourceManager"),
    "SPARK-37787": KnownFault("a long-running job can fail for want of fresh tokens", "Spark 2.3 to 4.1"),
    "SPARK-15754": KnownFault("tokens of one application are cancelled at the end of another"),
    "YARN-2704": _of_hadoop("localisation and logs fail with the tokens of the submission", "2.6.0"),
    "YARN-3055": KnownFault("tokens that jobs share are cancelled at the end of the first"),
    "YARN-3103": _of_hadoop("an ApplicationMaster keeps its token when the key is rolled", "2.6.1", "2.7.0"),
    "YARN-5305": KnownFault("log aggregation fails with ended tokens"),
    "YARN-5910": KnownFault("tokens of another cluster are renewed with its configuration"),
    "YARN-11954": KnownFault("an attempt begins with the tokens of the submission, which may have ended"),
    "FLINK-6376": KnownFault("a container prefers the tokens of the submission to its keytab", "Flink before it"),
    "FLINK-28608": KnownFault("YARN can renew a Flink job's tokens only if its client named a renewer"),
    "FLINK-23356": KnownFault("HBase's tokens are used although there is a keytab"),
    "HADOOP-15250": KnownFault("a client of several networks connects from an address that Kerberos does not know"),
    "JDK-8139348": KnownFault("RC4 and 3DES are weak, and off by default", "Java 17 and later"),
    "JDK-8215032": KnownFault("a ticket that can't be renewed reads as a message that was modified"),
    # YARN.
    "SPARK-22876": KnownFault("Spark counts attempts for ever that YARN counts within a window"),
    "FLINK-38112": KnownFault("a short window of attempts makes the restarts of a JobManager endless"),
    "YARN-556": _of_hadoop("applications outlive a restart of the ResourceManager", "2.6.0"),
    "YARN-1336": _of_hadoop("containers outlive a restart of their NodeManager", "2.6.0"),
    "YARN-3813": _of_hadoop("YARN ends an application at a limit of its lifetime", "2.9.0", "3.0.0"),
    "YARN-4714": KnownFault("a JVM of Java 8 is killed for its virtual memory"),
    # Spark's streams, Flink, and what they stand on.
    "SPARK-7705": KnownFault("a failed application leaves its staging folder"),
    "SPARK-17340": KnownFault("a killed application leaves its staging folder"),
    "SPARK-16395": KnownFault("a DStream job checkpoints slower than it makes batches"),
    "SPARK-19038": KnownFault("a renamed copy of the keytab is looked for on the submitting host", "Spark 2.0 to 2.1"),
    "SPARK-27237": KnownFault("the schema of a state is compared before it is used"),
    "SPARK-28025": KnownFault("files of checksums are left in a checkpoint"),
    "SPARK-30542": KnownFault("two queries write the metadata of one output"),
    "SPARK-42794": KnownFault("a task waits for a state that another one holds"),
    "SPARK-43542": KnownFault("an error of its own for two queries on one checkpoint"),
    "FLINK-18592": KnownFault("a sink can't truncate a file whose lease was not yet recovered"),
    "HADOOP-4829": KnownFault("a shutdown hook closes filesystems that are still used"),
    "HADOOP-19212": KnownFault("Hadoop calls a method of Java's security manager, which newer JDKs closed"),
    "HTTPCLIENT-1478": KnownFault("a TLS handshake has no timeout", "mended in 4.3.6"),
    "KAFKA-4090": KnownFault("a client takes the bytes of a TLS alert for a size"),
}  # fmt: skip


def mended(version: HadoopVersion, number: str) -> bool | None:
    """Return whether a release of Hadoop has the fix; None if its number doesn't tell.

    Raises KeyError: when the number has no row.
    """
    return version.has(KNOWN_FAULTS[number].fixed)


def described(reference: str) -> str:
    """Return a reference, with what the table says where it is a number of it."""
    fault = KNOWN_FAULTS.get(reference)
    if fault is None:
        return reference
    return f"{reference} ({'; '.join(filter(None, (fault.title, fault.where)))})"


def source_of(number: str, place: str) -> str:
    """Return a number with its place in the code of others and the releases that mend it.

    Raises KeyError: when the number has no row.
    """
    return ", ".join(filter(None, (f"{number} ({place})", KNOWN_FAULTS[number].where)))
