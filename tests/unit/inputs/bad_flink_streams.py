"""Flink streams that nobody can mean, as YAML that replaces fields of a good one, with the refusal; and good ones."""

from __future__ import annotations

GOOD = """\
name: orders
engine: flink
credentials: {mode: keytab, principal: streamer/edge@EXAMPLE.COM, keytab: /etc/streamer.keytab}
application: hdfs:///apps/orders.jar
checkpoints: [/flink/orders]
"""
# What only Flink's settings say stands beside them, in airflow_kstream/model/streams/flink_conf.py.
BAD: list[tuple[str, str]] = [
    ("engine: storm", "engine is 'storm'; allowed is 'spark' or 'flink'"),
    (
        "deploy: {executors: 4}",
        r"deploy\.executors: there is no such field; the fields of deploy are queue, main_class",
    ),
    ("deploy: {slots: 0}", r"deploy\.slots is 0"),
    ("deploy: {rest_ports: 50100}", r"deploy\.rest_ports is 50100"),
    ("checkpoints: [/flink/a, /flink/b]", "checkpoints: allowed is one folder, below which each generation has one"),
    ("checkpoints: none", "checkpoints: allowed is one folder"),
    ("application: /jobs/orders.py", r"application is '/jobs/orders\.py'; allowed is the path or URI of one \.jar"),
    ("application: /jobs/orders.sql", r"allowed is the path or URI of one \.jar file"),
    ("savepoints: {folder: /}", r"savepoints\.folder is /; allowed is a folder"),
    ("savepoints: {folder: //flink/orders/}", r"savepoints\.folder is /flink/orders; allowed is a folder apart from"),
    (
        f"savepoints: {{folder: /flink/orders/{'0a' * 16}/s}}",
        "apart from those of jobs in /flink/orders",
    ),
    ("outputs: [/flink/orders/out]", "outputs: /flink/orders/out lies in the checkpoints /flink/orders"),
    ("outputs: [/flink/orders]", "outputs: /flink/orders lies in the checkpoints"),
    ("arguments: [--password=hunter2]", "let the job read it from its configuration, and in conf write"),
    ("savepoints: {keep: 0}", r"savepoints\.keep is 0"),
    ("outputs: [data]", "outputs"),
    ('kafka: {bootstrap_servers: "b:9092"}', "kafka: remove it; checkpoints alone show the progress of a Flink job"),
    ("conf: {high-availability.type: zookeeper}", r"conf sets high-availability\.type, which it may not: without it"),
    ("conf: {execution.target: local}", r"conf sets execution\.target, which it may not: target is yarn-application"),
    ("conf: {pipeline.jars: /a.jar}", r"conf sets pipeline\.jars, which it may not: use deploy\.jars"),
    ("conf: {yarn.tags: 'a,kstream-x'}", "no tag of a job's own may begin with kstream"),
    ('conf: {s3.access: {secret: "conn:a"}}', r"conf takes s3\.access from a secret, which it may not: Flink shows"),
    ("conf: {execution.checkpointing.num-retained: 1}", "allowed is 2 or more"),
    (
        "conf: {state.checkpoints.num-retained: 5}",
        r"conf sets state\.checkpoints\.num-retained, which it may not: use its newer name, execution\.checkpointing",
    ),
    (
        "conf: {security.kerberos.tokens.renewal.retry.backoff: 1min}",
        r"use its newer name, security\.delegation\.tokens\.renewal\.retry\.backoff",
    ),
    ("conf: {taskmanager.heap.size: 4g}", r"taskmanager\.heap\.size, which it may not: use deploy\.taskmanager_memory"),
    ("conf: {security.keytab: /a}", r"security\.keytab, which it may not: use credentials\.keytab"),
    ("conf: {state.checkpoint-storage: jobmanager}", "checkpoints in the JobManager's memory end with it"),
    (
        "conf: {execution.checkpointing.storage: org.apache.flink.runtime.state.storage.JobManagerCheckpointStorage}",
        "checkpoints in the JobManager's memory end with it",
    ),
    ("conf: {job.autoscaler.enabled: 'true'}", r"job\.autoscaler\.enabled, which it may not: deploy\.parallelism"),
    ("conf: {scheduler-mode: REACTIVE}", "for standalone clusters alone, and not on YARN"),
    ("conf: {execution.runtime-mode: BATCH}", "a job in batch mode makes no checkpoints"),
    ("conf: {execution.checkpointing.interval: 0s}", "allowed is a duration of 10ms or more, such as 30s"),
    ("conf: {execution.checkpointing.interval: often}", "allowed is a duration of 10ms or more"),
]
ACCEPTED = {
    "all defaults": GOOD,
    "its own fields": GOOD
    + "outputs: [/data/orders]\nsavepoints: {folder: /flink/saved, format: canonical, keep: 5}\n"
    + "deploy: {flink: '1.20', parallelism: 4, slots: 2, jobmanager_memory: 1g, taskmanager_memory: 4g,\n"
    + "  lib_dirs: ['hdfs:///flink/lib'], rest_ports: 50100-50200}\n",
    "a masked secret": GOOD + 'conf: {s3.secret-key: {secret: "conn:s3"}, execution.checkpointing.interval: 30s}\n',
    "savepoints beside the checkpoints of each job": GOOD + "savepoints: {folder: /flink/orders/savepoints}\n",
    "outputs beside the checkpoints": GOOD + "outputs: [/flink/orders-out]\n",
    "values that others may not have": GOOD
    + "conf: {execution.runtime-mode: STREAMING, execution.checkpointing.storage: filesystem,\n"
    + "  jobmanager.scheduler: adaptive}\n",
}
