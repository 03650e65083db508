"""A stream's folder in `state_dir`: claims, fences, markers and desired state. It outlives Airflow's database."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.local.whoami import user_at_host
from airflow_kstream.jobs.kstream_driver import claim_file, newest_claim, started_marker, stop_marker
from airflow_kstream.model.errors import Conflict, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.generation import Claim, Desired, DesiredState, Position, StreamId, fence_name
from airflow_kstream.model.keytab import KeyVersion
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.model.tokens import TokenLifetimes

_DESIRED = "desired.json"
# The watching principal reads what the stream's own writes; nothing in here is secret.
_FOLDER_MODE, _FILE_MODE = "755", "644"


@dataclass(frozen=True)
class ClaimDraft:
    """A claim before it is made; `nonce` tells our own file from a rival's."""

    generation: int
    nonce: str
    spec: StreamSpec
    lifetimes: TokenLifetimes
    positions: Mapping[str, Position]
    reason: str
    adopted: str | None = None
    adopted_started: datetime | None = None
    key: KeyVersion | None = None


class StreamFolder:
    """The files of one stream. Every write is complete or absent for whoever reads."""

    def __init__(self, hdfs: Hdfs, stream: StreamId) -> None:
        self._hdfs = hdfs
        self._stream = stream

    def names(self) -> frozenset[str]:
        return frozenset(file.name for file in self._hdfs.list(self._stream.folder))

    def claim(self, names: frozenset[str]) -> Claim | None:
        """The highest claim among these names."""
        number = newest_claim(set(names))
        return self._read_claim(number) if number else None

    def make_claim(self, candidate: ClaimDraft) -> Claim:
        """Get the exclusive right to submit this generation, or raise Conflict.

        The fence comes first, so that whoever sees the claim sees its fence too; then the content under a name of
        its own; then one rename that the NameNode grants to a single caller. On any error the claim is read back,
        because our own success can look like a loss.
        """
        target = self._path(claim_file(candidate.generation))
        fence = self._path(fence_name(candidate.generation, candidate.nonce))
        draft = self._path(f".claim-{candidate.nonce}")
        self._hdfs.make_folder(self._stream.folder, _FOLDER_MODE)
        self._hdfs.write(fence, f"{self._stream} generation {candidate.generation}\n", permission=_FILE_MODE)
        self._hdfs.write(draft, json.dumps(_claim_json(candidate), indent=1), permission=_FILE_MODE)
        try:
            self._hdfs.rename_onto_nothing(draft, target)
        except (Conflict, NotFound, Unavailable) as error:
            if not self._is_ours(candidate):
                self._hdfs.delete(draft)
                self._hdfs.delete(fence)
                raise self._lost(candidate, error) from error
        return self._read_claim(candidate.generation)

    def driver_started(self, generation: int, names: frozenset[str]) -> datetime | None:
        """When the generation's driver said that it runs; None where it did not, or does not take part in that."""
        marker = started_marker(generation)
        return self._hdfs.status(self._path(marker)).modified if marker in names else None

    def ask_to_stop(self, generation: int, why: str) -> None:
        self._put(stop_marker(generation), json.dumps({"why": why, "by": user_at_host()}))

    def take_fence(self, fence: str) -> None:
        self._hdfs.delete(self._path(fence))

    def desired(self, names: frozenset[str]) -> Desired:
        if _DESIRED not in names:
            return Desired()
        path = self._path(_DESIRED)
        try:
            said = json.loads(self._hdfs.read(path))
            at = self._hdfs.status(path).modified
            return Desired(DesiredState(said["wish"]), said["restart_through"], said["by"], at, said["reason"])
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"{path} is not a desired state: {error!r}") from error

    def want(self, state: DesiredState, reason: str, restart_up_to: int | None = None) -> None:
        """Write down what a person wants; the newest word counts. A restart that was asked for stays asked for."""
        if restart_up_to is None:
            restart_up_to = self.desired(self.names()).restart_up_to
        said = {"wish": state, "restart_through": restart_up_to, "by": user_at_host(), "reason": reason}
        self._put(_DESIRED, json.dumps(said))

    def forget_before(self, generation: int, names: frozenset[str]) -> None:
        """Delete what generations before this one left; the newest claim always stays."""
        for name in names:
            kind, _, rest = name.partition("-")
            number = rest.partition("-")[0]
            if (
                kind in {"gen", "stop", "started", "stopped", "failed", "fence"}
                and number.isdigit()
                and int(number) < generation
            ):
                self._hdfs.delete(self._path(name))

    def _put(self, name: str, text: str) -> None:
        draft = self._path(f".{name}.{uuid.uuid4().hex}")
        self._hdfs.make_folder(self._stream.folder, _FOLDER_MODE)
        self._hdfs.write(draft, text, permission=_FILE_MODE)
        try:
            self._hdfs.rename_over(draft, self._path(name))
        except (NotFound, Unavailable):
            # A lost reply is resent to the other NameNode, which finds the draft gone: what stands there counts.
            if not self._stands(name, text):
                raise

    def _stands(self, name: str, text: str) -> bool:
        try:
            return self._hdfs.read(self._path(name)) == text
        except NotFound:
            return False

    def _is_ours(self, candidate: ClaimDraft) -> bool:
        try:
            return self._read_claim(candidate.generation).nonce == candidate.nonce
        except NotFound:
            return False

    def _lost(self, candidate: ClaimDraft, error: KstreamError) -> KstreamError:
        if isinstance(error, Unavailable):
            return error
        tried = f"claim generation {candidate.generation} of {self._stream.name}"
        return Conflict("another supervisor has it", tried=tried, server=error.server, principal=error.principal)

    def _read_claim(self, number: int) -> Claim:
        path = self._path(claim_file(number))
        try:
            return _claim(json.loads(self._hdfs.read(path)), self._hdfs.status(path).modified)
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"{path} is not a claim: {error!r}") from error

    def _path(self, name: str) -> str:
        return f"{self._stream.folder}/{name}"


