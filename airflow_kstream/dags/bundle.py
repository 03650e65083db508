"""The shipped DAG files as a bundle: Airflow finds them wherever this package is installed."""

from __future__ import annotations

from typing import Any

from airflow.dag_processing.bundles.local import LocalDagBundle

from airflow_kstream.dags import STUBS


class KstreamDagBundle(LocalDagBundle):
    """A local bundle of the shipped DAG files. Its DAGs are those of the folders that `[kstream]` names.

    Example::

        [dag_processor]
        dag_bundle_config_list = [
            {"name": "kstream", "classpath": "airflow_kstream.dags.bundle.KstreamDagBundle", "kwargs": {}}
            ]

    What it does not do: it has no versions. The declarations lie outside of it and change without it.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(path=str(STUBS), **kwargs)
