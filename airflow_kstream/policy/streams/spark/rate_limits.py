"""Limits on what one batch reads: with one, a batch that was planned after a moment can lack what came before it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from airflow_kstream.model.streams.stream import StreamSpec

# maxOffsetsPerTrigger (Kafka), maxFilesPerTrigger, maxBytesPerTrigger, maxEventsPerTrigger and their like, and
# streaming-max-rows-per-micro-batch (Iceberg); however a job spells an option of its own: --max-offsets-per-trigger.
# A minimum holds back the records below it: a later batch of another source then lacks them.
_LIMIT = re.compile(r"(?:max|min)[-_.]?[a-z]+[-_.]?per[-_.]?(?:trigger|micro[-_.]?batch|batch)", re.IGNORECASE)


def limited(spec: StreamSpec, *, beside_kafka: bool = False) -> str:
    """Return why a later batch proves nothing of the stream, with the way out; empty if it does.

    Where brokers are declared, offsets prove it of Kafka's topics; `beside_kafka` asks for the query's other sources.
    What the job's own code sets is not known.
    """
    limits = list(dict.fromkeys(_limits(spec)))
    if not limits or (spec.kafka.bootstrap_servers and not beside_kafka):
        return ""
    way_out = "declare `kafka: {bootstrap_servers: ...}`, whose offsets prove it"
    if spec.kafka.bootstrap_servers:
        way_out = "nothing else proves it of what it reads beside Kafka"
    return (
        f"{spec.name} limits what a batch reads ({', '.join(limits)}), so that a batch that is planned after a moment "
        f"can lack what had arrived before it; {way_out}"
    )


def _limits(spec: StreamSpec) -> Iterator[str]:
    settings = {**spec.plain_conf, **spec.deploy.environment}
    places = (*spec.arguments, *(f"{name}={value}" for name, value in settings.items()))
    for text in places:
        # An argument may hold anything: what is shown is the option's name alone.
        yield from _LIMIT.findall(text)
