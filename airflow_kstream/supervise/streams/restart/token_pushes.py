"""Pushing fresh tokens to a generation that runs, as the stream's own identity."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.clients import kms
from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.hdfs.tokens import crosses_in_clear
from airflow_kstream.clients.waiting import until
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import Conflict, KstreamError
from airflow_kstream.model.kerberos.credentials_file import FreshToken, credentials_file
from airflow_kstream.model.streams.contract import (
    applied_marker,
    push_file,
    pushes,
    refused_marker,
    tokens_file,
    unpushed_marker,
)
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Push
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.token_push import Pushes, TokenPush, in_milliseconds
from airflow_kstream.model.versioned import write
from airflow_kstream.policy.streams.horizon.launch_tokens import issuers
from airflow_kstream.supervise.clusters.tokens import cancel_at, mint_at, unproven
from airflow_kstream.supervise.streams.folder.formats import VERSION
from airflow_kstream.supervise.streams.folder.run import ActionLog, StreamRun
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder

# A driver looks each 5 s, and has 30 s to see that Spark uses what it sent.
_ANSWERS_WITHIN = timedelta(minutes=1)


def push_tokens(run: StreamRun, observation: Observation, step: Push, story: ActionLog) -> None:
    """Push fresh tokens, or the test of a driver that has shown nothing yet, and tell what its driver answers.

    Nothing that is wrong with it ends this: the generation lives on its present tokens, what was tried is noted in the
    stream's folder, and the planned restart comes if no push succeeds before. Only one who can't even note it raises
    what HDFS said.
    """
    if pushes(run.folder.names(), step.generation) != pushes(observation.files, step.generation):
        story.tell_once("somebody else has just pushed tokens: checking again")
        return
    push = TokenPush(step.generation, in_milliseconds(run.session.hdfs.now()))
    if not step.tokens:
        _announce(run.folder, push, ())
        _tell_answer(run, push, step, story)
        return
    try:
        if observation.current:
            # Where no server tells, it is the claim's owner's: another's is not seen as this generation's.
            unproven(run.session, observation.current, run.session.identity)
        tokens = fresh_tokens(run, observation.claim)
    except KstreamError as error:
        run.folder.put(unpushed_marker(push), write(VERSION, {"why": error.without_advice}))
        story.record(f"pushed no tokens to generation {step.generation}", str(error))
        return
    push = push_of(step.generation, tokens)
    # The driver may have taken one while these were made.
    take_back(run, pushes(run.folder.names(), step.generation))
    try:
        run.folder.put_tokens(tokens_file(push), credentials_file(tokens))
    except Conflict:
        story.tell_once("somebody else pushes tokens at this moment: checking again")
        return
    _announce(run.folder, push, tokens)
    _forget_ended(run.folder, pushes(observation.files, step.generation), push.at)
    _tell_answer(run, push, step, story)


def fresh_tokens(run: StreamRun, claim: Claim | None) -> tuple[FreshToken, ...]:
    """Make a token of each filesystem and each KMS whose token the claim's generation got at its submission.

    What was submitted counts: a driver refuses the token of a filesystem that a later edit of its declaration names.

    Raises InvalidInput: when this connection has no conf folder with the RPC addresses; and the servers' refusals.
    """
    submitted = claim.spec if claim and isinstance(claim.spec, StreamSpec) else run.spec
    told = (claim.credentials.tokens or ()) if claim else ()
    pushed = issuers(told) or run.engine.token_filesystems(run.cluster, submitted)
    return tuple(mint_at(issuer, run.cluster, run.session.identity) for issuer in pushed)


def ways_in_clear(cluster: Cluster) -> tuple[str, ...]:
    """Return the ways of a pushed token on which the network could read it; none if TLS and privacy are everywhere."""
    ways = []
    conf = HadoopConf(cluster.hadoop_conf_dir) if cluster.hadoop_conf_dir else None
    if conf and crosses_in_clear(conf):
        ways.append("hadoop.rpc.protection is not privacy where NameNodes make them")
    if conf and kms.is_in_clear(conf.key_provider):
        ways.append("the KMS that makes them has no TLS")
    if any(address.startswith("http://") for address in cluster.namenodes):
        ways.append("WebHDFS without TLS takes their file")
    return tuple(ways)


def push_of(generation: int, tokens: tuple[FreshToken, ...]) -> TokenPush:
    """Return the push of these tokens. Its id is the issue date of the first: an older token is an earlier push."""
    return TokenPush(generation, in_milliseconds(tokens[0].read.issued), min(token.until for token in tokens))


def record_push(folder: StreamFolder, push: TokenPush, tokens: tuple[FreshToken, ...]) -> None:
    """Record a push by hand that its driver was seen to use."""
    folder.put(applied_marker(push), write(VERSION, {"by": "hand"}))
    _announce(folder, push, tokens)


def cancel_pushed(run: StreamRun, names: frozenset[str], generation: int) -> int:
    """Cancel what was pushed to a generation that is over, delete what lies there, and return how many tokens that was.

    Only their identifiers were kept, and their announcements are deleted with them: nothing is cancelled twice. Raises
    Unavailable: when the folder can't be read or written.
    """
    known = pushes(names, generation)
    cancelled = 0
    for push in known.pushed:
        cancelled += _cancel(run, push)
        run.folder.forget([tokens_file(push)])
        run.folder.forget([push_file(push), applied_marker(push), refused_marker(push)])
    run.folder.forget(_notes(known.failed))
    return cancelled


def _announce(folder: StreamFolder, push: TokenPush, tokens: tuple[FreshToken, ...]) -> None:
    folder.put(push_file(push), write(VERSION, {"tokens": [_named(token) for token in tokens]}))


def _named(token: FreshToken) -> dict[str, Any]:
    """Return what names the token, to people and to the one who cancels it; no secret is in it."""
    read = token.read
    return {
        "issuer": token.issuer,
        "service": token.service,
        "owner": read.owner,
        "real_user": read.real_user,
        "sequence_number": read.sequence_number,
        "max_date": read.max_date.isoformat(),
        "until": token.until.isoformat(),
        "identifier": b64encode(token.identifier).decode(),
    }


def _tell_answer(run: StreamRun, push: TokenPush, step: Push, story: ActionLog) -> None:
    """Wait a moment for the driver's answer; a later one is found by the next look."""
    number = push.generation
    what = f"pushed fresh tokens to generation {number}" if push.until else f"asked generation {number} to take tokens"
    answers = {applied_marker(push): _applied, refused_marker(push): _refused}
    words = run.engine.words
    wait = min(_ANSWERS_WITHIN, run.spec.refresh.confirm_within)
    found = until(lambda: run.folder.names() & answers.keys() or None, run.spec.watch.look_every, wait)
    if not found:
        story.record(f"{what}, and its {words.leader} has not answered yet", step.why)
        return
    # One that says both has taken them.
    name = min(found)
    story.record(f"{what}: its {words.leader} {answers[name](run.folder, name, push, words.worker)}", step.why)


