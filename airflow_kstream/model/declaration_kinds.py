"""The kinds of files that people write for streams, tickets, leases and tokens, and all faults of one at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from typing import Any

from airflow_kstream.model.airflow_options import options_of
from airflow_kstream.model.clusters.hdfs_path import is_below, plain_path
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.declarations import TicketDeclaration, TokenDeclaration
from airflow_kstream.model.leases.requests import LeaseDeclaration
from airflow_kstream.model.schema import schema_by, schema_of
from airflow_kstream.model.secrets import require_no_literals_in
from airflow_kstream.model.streams.stream import SPECS, StreamSpec, require_named_after
from airflow_kstream.model.templates import require_no_templates
from airflow_kstream.model.yaml_text import read_mapping

_Check = Callable[[], object]
_FILESYSTEM = re.compile("hdfs://[^/]+")


@dataclass(frozen=True)
class DeclarationKind:
    """A kind of file: what it declares, its own reader, and what is checked of a file that this reader refuses.

    `by` are a field that names one of several types, and those by its values. `in_folder` are the further checks of a
    file that a shipped DAG reads, from its fields and its name without suffix. `alone` are the folders on HDFS that
    what it declares has to itself.
    """

    type: type[Any]
    read: Callable[[Mapping[str, Any]], Any]
    raw: Callable[[Mapping[str, Any]], object] = lambda fields: None
    in_folder: tuple[Callable[[Mapping[str, Any], str], object], ...] = ()
    by: tuple[str, Mapping[str, Any]] | None = field(default=None, hash=False)
    alone: Callable[[Any], tuple[str, ...]] = lambda declared: ()

    def schema(self) -> dict[str, Any]:
        """Return its JSON schema, for editors."""
        return schema_by(*self.by) if self.by else schema_of(self.type)

    def faults(self, text: str, stem: str | None = None) -> tuple[str, ...]:
        """Return every fault of a file, none if it is right; `stem` is its name if a folder of declarations has it."""
        try:
            fields = read_mapping(text)
        except InvalidInput as error:
            return error.faults
        checks: list[_Check] = [lambda: self.read(fields), lambda: self.raw(fields)]
        if stem is not None:
            checks += [lambda: require_no_templates(fields), *(partial(more, fields, stem) for more in self.in_folder)]
        # One secret is a fault for the reader, and for the check of the raw fields.
        return tuple(dict.fromkeys(fault for check in checks for fault in _faults(check)))

    def shared(self, texts: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
        """Return the faults that files of one folder have together, by their names; a wrong file has none."""
        # A thousand files are a million pairs.
        folders = [(name, each, plain_path(each)) for name, text in texts.items() for each in self._alone(text)]
        found: dict[str, tuple[str, ...]] = {}
        for (name, folder, ours), (other, theirs, its) in permutations(folders, 2):
            nested = name != other and (is_below(ours, its) or is_below(its, ours))
            if nested and _may_be_one_filesystem(folder, theirs):
                fault = f"checkpoints: {folder} and {theirs} of {other} lie in one another"
                found[name] = (*found.get(name, ()), fault)
        return found

    def _alone(self, text: str) -> tuple[str, ...]:
        try:
            return self.alone(self.read(read_mapping(text)))
        except InvalidInput:
            return ()


def _may_be_one_filesystem(one: str, other: str) -> bool:
    """Return False if both name one, and not the same; a folder that names none lies on the connection's."""
    return len({match[0] for path in (one, other) if (match := _FILESYSTEM.match(path))}) < 2


def _faults(check: _Check) -> Iterator[str]:
    try:
        check()
    except InvalidInput as error:
        yield from error.faults


def _require_its_name(fields: Mapping[str, Any], stem: str) -> None:
    if "name" in fields:
        require_named_after(fields["name"], stem)


def _require_options(fields: Mapping[str, Any], stem: str) -> None:
    options_of(fields)


STREAMS = DeclarationKind(
    StreamSpec,
    StreamSpec.from_mapping,
    require_no_literals_in,
    (_require_its_name, _require_options),
    ("engine", {engine.value: spec for engine, spec in SPECS.items()}),
    lambda spec: spec.checkpoints,
)
LEASES = DeclarationKind(LeaseDeclaration, LeaseDeclaration.from_mapping)
TICKETS = DeclarationKind(TicketDeclaration, TicketDeclaration.from_mapping)
TOKENS = DeclarationKind(TokenDeclaration, TokenDeclaration.from_mapping)
