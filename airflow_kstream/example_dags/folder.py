"""Streams that are declared in a folder: a DAG for each file `<connection id>/<stream>.yaml` of it, and some for all.

Copy this file into a folder of DAGs, and let `[kstream] streams_folder` name the folder of declarations. A file there:

    name: orders
    credentials: {mode: keytab, principal: orders@EXAMPLE.COM, keytab: /etc/security/keytabs/orders.keytab}
    application: /opt/jobs/orders.py
    checkpoints: [/data/checkpoints/orders]
    kafka: {bootstrap_servers: "broker1.example.com:9092"}

`airflow_kstream.dags.leases`, `.tickets` and `.tokens` read the declarations of maintenance in the same way.
"""

from __future__ import annotations

from pathlib import Path

from airflow_kstream.dags.streams import declared_dags

# As an example it makes no DAG: your own copy, or the bundle, makes those of these ids.
if Path(__file__).parent.name != "example_dags":
    globals().update(declared_dags())
