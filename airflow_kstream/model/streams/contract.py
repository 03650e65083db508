"""The contract between a stream's supervisor and its driver: file names in the stream's folder, and the driver's terms.

Every engine shares it. `jobs/kstream_driver.py` is shipped to the cluster alone and can import nothing, so that file
repeats what it needs; a test keeps the two in step. Its docstring names the writer of each file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from airflow_kstream.model.streams.stall import PastStall
from airflow_kstream.model.streams.token_push import Pushes, TokenPush

CONTRACT = "1"
CONTRACT_KEY = "contract"
STREAM_KEY = "stream"
GENERATION_KEY = "generation"
STATE_KEY = "state"
# Its value says nothing: a driver that has it takes fresh tokens.
TOKENS_KEY = "tokens"
# Within the stream's folder, for its own user alone.
TOKENS_FOLDER = "tokens"
EVIDENCE_FOLDER = "evidence"

_CLAIM = re.compile(r"gen-(\d{6,})")
_ACCEPTED = re.compile(r"accepted-(\d{6,})")
_ENDED = re.compile(r"ended-(\d{6,})")
_STALLED = re.compile(r"stalled-(\d{6,})-(\d+)-(\d{1,11})")
_PUSH_KINDS = ("push", "applied", "refused", "unpushed")
_PUSH = re.compile(rf"({'|'.join(_PUSH_KINDS)})-(\d{{6,}})-(\d{{1,14}})(?:-(\d{{1,11}}))?")
_CLEANED = "cleaned-"
_DRAFT = re.compile(
    r"\.(?:claim|fence|stop|started|stopped|failed|accepted|reached|blocked|examined|ended|check"
    r"|push|applied|refused|unpushed|launched|kept|resume)[-.].+"
)
# What only a claimed generation has. A fence, or a person's permission for the next one, comes before its claim.
_TRACE = re.compile(r"(?:stop|started|stopped|failed|reached|blocked|ended|launched|kept|resume)-(\d{6,})")
_NUMBERED = re.compile(r"[a-z]+-(\d{6,})(?:-.+)?")
_OF_A_GENERATION = re.compile(
    r"(?:gen|stop|started|stopped|failed|fence|accepted|reached|blocked|examined|push|applied|refused|unpushed"
    r"|launched|kept|resume)-(\d+)(?:-.*)?"
)


def claim_file(generation: int) -> str:
    """Return the name of the claim: its writer may submit this generation."""
    return f"gen-{generation:06d}"


def fence_name(generation: int, nonce: str) -> str:
    """Return the name of the file that the generation's containers localise: without it no late AM can start."""
    return f"fence-{generation:06d}-{nonce}"


def started_marker(generation: int) -> str:
    """Return the name of the driver's marker that it runs and will obey its stop marker."""
    return f"started-{generation:06d}"


def stop_marker(generation: int) -> str:
    """Return the name of the request to the driver to stop; a supervisor that finds it must finish the stop."""
    return f"stop-{generation:06d}"


def stopped_marker(generation: int) -> str:
    """Return the name of the driver's marker that it stopped every query: nothing of this generation writes."""
    return f"stopped-{generation:06d}"


def failed_marker(generation: int) -> str:
    """Return the name of the driver's file with the cause of a query's death."""
    return f"failed-{generation:06d}"


def accepted_marker(generation: int) -> str:
    """Return the name of a person's permission that this generation may start from the checkpoints as they are."""
    return f"accepted-{generation:06d}"


def reached_marker(generation: int) -> str:
    """Return the name of the furthest positions that a supervisor saw this generation reach."""
    return f"reached-{generation:06d}"


def launched_file(generation: int) -> str:
    """Return the name of what is known of the tokens of this generation's launch: what its client told, no secret."""
    return f"launched-{generation:06d}"


def blocked_marker(generation: int) -> str:
    """Return the name of the last refusal that kept this generation from being followed; it holds nobody up."""
    return f"blocked-{generation:06d}"


def examined_marker(generation: int) -> str:
    """Return the name of the last examination of a batch of this generation that took too long."""
    return f"examined-{generation:06d}"


def stalled_marker(stall: PastStall) -> str:
    """Return the name of the record that a generation is ended for a batch that hung: the name says it all."""
    return f"stalled-{stall.generation:06d}-{stall.batch}-{int(stall.at.timestamp())}"


def past_stalls(names: Iterable[str]) -> tuple[PastStall, ...]:
    """Return the restarts for stalls that files of these names record, oldest first."""
    found = (match for name in names if (match := _STALLED.fullmatch(name)))
    past = (PastStall(int(each[1]), int(each[2]), datetime.fromtimestamp(int(each[3]), UTC)) for each in found)
    return tuple(sorted(past, key=lambda stall: (stall.generation, stall.at)))


def push_file(push: TokenPush) -> str:
    """Return the name of the announcement of a push: its tokens' file, if it brings any, is complete."""
    return f"push-{push.generation:06d}-{push.id}-{int(push.until.timestamp()) if push.until else 0}"


