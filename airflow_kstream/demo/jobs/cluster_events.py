"""Streams the log lines of Hadoop's daemons from Kafka into a table on HDFS: one row per record, exactly once.

The table is the only outside record of which application's delegation token dies when. It understands NameNode service
and audit logs and ResourceManager logs; a line of any other log is a row of kind OTHER. The topic holds what
`airflow_kstream.demo.shipper` writes: the line's bytes under the key `FILE:OFFSET`. A line that came again is a row
of its own, with the same `file` and `byte_offset` and another `offset` in Kafka.

A line's `kind` says only what that line proves, so one event can have several rows: an issued token is in the
NameNode's service log and in its audit log. Count tokens by (token_kind, sequence_number), not by rows.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

OTHER = "OTHER"


@dataclass(frozen=True)
class Shape:
    """A pattern that recurs in log lines; each named group fills the column of its name."""

    regex: str

    @property
    def columns(self) -> dict[str, int]:
        """Map each column to the number of its group."""
        return dict(re.compile(self.regex).groupindex)

    @property
    def java_regex(self) -> str:
        """Return the pattern without group names: Java allows no underscore in them, and Spark uses numbers anyway."""
        return re.sub(r"\(\?P<\w+>", "(", self.regex)


# AbstractDelegationTokenIdentifier.toString of Hadoop 3; dates are milliseconds since 1970.
TOKEN = Shape(
    r"(?P<token_kind>\w+) owner=(?P<owner>[^,]*), renewer=(?P<renewer>[^,]*), realUser=(?P<real_user>[^,]*), "
    r"issueDate=(?P<issue_time>\d+), maxDate=(?P<max_time>\d+), sequenceNumber=(?P<sequence_number>\d+)"
)
# DelegationTokenIdentifier.toStringStable, which audit logs give as the source of the command.
AUDITED_TOKEN = Shape(
    r"src=(?P<token_kind>\w+) token (?P<sequence_number>\d+) for (?P<owner>\S+) with renewer (?P<renewer>[^\s,]*)"
)
# DelegationTokenRenewer.DelegationTokenToRenew.toString: the token's expiry and its applications; the list is empty by
# the time the token is replaced.
HOLDER = Shape(r";exp=(?P<expiry_time>\d+); apps=\[(?P<application>application_\d+_\d+)?")
SUBMITTER = Shape(r"\b(?P<application>application_\d+_\d+) found existing hdfs token ")
STATE_CHANGE = Shape(
    r"\b(?P<application>application_\d+_\d+) State change from (?P<from_state>\w+) to (?P<to_state>\w+) "
    r"on event = (?P<event>\w+)"
)


@dataclass(frozen=True)
class LinePattern:
    """The pattern of a kind of lines: they contain all `words` and match all `shapes`."""

    kind: str
    words: tuple[str, ...]
    shapes: tuple[Shape, ...]


# The first that matches names the line. Read from Hadoop 3.4: AbstractDelegationTokenSecretManager (in the NameNode,
# and for its own tokens the ResourceManager), FSNamesystem's audit log, DelegationTokenRenewer, RMAppImpl.
PATTERNS = (
    LinePattern("TOKEN_ISSUED", ("Creating password for identifier: ",), (TOKEN,)),
    LinePattern("TOKEN_RENEWAL_ASKED", ("Token renewal for identifier: ",), (TOKEN,)),
    LinePattern("TOKEN_CANCEL_ASKED", ("Token cancellation requested for identifier: ",), (TOKEN,)),
    LinePattern("TOKEN_EXPIRED", ("Removing expired token ",), (TOKEN,)),
    LinePattern("TOKEN_REFUSED", (", can't be found in cache, Token=(",), (TOKEN,)),
    LinePattern("TOKEN_REFUSED", (" has expired, current time: ", ", Token=("), (TOKEN,)),
    LinePattern("TOKEN_ISSUED", ("cmd=getDelegationToken\t", "allowed=true\t"), (AUDITED_TOKEN,)),
    LinePattern("TOKEN_RENEWED", ("cmd=renewDelegationToken\t", "allowed=true\t"), (AUDITED_TOKEN,)),
    LinePattern("TOKEN_CANCELLED", ("cmd=cancelDelegationToken\t", "allowed=true\t"), (AUDITED_TOKEN,)),
    LinePattern("TOKEN_SUBMITTED", (" found existing hdfs token ",), (TOKEN, SUBMITTER)),
    LinePattern("TOKEN_RENEWED", ("Renewed delegation-token= [",), (TOKEN, HOLDER)),
    LinePattern("TOKEN_RENEWAL_FAILED", ("Exception renewing token", "Not rescheduled"), (TOKEN,)),
    LinePattern("TOKEN_REPLACED", (" is expiring, request new token",), (TOKEN, HOLDER)),
    LinePattern("TOKEN_ISSUED", ("Received new token Kind: ",), (TOKEN,)),
    LinePattern("APPLICATION_STATE", (" State change from ",), (STATE_CHANGE,)),
)

# Column → its type; in the table's order.
FIELDS = {
    "token_kind": "string",
    "owner": "string",
    "renewer": "string",
    "real_user": "string",
    "sequence_number": "long",
    "issue_time": "timestamp",
    "max_time": "timestamp",
    "expiry_time": "timestamp",
    "application": "string",
    "from_state": "string",
    "to_state": "string",
    "event": "string",
}


def events(lines: DataFrame, time_zone: str) -> DataFrame:
    """Parse lines. `lines` needs a string column `line`; its other columns are kept, `line` becomes the last.

    `time_zone` is that of the daemons, which log local time: times are ambiguous in the hour that repeats at the end of
    summer time. A line without a time of its own (a stack trace) has none in the table either.
    """
    kept = [column for column in lines.columns if column != "line"]
    time = f"try_to_timestamp(substr(line, 1, 23) || ' {time_zone}', 'yyyy-MM-dd HH:mm:ss,SSS VV') AS time"
    fields = [f"{_field(name, kind)} AS {name}" for name, kind in FIELDS.items()]
    return lines.selectExpr("*", f"{_first_match()} AS pattern").selectExpr(
        *kept, time, f"{_kind()} AS kind", *fields, "line"
    )


# The expressions are SQL text: building them takes one call into the JVM each instead of hundreds.


def _first_match() -> str:
    """Return the position in PATTERNS. Words come first: a regular expression per line costs far more."""
    cases = [f"WHEN {_matches(pattern)} THEN {number}" for number, pattern in enumerate(PATTERNS)]
    return f"CASE {' '.join(cases)} END"


def _matches(pattern: LinePattern) -> str:
    words = [f"contains(line, {_literal(word)})" for word in pattern.words]
    shapes = [f"line RLIKE {_literal(shape.java_regex)}" for shape in pattern.shapes]
    return " AND ".join(words + shapes)


def _kind() -> str:
    cases = [f"WHEN {number} THEN '{pattern.kind}'" for number, pattern in enumerate(PATTERNS)]
    return f"CASE pattern {' '.join(cases)} ELSE '{OTHER}' END"


def _field(name: str, kind: str) -> str:
    cases = [
        f"WHEN {_has(shape)} THEN regexp_extract(line, {_literal(shape.java_regex)}, {shape.columns[name]})"
        for shape in (TOKEN, AUDITED_TOKEN, HOLDER, SUBMITTER, STATE_CHANGE)
        if name in shape.columns
    ]
    text = f"nullif(CASE {' '.join(cases)} END, '')"
    return f"timestamp_millis(try_cast({text} AS long))" if kind == "timestamp" else f"try_cast({text} AS {kind})"


def _has(shape: Shape) -> str:
    numbers = [str(number) for number, pattern in enumerate(PATTERNS) if shape in pattern.shapes]
    return f"pattern IN ({', '.join(numbers)})"


def _literal(text: str) -> str:
    """Quote as a raw SQL string, which keeps backslashes; no pattern contains a double quote."""
    return f'r"{text}"'


def lines_of(records: DataFrame) -> DataFrame:
    """Turn Kafka's records into lines with their origin. Bytes that are not UTF-8 become U+FFFD, in `line` only."""
    key = F.split(F.col("key").cast("string"), ":")
    return records.select(
        key[0].alias("file"),
        key[1].cast("long").alias("byte_offset"),
        F.octet_length("value").alias("length"),
        "topic",
        "partition",
        "offset",
        F.make_valid_utf8(F.col("value").cast("string")).alias("line"),
    )


