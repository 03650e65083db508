"""The provider's metadata for Airflow. Every Airflow process imports this module: it imports nothing itself."""

from __future__ import annotations

from typing import Any

_INTEGRATION = "Kerberized Hadoop"
_OPTIONAL_TEXT = ["string", "null"]

# The form of the connection. Everything here is stored in the connection's `extra` under the field's name.
# The base64 keytab is not a field of `extra` but the connection's password: Airflow masks `extra` by the names of its
# keys, and "keytab" is none of those names, so its API would show the keytab to everyone who may read connections.
_CONNECTION_FIELDS: dict[str, dict[str, Any]] = {
    "resourcemanagers": {
        "label": "ResourceManager web addresses",
        "description": "Base URLs, separated by commas, every member of an HA pair: https://rm1:8090,https://rm2:8090. "
        "Leave it empty to take them from the Hadoop configuration folder.",
        "schema": {"type": _OPTIONAL_TEXT},
    },
    "namenodes": {
        "label": "NameNode web addresses",
        "description": "Base URLs, separated by commas, every member of an HA pair: https://nn1:9871,https://nn2:9871. "
        "Leave it empty to take them from the Hadoop configuration folder.",
        "schema": {"type": _OPTIONAL_TEXT},
    },
    "hadoop_conf_dir": {
        "label": "Hadoop configuration folder",
        "description": "A folder on the workers with core-site.xml, hdfs-site.xml and yarn-site.xml. "
        "spark-submit needs it; the addresses above may come from it.",
        "schema": {"type": _OPTIONAL_TEXT},
    },
    "default_fs": {
        "label": "Default file system",
        "description": "fs.defaultFS, for instance hdfs://nameservice1. "
        "Leave it empty to take it from the Hadoop configuration folder.",
        "schema": {"type": _OPTIONAL_TEXT},
    },
    "principal": {
        "label": "Kerberos principal",
        "description": "Who supervises: primary@REALM or primary/instance@REALM. It needs the right to view "
        "applications and to read the checkpoints, and its user speaks for all streams of the state folder: give each "
        "stream a principal of its own.",
        "schema": {"type": "string", "pattern": "^[^/@\\s]+(/[^/@\\s]+)?@[^/@\\s]+$", "minLength": 3},
    },
    "keytab_path": {
        "label": "Keytab file",
        "description": "Absolute path of the principal's keytab on workers and triggerers, readable by Airflow's user "
        "only. One of keytab file, base64 keytab and ticket cache is needed.",
        "schema": {"type": _OPTIONAL_TEXT},
    },
    "ticket_cache": {
        "label": "Ticket cache",
        "description": "Absolute path of a cache that somebody else keeps fresh, where the principal has no keytab.",
        "schema": {"type": _OPTIONAL_TEXT},
    },
    "krb5_conf": {
        "label": "krb5.conf",
        "description": "Absolute path of the Kerberos configuration, if it is not the system's /etc/krb5.conf.",
        "schema": {"type": _OPTIONAL_TEXT},
    },
    "tls_ca": {
        "label": "TLS certificate authority",
        "description": "Absolute path of a PEM file with the authority that signed the servers' certificates, if it "
        "is not one of the system's. Certificates are always verified.",
        "schema": {"type": _OPTIONAL_TEXT},
    },
    "state_dir": {
        "label": "State folder on HDFS",
        "description": "An HDFS folder outside every checkpoint, for claims, orders, declarations and ends. "
        "It outlives Airflow's database.",
        "schema": {"type": "string", "default": "/kstream", "pattern": "^/.+"},
    },
    "spark_conf": {
        "label": "Default Spark configuration",
        "description": "A JSON object of spark.* settings for every stream of this cluster; a stream's own win.",
        "schema": {"type": ["object", "null"]},
    },
    "flink_homes": {
        "label": "Flink installations",
        "description": "A JSON object of folders on the workers, by the names that declarations have for them.",
        "schema": {"type": ["object", "null"]},
    },
    "flink_conf": {
        "label": "Default Flink configuration",
        "description": "A JSON object of Flink's settings for every stream of this cluster; a stream's own win.",
        "schema": {"type": ["object", "null"]},
    },
    "client_environment": {
        "label": "Environment of the Spark client",
        "description": "A JSON object of variables that spark-submit gets beside the usual ones: a value, which is "
        'shown, or {"inherit": NAME} for a variable of the worker. `kstream doctor` names those that the client\'s own '
        "script misses.",
        "schema": {"type": ["object", "null"]},
    },
    "allow": {
        "label": "What declarations may use",
        "description": "A JSON object of lists of patterns: principals, proxy_users, secrets, local_files, notifiers, "
        "servers, brokers. "
        "{} allows what the connection itself has; empty, declarations may use all that workers reach. "
        "`kstream connection allow` prints what the present ones need.",
        "schema": {"type": ["object", "null"], "default": {}},
    },
}

