"""The quick look: logs of this host, scanned in this process and judged, without Spark.

The catalogue of signatures is the package's own files, and those of an operator after them. The lives of delegation
tokens come from the logs of a ResourceManager or NameNode on this host.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import tzinfo
from functools import cache, lru_cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from airflow_kstream.clients.local.log_files import (
    SMALLEST_PART,
    blocks_of,
    files_below,
    in_forks,
    log_files,
    may_fork,
    plain_parts,
)
from airflow_kstream.clients.local.regular_files import read_text
from airflow_kstream.model.errors import InvalidInput, KstreamError, NotFound
from airflow_kstream.model.kerberos.tokens import TokenHistory
from airflow_kstream.model.log_scan.scanner import Scanner
from airflow_kstream.model.log_scan.sections import LinePattern, Section, joined
from airflow_kstream.model.logs.diagnosis import Diagnosis
from airflow_kstream.model.logs.log_line import HEAD
from airflow_kstream.model.logs.signature import Catalogue, Signature, signatures_in
from airflow_kstream.policy.triage.sources import TITLES, ScannedLog
from airflow_kstream.policy.triage.templates import TROUBLE
from airflow_kstream.policy.triage.token_history import TOKEN_LINES, token_histories
from airflow_kstream.policy.triage.verdict import diagnose

_FOLDER = "signatures"

# For a log on this host.
CORES = len(os.sched_getaffinity(0))
# For a log that arrives in blocks. The scan of one holds no lock of Python's, and the rest is half the work: more
# threads would only wait.
THREADS = min(CORES, 2)


def patterns_of(catalogue: Catalogue) -> tuple[LinePattern, ...]:
    """Return all that a verdict is made of: signatures, other lines of trouble, and titles of sections."""
    return (*catalogue.line_patterns(), *TROUBLE, *TITLES)


@lru_cache(maxsize=4)
def scanner_of(catalogue: Catalogue) -> Scanner:
    """Return the scanner for `patterns_of` it. The first time takes a second: it compiles all of them."""
    return Scanner(patterns_of(catalogue), HEAD, [title.name for title in TITLES])


def triage_path(path: Path, catalogue: Catalogue, zone: tzinfo | None = None) -> Diagnosis:
    """Judge the logs in a file, or in all files of a folder. One that can't be read is named in the verdict.

    Raises InvalidInput: when there is none that can be read.
    """
    scanned, unread = scanned_logs(path, scanner_of(catalogue))
    return diagnose(scanned, catalogue, zone, unread=unread)


def scanned_logs(path: Path, scanner: Scanner) -> tuple[list[ScannedLog], list[str]]:
    """Scan all logs in a file or a folder; return them, and why others can't be read.

    Raises InvalidInput: when none can be read.
    """
    scanned: list[ScannedLog] = []
    unread: list[str] = []
    for file, name in _named(path):
        if not file.is_file():
            # A pipe would be waited for, and a link may lead nowhere.
            unread.append(f"{name}: it is not a regular file")
            continue
        try:
            scanned += scanned_file(file, name, scanner)
        except Exception as error:  # Whatever a file does to its reader: the others are read.
            unread.append(f"{name}: {why_unread(error)}")
    if not scanned:
        raise InvalidInput("; ".join(unread) or "it has no files", tried=f"read the logs of {path}")
    return scanned, unread


def why_unread(error: Exception) -> str:
    """Return why one log can't be read, with the kind of an error that nobody expected."""
    if isinstance(error, InvalidInput):
        return error.message
    return error.without_advice if isinstance(error, KstreamError) else f"{type(error).__name__}: {error}"


def scanned_file(
    file: Path, name: str, scanner: Scanner, cores: int = CORES, least: int = SMALLEST_PART
) -> list[ScannedLog]:
    """Scan the logs in a file: a plain one of twice `least` bytes or more in a process for each core, where this one
    may fork.

    Raises InvalidInput: when it can't be read. Raises Unavailable: when a process was killed.
    """
    parts = plain_parts(file, cores, least) if cores > 1 and may_fork() else []
    if len(parts) < 2:
        threads = min(cores, THREADS)
        return [ScannedLog(log.name, scanner.scan(log.blocks, threads)) for log in log_files(file, name)]
    scans = in_forks([partial(_scanned_part, file, part, scanner) for part in parts])
    return [ScannedLog(name, joined(scans, {pattern.name: pattern for pattern in scanner.patterns}))]


def _scanned_part(file: Path, part: range, scanner: Scanner) -> list[Section]:
    return scanner.scan(blocks_of(file, part))


def _named(path: Path) -> Iterator[tuple[Path, str]]:
    for file in files_below(path):
        yield file, str(file.relative_to(path)) if path.is_dir() else file.name


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


@cache
def own_catalogue() -> Catalogue:
    """Return the signatures of the package's files."""
    signatures: dict[str, Signature] = {}
    # A signature may name one of a later file.
    for file in signature_files():
        signatures |= signatures_in(file.read_text(encoding="utf-8"))
    return Catalogue(signatures)


def signature_files() -> list[Traversable]:
    """Return the package's files in the order of their names."""
    return sorted(files(__package__).joinpath(_FOLDER).iterdir(), key=lambda file: file.name)


def catalogue_with(extensions: Iterable[Path] = ()) -> Catalogue:
    """Return our signatures and those of these files: an id that they repeat replaces ours.

    Raises InvalidInput: when a file can't be read, or a field in it is wrong; the message names the file.
    """
    catalogue = own_catalogue()
    for path in extensions:
        text = read_text(path)
        try:
            catalogue = catalogue.extended(text)
        except InvalidInput as error:
            raise InvalidInput(error.message, tried=f"read the signatures of {path}") from None
    return catalogue
