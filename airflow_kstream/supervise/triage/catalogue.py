"""The catalogue of signatures: the package's own files, and those of an operator after them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from airflow_kstream.clients.local.regular_files import read_text
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.logs.signature import Catalogue, Signature, signatures_in

_FOLDER = "signatures"


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