def kafka_options(settings: argparse.Namespace) -> dict[str, str]:
    """Return Kafka's options. The keytab is relative to the container's working directory, where `--files` puts it."""
    jaas = (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true useTicketCache=false "
        f'keyTab="{settings.kafka_keytab}" principal="{settings.kafka_principal}";'
    )
    return {
        "subscribe": settings.topic,
        "startingOffsets": settings.starting_offsets,
        "maxOffsetsPerTrigger": str(settings.max_offsets_per_trigger),
        "kafka.bootstrap.servers": settings.bootstrap_servers,
        "kafka.security.protocol": settings.security_protocol,
        "kafka.sasl.mechanism": "GSSAPI",
        "kafka.sasl.kerberos.service.name": "kafka",
        "kafka.sasl.jaas.config": jaas,
    }


def start(spark: SparkSession, settings: argparse.Namespace) -> StreamingQuery:
    """Start the query. Its `_spark_metadata` makes the table exactly-once: read it with Spark or by that list."""
    records = spark.readStream.format("kafka").options(**kafka_options(settings)).load()
    zone = settings.time_zone or spark.conf.get("spark.sql.session.timeZone") or "UTC"
    return (
        events(lines_of(records), zone)
        .coalesce(settings.files_per_batch)
        .writeStream.format("parquet")
        .queryName("cluster_events")
        .option("path", settings.table)
        .option("checkpointLocation", settings.checkpoint)
        .trigger(processingTime=f"{settings.trigger_seconds} seconds")
        .start()
    )


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--bootstrap-servers", required=True, help="host:port,...")
    add("--topic", required=True)
    add("--table", required=True, help="folder of the parquet table; one stream each")
    add("--checkpoint", required=True, help="one stream each")
    add("--kafka-principal", required=True)
    add("--kafka-keytab", required=True, help="its name in the container's working directory")
    add("--security-protocol", default="SASL_PLAINTEXT", choices=("SASL_PLAINTEXT", "SASL_SSL"))
    add("--trigger-seconds", type=float, default=5.0, help="each batch is a file: on a large cluster take minutes")
    add("--starting-offsets", default="earliest", help="only for a checkpoint that doesn't exist yet")
    add("--max-offsets-per-trigger", type=int, default=200_000)
    add("--files-per-batch", type=int, default=1)
    add("--time-zone", help="of the daemons that wrote the lines; default: the session's")
    return parser


def main() -> None:
    from kstream_driver import Generation  # type: ignore[import-not-found]  # shipped beside this file by --py-files

    settings = arguments().parse_args()
    spark = SparkSession.builder.getOrCreate()
    generation = Generation.of(spark)
    generation.await_termination(start(spark, settings))


if __name__ == "__main__":
    main()
