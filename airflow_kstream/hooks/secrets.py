"""Secrets that Airflow keeps: passwords of connections, and Variables, from whichever secrets backend."""

from __future__ import annotations

from airflow.sdk import BaseHook, Variable
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from airflow_kstream.model.errors import NotFound
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.supervise.streams.secrets import LocalSecrets


class AirflowSecrets:
    """`conn:ID` and `var:NAME`; and what lies on this worker, `env:NAME` and `file:PATH`.

    What is found is masked in the task's log: it is a secret by its declaration, and so no ordinary word.
    """

    def find(self, ref: SecretRef) -> str:
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
