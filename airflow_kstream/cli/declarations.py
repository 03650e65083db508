"""`validate` and `schema` of each kind of declaration: what a file may say, without a cluster or a connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from airflow_kstream.cli.output import JsonOption, note, print_json, say
from airflow_kstream.clients.local.regular_files import declaration_files, read_text
from airflow_kstream.model.declaration_kinds import DeclarationKind
from airflow_kstream.model.errors import InvalidInput

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE|FOLDER", help="YAML files; of a folder all that end with .yaml or .yml.")
]
_WRONG_INPUT = 2


def add_declarations(app: typer.Typer, kind: DeclarationKind) -> None:
    """Add the commands for this kind of declaration."""

    @app.command()
    def validate(files: Files, as_json: JsonOption = False) -> None:
        """Check declarations and print every fault of every file. Offline: it needs no cluster and no connection.

        In a folder, also what the shipped DAGs refuse: templates, and a stream in a file of another name; and two
        streams whose checkpoints lie in one another. What only a connection knows, `kstream streams plan` tells. Exit 2
        if a file is wrong.
        """
        found = {str(path): faults for given in files for path, faults in _checked(kind, given)}
        wrong = [path for path, faults in found.items() if faults]
        if as_json:
            print_json([{"file": path, "faults": faults} for path, faults in found.items()])
        else:
            for path in wrong:
                for fault in found[path]:
                    say(f"{path}: {fault}")
            note(f"files: {len(found)}, wrong: {len(wrong)}")
        if wrong:
            raise typer.Exit(_WRONG_INPUT)

    @app.command()
    def schema() -> None:
        """Print the JSON schema of such a declaration, for editors.

        For example, in the first line of a declaration: `# yaml-language-server: $schema=/etc/kstream/schema.json`.
        """
        print_json(kind.schema())


def _checked(kind: DeclarationKind, given: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    if not given.is_dir():
        yield given, _faults(kind, given)
        return
    files = declaration_files(given)
    if not files:
        # A mistyped folder must not pass.
        yield given, ("there is no .yaml or .yml file in this folder",)
    # The files of one folder are declarations for one cluster.
    folders = {file.parent for file in files}
    together = {folder: _shared(kind, [file for file in files if file.parent == folder]) for folder in folders}
    for file in files:
        yield file, (*_faults(kind, file, file.stem), *together[file.parent].get(file.name, ()))


def _shared(kind: DeclarationKind, files: Iterable[Path]) -> Mapping[str, tuple[str, ...]]:
    texts = dict[str, str]()
    for file in files:
        # What can't be read is a fault of that file's own.
        with suppress(InvalidInput):
            texts[file.name] = read_text(file)
    return kind.shared(texts)


def _faults(kind: DeclarationKind, path: Path, stem: str | None = None) -> tuple[str, ...]:
    try:
        text = read_text(path)
    except InvalidInput as error:
        return (error.message.removeprefix(str(path)).lstrip(": "),)
    return kind.faults(text, stem)
