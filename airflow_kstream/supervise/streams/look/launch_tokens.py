"""The tokens that a generation without a keytab was submitted with, in the stream's folder: only its client told them.

A file that is missing, of an earlier version or broken, tells nothing: the horizon then counts HDFS's token alone, as
if the client had said nothing.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from airflow_kstream.model.errors import Denied, InvalidInput, KstreamError
from airflow_kstream.model.streams.contract import launched_file
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.launch_token import LaunchToken
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.supervise.streams.folder.formats import read_tokens, written_tokens
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder

log = logging.getLogger(__name__)


def keep_tokens(folder: StreamFolder, claim: Claim, tokens: tuple[LaunchToken, ...]) -> None:
    """Write down what a claim's client told. The submission is done by then, so nothing fails for the lack of it."""
    if not tokens or not _lives_on_them(claim):
        return
    try:
        folder.put_once(launched_file(claim.generation), written_tokens(tokens, claim.nonce))
    except KstreamError as error:
        log.warning("The tokens of generation %d are not written down: %s", claim.generation, error)


def with_tokens(folder: StreamFolder, claim: Claim, names: frozenset[str]) -> Claim:
    """Return the claim with the tokens of its launch, read once. Raises Unavailable: when HDFS is away."""
    name = launched_file(claim.generation)
    if claim.credentials.tokens is not None or claim.foreign or name not in names or not _lives_on_them(claim):
        return claim
    try:
        tokens = read_tokens(folder.text(name), claim.nonce)
    except (InvalidInput, Denied):
        tokens = ()
    return replace(claim, credentials=replace(claim.credentials, tokens=tokens))


def _lives_on_them(claim: Claim) -> bool:
    """Return False for a job that replaces its launch's tokens with its own."""
    return isinstance(claim.spec, StreamSpec) and not claim.spec.credentials.renews_itself
