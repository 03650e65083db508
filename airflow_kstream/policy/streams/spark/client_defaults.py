"""What becomes of a client's own spark-defaults.conf where secrets go to it through a properties file."""

from __future__ import annotations

from dataclasses import replace

from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.streams.spark_installation import SparkInstallation
from airflow_kstream.model.streams.submission import Submission

# The first that reads its defaults beside a properties file, with --load-spark-defaults (SPARK-48392). To older ones
# the option is an error, and the file replaces the defaults (SparkSubmitArguments.mergeDefaultSparkProperties).
_READS_BOTH = (4, 0)


def with_client_defaults(plan: Submission, client: SparkInstallation | None) -> Submission:
    """Return the submission with what this client's defaults need if there are secrets, else unchanged.

    `client` is None before the client was asked: then nothing is an obstacle yet. The defaults are the host's, so they
    belong to no declaration and to no fingerprint of one.

    Raises Unavailable: when the client could not be asked now, and there are secrets.
    """
    if not plan.secret_conf:
        return plan
    if client is None:
        note = (
            f"the client's own spark-defaults.conf holds below the secrets; {plan.binary} tells which when it submits"
        )
        return replace(plan, notes=(*plan.notes, note))
    if client.trouble:
        raise Unavailable(client.trouble, tried=f"ask {plan.binary} which Spark it runs")
    if client.version >= _READS_BOTH:
        return plan
    if not client.version or not client.conf_dir:
        return replace(plan, obstacle=_untold(plan.binary))
    note = (
        f"below the secrets in the private properties file stand the confs of {client.defaults_file}, which Spark "
        f"{'.'.join(map(str, client.version))} does not read beside such a file"
    )
    return replace(plan, defaults_file=client.defaults_file, notes=(*plan.notes, note))


def _untold(binary: str) -> str:
    return (
        f"{binary} does not tell which Spark it runs and which spark-defaults.conf that reads, as Spark's own tells "
        "with --version where SPARK_PRINT_LAUNCH_COMMAND=1 is set; before Spark 4 the file with the secrets would "
        "replace these defaults. Set SPARK_HOME on this host to the folder with Spark's own bin/spark-submit, or put "
        "that bin first on PATH"
    )
