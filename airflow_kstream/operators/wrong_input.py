"""Wrong input of an operator: its task fails without retries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream.model.errors import InvalidInput


@contextmanager
def wrong_input_is_final() -> Iterator[None]:
    """Raises AirflowFailException: in place of InvalidInput, because a retry would read the same input again."""
    try:
        yield
    except InvalidInput as error:
        raise AirflowFailException(str(error)) from error