def new_nonce() -> str:
    return uuid.uuid4().hex[:12]


def _claim_json(candidate: ClaimDraft) -> dict[str, Any]:
    return {
        "generation": candidate.generation,
        "nonce": candidate.nonce,
        "claimed_by": user_at_host(),
        "reason": candidate.reason,
        "spec_fingerprint": candidate.spec.fingerprint(),
        "spec": candidate.spec.to_masked_mapping(),
        "renew_interval_seconds": candidate.lifetimes.renew_interval.total_seconds(),
        "max_lifetime_seconds": candidate.lifetimes.max_lifetime.total_seconds(),
        "positions": {path: [at.query, at.offset, at.commit] for path, at in candidate.positions.items()},
        "adopted": candidate.adopted,
        "adopted_started": candidate.adopted_started.isoformat() if candidate.adopted_started else None,
        "key": {"kvno": candidate.key.kvno, "fingerprint": candidate.key.fingerprint} if candidate.key else None,
    }


def _claim(said: Mapping[str, Any], claimed_at: datetime) -> Claim:
    started, key = said["adopted_started"], said["key"]
    return Claim(
        generation=said["generation"],
        nonce=said["nonce"],
        claimed_at=claimed_at,
        claimed_by=said["claimed_by"],
        spec_fingerprint=said["spec_fingerprint"],
        submitted_spec=said["spec"],
        lifetimes=TokenLifetimes(
            timedelta(seconds=said["renew_interval_seconds"]), timedelta(seconds=said["max_lifetime_seconds"])
        ),
        positions={path: Position(*at) for path, at in said["positions"].items()},
        reason=said["reason"],
        adopted=said["adopted"],
        adopted_started=datetime.fromisoformat(started) if started else None,
        key=KeyVersion(key["kvno"], key["fingerprint"]) if key else None,
    )