_CONNECTION_TYPE: dict[str, Any] = {
    "connection-type": "kstream",
    "hook-class-name": "airflow_kstream.hooks.cluster.KstreamClusterHook",
    "hook-name": "Kerberized Hadoop cluster (kstream)",
    "ui-field-behaviour": {
        "hidden-fields": ["host", "port", "schema", "login", "extra"],
        "relabeling": {"password": "Keytab (base64)"},
        "placeholders": {
            "password": "base64 -w0 watcher.keytab",
            "resourcemanagers": "https://rm1.example.com:8090,https://rm2.example.com:8090",
            "namenodes": "https://nn1.example.com:9871,https://nn2.example.com:9871",
            "hadoop_conf_dir": "/etc/hadoop/conf",
            "default_fs": "hdfs://nameservice1",
            "principal": "watcher/airflow.example.com@EXAMPLE.COM",
            "keytab_path": "/etc/security/keytabs/watcher.keytab",
            "ticket_cache": "/var/lib/airflow/watcher.ccache",
            "krb5_conf": "/etc/krb5.conf",
            "tls_ca": "/etc/ssl/certs/hadoop-ca.pem",
            "state_dir": "/kstream",
            "spark_conf": '{"spark.yarn.queue": "streams"}',
            "flink_homes": '{"1.20": "/opt/flink-1.20.3"}',
            "flink_conf": '{"taskmanager.memory.process.size": "4g"}',
            "client_environment": '{"SPARK_MAJOR_VERSION": "3", "HADOOP_HOME": {"inherit": "HADOOP_HOME"}}',
            "allow": '{"secrets": ["conn:streams_*"], "local_files": ["/opt/jobs/"]}',
        },
    },
    "conn-fields": _CONNECTION_FIELDS,
}


def _option(kind: str, default: str, example: str, description: str) -> dict[str, Any]:
    return {
        "description": description,
        "version_added": "0.1.0",
        "type": kind,
        "example": example,
        "default": default,
        "sensitive": False,
    }


_WHERE = "The DAG processor and every worker read it; without it there are no such DAGs."
_DURATION = "Written like 90s, 15m, 6h or 1h30m."

# The section `[kstream]`, which airflow_kstream.settings reads. Every default is here and nowhere else.
_SETTINGS: dict[str, Any] = {
    "description": "The shipped DAGs of airflow-kstream: where their declarations lie, and how streams are kept.",
    "options": {
        "streams_folder": _option(
            "string",
            "",
            "/opt/airflow/kstream/streams",
            f"The folder with one YAML file for each stream: <connection id>/<stream>.yaml.\n{_WHERE}\n",
        ),
        "dag_id_prefix": _option(
            "string",
            "",
            "etl-",
            "What stands before the id of each shipped DAG: at most 40 letters, digits, '_', '.' or '-'; others\n"
            "become '_'. After a change each DAG is another one for Airflow: turn the new ones on. Until then\n"
            "undeclared-* keeps the streams that the former ones watched. The DAG processor, every worker and the API\n"
            "server read it.\n",
        ),
        "without_dags": _option(
            "string",
            "",
            "doctor, housekeeping",
            "The families of shipped DAGs that are not made: control, fleet, housekeeping, doctor, leases, tickets,\n"
            "keytabs, tokens. Without fleet, nobody hears of streams that nobody watches. The DAG processor and every\n"
            "worker read it.\n",
        ),
        "spark_conn_id": _option(
            "string",
            "",
            "spark_default",
            "The connection of type spark whose queue and client the streams' DAGs submit with, where a declaration\n"
            "names none in deploy.queue and deploy.spark_submit.\n",
        ),
        "leases_folder": _option(
            "string",
            "",
            "/opt/airflow/kstream/leases",
            "The folder with one YAML file for each cluster whose stuck files are closed: <connection id>.yaml.\n"
            f"{_WHERE}\n",
        ),
        "tickets_folder": _option(
            "string",
            "",
            "/opt/airflow/kstream/tickets",
            "The folder with one YAML file for each cluster whose tickets are kept fresh: <connection id>.yaml.\n"
            "The DAG processor, every worker and every triggerer read it; without it there are no such DAGs, and\n"
            "operators, sensors and hooks know the connection's own principal alone.\n",
        ),
        "tokens_folder": _option(
            "string",
            "",
            "/opt/airflow/kstream/tokens",
            "The folder with one YAML file for each cluster whose tokens are watched: <connection id>.yaml.\n"
            f"{_WHERE}\n",
        ),
        "doctor_folder": _option(
            "string",
            "",
            "/opt/airflow/kstream/doctor",
            "The folder with one YAML file of accepted findings for each cluster: <connection id>.yaml. The DAGs that\n"
            "examine clusters read it on their workers; without it nothing is accepted.\n",
        ),
        "docs_url": _option(
            "string",
            "",
            "https://docs.example.com/kstream",
            "Where this package's site is served, as `./kstream docs build` makes it. Messages about events then end\n"
            "with a link to the runbook's entry. The DAG processor, every worker and every triggerer read it.\n",
        ),
        "ensure_every": _option(
            "string",
            "5m",
            "1m",
            "How soon a stream that nobody watches is looked after again, and an edit of its policies found.\n"
            f"{_DURATION}\n",
        ),
        "fleet_every": _option(
            "string",
            "5m",
            "1h",
            f"How often all streams of a cluster are looked at, to show those that need a hand.\n{_DURATION}\n",
        ),
        "doctor_every": _option(
            "string",
            "1d",
            "6h",
            "How often a cluster is examined for what will go wrong. Each time logs in to the KDC with each keytab.\n"
            f"{_DURATION}\n",
        ),
        "declared_executors": _option(
            "boolean",
            "True",
            "False",
            "Whether a declaration may choose its tasks' queue and executor_config, a pod included. They count when a\n"
            "DAG is read, before a connection's `allow` can: set it to False where authors are to be bounded.\n",
        ),
        "installation": _option(
            "string",
            "",
            "staging",
            "The name of this Airflow among several that share a state_dir and the id of its connection. What each of\n"
            "them declared, and told, is kept in the state_dir under it.\n"
            "The DAG processor, every worker and every triggerer read it.\n",
        ),
        "retries": _option("integer", "20", "3", "How often Airflow retries the task that watches a stream.\n"),
        "notifier": _option(
            "string",
            "",
            "airflow.providers.slack.notifications.slack.SlackNotifier",
            "The class of the Airflow notifier that tells the events of streams and clusters: any BaseNotifier. A\n"
            "declaration may name another one under notify. Without it, events are in the logs and metrics alone.\n"
            "The DAG processor, every worker and every triggerer read it.\n",
        ),
        "notifier_kwargs": _option(
            "string",
            "",
            '{"slack_conn_id": "alerts", "channel": "#streams", "text": "{{ event.mrkdwn }}"}',
            "The arguments of that notifier, as a JSON object. It names connections and holds no secret. Where the\n"
            "notifier takes templates, event is the event: words, kind, ended, cluster, stream, since, until, why and\n"
            "runbook. The words quote what others wrote: mrkdwn has them escaped for Slack, html for mail.\n",
        ),
        "retry_delay": _option(
            "string", "1m", "30s", f"How long Airflow waits before it retries that task.\n{_DURATION}\n"
        ),
    },
}


