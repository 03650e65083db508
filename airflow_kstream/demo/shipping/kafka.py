"""A producer of transactions that gives up."""

from __future__ import annotations

from kafka import KafkaProducer
from kafka import errors as kafka_errors

from airflow_kstream.clients.kafka import KafkaLogin


class TransactionalProducer(KafkaProducer):  # type: ignore[misc]
    """A kafka-python producer that gives up. The original can lose a request when a connection breaks (seen in 3.0.12):
    then `commit_transaction` never returns, and `close` waits for data that can't be sent. After any error, abandon it.
    """

    def __init__(self, transactional_id: str, login: KafkaLogin) -> None:
        milliseconds = {"request_timeout_ms": 10_000, "delivery_timeout_ms": 20_000, "max_block_ms": 30_000}
        super().__init__(transactional_id=transactional_id, linger_ms=5, **milliseconds, **login.options())

    def commit_within(self, seconds: float) -> None:
        """Commit. Raises KafkaTimeoutError: when the outcome is unknown by then; only a successor can find it out."""
        result = self._transaction_manager.begin_commit()
        self._sender.wakeup()
        if not result.wait(timeout_ms=seconds * 1000):
            raise kafka_errors.KafkaTimeoutError(f"no answer to the commit within {seconds:.0f} s")

    def abandon(self) -> None:
        """Stop at once, without sending or waiting. A successor or the brokers' timeout ends an open transaction."""
        self._closed = True
        self._unregister_cleanup()
        self._sender.force_close()