def tokens_file(push: TokenPush) -> str:
    """Return the path of a push's tokens within the stream's folder."""
    return f"{TOKENS_FOLDER}/{push.generation:06d}-{push.id}"


def applied_marker(push: TokenPush) -> str:
    """Return the name of the driver's word that it uses the tokens of a push, or that it can take some."""
    return f"applied-{push.generation:06d}-{push.id}"


def refused_marker(push: TokenPush) -> str:
    """Return the name of the driver's reason not to use the tokens of a push."""
    return f"refused-{push.generation:06d}-{push.id}"


def unpushed_marker(push: TokenPush) -> str:
    """Return the name of the reason for which a push that was due brought no tokens."""
    return f"unpushed-{push.generation:06d}-{push.id}"


def pushes(names: Iterable[str], generation: int) -> Pushes:
    """Return the pushes to a generation that files of these names tell."""
    found: dict[str, list[TokenPush]] = {kind: [] for kind in _PUSH_KINDS}
    # A stream of years has thousands of files, and few of them are this generation's.
    number = f"-{generation:06d}-"
    for match in map(_PUSH.fullmatch, [name for name in names if number in name]):
        if match and int(match[2]) == generation:
            until = datetime.fromtimestamp(int(match[4]), UTC) if int(match[4] or 0) else None
            found[match[1]].append(TokenPush(generation, int(match[3]), until))
    return Pushes(
        pushed=tuple(sorted(found["push"], key=lambda push: push.id)),
        applied=frozenset(push.id for push in found["applied"]),
        refused=frozenset(push.id for push in found["refused"]),
        failed=tuple(sorted(found["unpushed"], key=lambda push: push.id)),
    )


def pushed_to(names: Iterable[str]) -> tuple[int, ...]:
    """Return the generations to which files of these names tell pushes, in their order."""
    return tuple(sorted({int(match[2]) for match in map(_PUSH.fullmatch, names) if match}))


def ended_file(generation: int) -> str:
    """Return the name of the record of this generation's end and of those before it that nobody planned."""
    return f"ended-{generation:06d}"


def recorded_ends(names: Iterable[str]) -> tuple[int, ...]:
    """Return the generations whose ends are recorded in files of these names, in their order."""
    return tuple(sorted(int(match[1]) for match in map(_ENDED.fullmatch, names) if match))


def cleaned_marker(application: str) -> str:
    """Return the name of the marker that nothing of this ended application is left to be deleted."""
    return f"{_CLEANED}{application}"


def is_cleaned_marker(name: str) -> bool:
    return name.startswith(_CLEANED)


def claims(names: Iterable[str]) -> tuple[int, ...]:
    """Return the generations that were claimed among these file names, in their order."""
    return tuple(sorted(int(match[1]) for match in map(_CLAIM.fullmatch, names) if match))


def newest_claim(names: Iterable[str]) -> int:
    """Return the highest generation that was claimed among these file names, 0 if none was."""
    return max(claims(names), default=0)


def newest_accepted(names: Iterable[str]) -> int:
    """Return the highest generation that a person let start, by files of these names, 0 if there is none."""
    return max((int(match[1]) for match in map(_ACCEPTED.fullmatch, names) if match), default=0)


def newest_trace(names: Iterable[str]) -> int:
    """Return the highest generation that left a file beside its claim, which may be gone, 0 if none did."""
    return max((int(trace[1]) for trace in map(_TRACE.fullmatch, names) if trace), default=0)


def is_draft(name: str) -> bool:
    """Return True for a file that its writer has not yet renamed into place, and perhaps never will."""
    return _DRAFT.fullmatch(name) is not None


def is_known_file(name: str) -> bool:
    """Return True for a file of a stream's folder that this version knows, whatever it holds."""
    kinds = (
        is_draft(name),
        is_cleaned_marker(name),
        name == TOKENS_FOLDER,
        _ENDED.fullmatch(name),
        _STALLED.fullmatch(name),
        generation_of_file(name) is not None,
    )
    return any(kinds)


def number_in(name: str) -> int | None:
    """Return the generation that the name of any file of a stream's folder begins with, None if it has none."""
    match = _NUMBERED.fullmatch(name)
    return int(match[1]) if match else None


def generation_of_file(name: str) -> int | None:
    """Return the generation that this file of a stream's folder belongs to, None if it belongs to none."""
    match = _OF_A_GENERATION.fullmatch(name)
    return int(match[1]) if match else None


def contract_terms(stream: str, generation: int, folder: str, *, takes_tokens: bool = False) -> dict[str, str]:
    """Return the settings that make a driver take part; each engine passes them in its own way."""
    terms = {CONTRACT_KEY: CONTRACT, STREAM_KEY: stream, GENERATION_KEY: str(generation), STATE_KEY: folder}
    return terms | ({TOKENS_KEY: CONTRACT} if takes_tokens else {})