def get_provider_info() -> dict[str, Any]:
    """Return the provider's entry point data, as airflow's provider_info.schema.json describes it.

    It lists what is public in `airflow_kstream`. The plugin has an entry point of its own: named here as well, it would
    be loaded twice where `[core] lazy_discover_providers` is off, and Airflow shows the second time as an error.
    """
    return {
        # Discovery raises if this is not the distribution's own name.
        "package-name": "airflow-kstream",
        "name": "Kerberized streams",
        "description": "Keeps streaming jobs alive on kerberized Hadoop.",
        "integrations": [
            {
                "integration-name": _INTEGRATION,
                "external-doc-url": "https://hadoop.apache.org/",
                "tags": ["apache"],
            }
        ],
        "operators": [
            {
                "integration-name": _INTEGRATION,
                "python-modules": [
                    "airflow_kstream.operators.streams",
                    "airflow_kstream.operators.stream_control",
                    "airflow_kstream.operators.cluster_doctor",
                    "airflow_kstream.operators.housekeeping",
                    "airflow_kstream.operators.token_push",
                    "airflow_kstream.operators.leases",
                    "airflow_kstream.operators.tickets",
                    "airflow_kstream.operators.triage",
                ],
            },
        ],
        "sensors": [
            {
                "integration-name": _INTEGRATION,
                "python-modules": [
                    "airflow_kstream.sensors.leases",
                    "airflow_kstream.sensors.progress",
                    "airflow_kstream.sensors.tickets",
                    "airflow_kstream.sensors.tokens",
                ],
            },
        ],
        "triggers": [
            {
                "integration-name": _INTEGRATION,
                "python-modules": ["airflow_kstream.triggers.events", "airflow_kstream.triggers.leases"],
            },
        ],
        "hooks": [
            {
                "integration-name": _INTEGRATION,
                "python-modules": ["airflow_kstream.hooks.cluster", "airflow_kstream.hooks.kerberos"],
            },
        ],
        "notifications": ["airflow_kstream.notifications.triage.TriageNotifier"],
        "bundles": [{"integration-name": _INTEGRATION, "python-modules": ["airflow_kstream.dags.factory"]}],
        "connection-types": [_CONNECTION_TYPE],
        "asset-uris": [{"schemes": ["kstream"], "handler": "airflow_kstream.assets.sanitize_uri"}],
        "config": {"kstream": _SETTINGS},
        "cli": ["airflow_kstream.airflow_cli.commands"],
        "extra-links": [
            "airflow_kstream.links.PageLink",
            "airflow_kstream.links.YarnApplicationLink",
            "airflow_kstream.links.YarnLogsLink",
        ],
    }
