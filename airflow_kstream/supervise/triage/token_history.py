"""The lives of delegation tokens, from the logs of a ResourceManager or NameNode on this host."""

from __future__ import annotations

from datetime import tzinfo
from functools import cache
from pathlib import Path

from airflow_kstream.model.errors import NotFound
from airflow_kstream.model.kerberos.token_history import TokenHistory
from airflow_kstream.model.log_scan.scanner import Scanner
from airflow_kstream.model.logs.log_line import HEAD
from airflow_kstream.policy.triage.token_history import TOKEN_LINES, token_histories
from airflow_kstream.supervise.triage.scan import scanned_logs


def histories_in(path: Path, application: str | None = None, zone: tzinfo | None = None) -> tuple[TokenHistory, ...]:
    """Return the tokens that the logs in a file or a folder tell of, all or those of one application.

    Raises InvalidInput: when there is no log that can be read. Raises NotFound: when none tells of a token.
    """
    logs, _ = scanned_logs(path, _scanner())
    found = token_histories(logs, application, zone)
    if not found:
        whose = f" of {application}" if application else ""
        raise NotFound(f"no line tells of a token{whose}", tried=f"read the logs of {path}")
    return found


@cache
def _scanner() -> Scanner:
    return Scanner(TOKEN_LINES, HEAD)
