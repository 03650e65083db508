"""Secrets that Airflow keeps: passwords of connections, and Variables, from any secrets backend."""

from __future__ import annotations

from airflow.sdk import BaseHook, Variable
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from airflow_kstream.model.errors import NotFound
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.supervise.streams.folder.secrets import LocalSecrets


class AirflowSecrets:
    """Lookup of `conn:ID` and `var:NAME` in Airflow, and of `env:NAME` and `file:PATH` on this worker.

    The task's log masks each value that it finds: the declaration says that it is a secret, not an ordinary word.
    """

    def find(self, ref: SecretRef) -> str:
        """Return the secret. Raises NotFound: when it does not exist or is empty."""
        value = _LOOKUPS[ref.kind](ref.name) if ref.kind in _LOOKUPS else LocalSecrets().find(ref)
        if not value:
            raise NotFound(f"{ref} is not there, or empty", tried="look up a secret in Airflow")
        mask_secret(value)
        return value


def _password(conn_id: str) -> str | None:
    try:
        return BaseHook.get_connection(conn_id).password
    except AirflowNotFoundException:
        return None


def _variable(name: str) -> str | None:
    value: str | None = Variable.get(name, default=None)
    return value


_LOOKUPS = {"conn": _password, "var": _variable}