def _applied(folder: StreamFolder, name: str, push: TokenPush, worker: str) -> str:
    # The contract's name of the field, whatever the engine.
    told = _answer(folder, name).get("executors")
    workers = len(told) if isinstance(told, list) else 0
    if push.until is None:
        return "takes them"
    return f"and {workers} {worker}s use them, until {push.until:%Y-%m-%d %H:%M:%S} UTC at the latest"


def _refused(folder: StreamFolder, name: str, push: TokenPush, worker: str) -> str:
    confirmed = pushes(folder.names(), push.generation).confirmed
    if confirmed and confirmed.id > push.id:
        return "uses newer ones already, which somebody else pushed"
    why = _answer(folder, name).get("why")
    return f"refuses them: {why if isinstance(why, str) else 'it does not say why'}"


def _answer(folder: StreamFolder, name: str) -> dict[str, Any]:
    try:
        answer = json.loads(folder.text(name))
    except (KstreamError, ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def take_back(run: StreamRun, known: Pushes) -> None:
    """Delete what the driver has not taken until now, and cancel it. It still counts as a try in vain, after which the
    pauses grow.

    The one that deletes the file has the tokens. Those that the driver has taken it may use before it answers:
    cancelled, they would keep it from ever reading the next ones.
    """
    before = {push.id for push in known.failed}
    for push in known.unanswered:
        if push.until is None or not (push.id in before or run.folder.forget_tokens(tokens_file(push))):
            continue
        why = "the job had not taken them when the next ones were pushed"
        run.folder.put(unpushed_marker(push), write(VERSION, {"why": why}))
        # The identifiers of what could not be cancelled now stand in the announcement alone.
        if _cancel(run, push) == len([*_identifiers(run.folder, push)]):
            run.folder.forget([push_file(push)])


def _forget_ended(folder: StreamFolder, known: Pushes, now: datetime) -> None:
    """Delete what tells of tokens that have ended by themselves; a job that runs for months has two pushes a day."""
    ended = [push for push in known.pushed if push.until and push.until < now and push != known.confirmed]
    for push in ended:
        folder.forget([tokens_file(push), applied_marker(push), refused_marker(push), push_file(push)])
    if known.confirmed:
        folder.forget(_notes(push for push in known.failed if push.id < known.confirmed.id))


def _notes(failed: Iterable[TokenPush]) -> list[str]:
    """Return the files that tell of pushes without tokens; a driver may have refused one that was just taken back."""
    return [marker(push) for push in failed for marker in (unpushed_marker, refused_marker)]


def _cancel(run: StreamRun, push: TokenPush) -> int:
    """Cancel a push's tokens; return how many. Another has ended already, or ends by itself at the push's `until`."""
    cancelled = 0
    for issuer, identifier in _identifiers(run.folder, push):
        with suppress(KstreamError):
            cancel_at(issuer, run.cluster, run.session.identity, identifier)
            cancelled += 1
    return cancelled


def _identifiers(folder: StreamFolder, push: TokenPush) -> Iterator[tuple[str, bytes]]:
    """Yield each token of an announced push: its issuer, and its identifier."""
    for token in _tokens_of(_answer(folder, push_file(push))):
        with suppress(KeyError, ValueError, TypeError):
            yield str(token["issuer"]), b64decode(token["identifier"], validate=True)


def _tokens_of(announcement: dict[str, Any]) -> list[dict[str, Any]]:
    tokens = announcement.get("tokens")
    return [token for token in tokens if isinstance(token, dict)] if isinstance(tokens, list) else []
