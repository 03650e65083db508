"""Files that readers see complete or not at all: those that one writer alone places under their names, as claims,
owners, words of persons and records of ends, and those that are replaced.

`require_exclusive_renames` proves that the server decides between two callers: all claims rest on it.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

from airflow_kstream.clients.hdfs.answers import LONGEST_TEXT
from airflow_kstream.model.errors import Conflict, InvalidInput, KstreamError, NotFound, Unavailable

if TYPE_CHECKING:
    from airflow_kstream.clients.hdfs.webhdfs import Hdfs


# Everybody who supervises reads what others wrote; nothing here is secret.
FILE_MODE = "644"


def wrote_once(hdfs: Hdfs, draft: str, path: str, text: str) -> bool:
    """Write a file that nobody replaces; return whether it is this text that stands there, and not another writer's.

    What stands there decides, not the reply: our own success can look like a loss, and the success of two like the
    success of each. `text` has to be this writer's alone, by a nonce.

    Raises the server's refusal: when nothing stands there afterwards.
    """
    refusal = placed(hdfs, draft, path, text)
    standing = text_at(hdfs, path)
    if standing == text:
        return True
    hdfs.delete(draft)
    if refusal and standing is None:
        raise refusal
    return False


def replace_file(hdfs: Hdfs, path: str, text: str, permission: str = FILE_MODE) -> None:
    """Write a file in place of what stands there. Raises the server's refusal: when another text stands there then."""
    folder, _, name = path.rpartition("/")
    draft = f"{folder}/.{name}.{uuid.uuid4().hex}"
    hdfs.write(draft, text, permission=permission)
    try:
        hdfs.rename_over(draft, path)
    except KstreamError:
        # After a lost reply the other NameNode is asked, which finds the draft gone: the target's text decides.
        with suppress(KstreamError):
            if text_at(hdfs, path, max(LONGEST_TEXT, len(text.encode()))) == text:
                return
        with suppress(KstreamError):
            hdfs.delete(draft)
        raise


def placed(hdfs: Hdfs, draft: str, path: str, text: str) -> KstreamError | None:
    """Write the draft and rename it onto nothing; return the refusal. The caller reads what stands there then."""
    hdfs.write(draft, text, permission=FILE_MODE)
    try:
        hdfs.rename_onto_nothing(draft, path)
    except (Conflict, NotFound, Unavailable, InvalidInput) as refusal:
        return refusal
    return None


def text_at(hdfs: Hdfs, path: str, at_most: int = LONGEST_TEXT) -> str | None:
    """Return what stands there, None if nothing does. What is not text, is longer than `at_most` bytes, or a folder, is
    empty: nobody here wrote it."""
    try:
        return hdfs.read(path, at_most)
    except NotFound:
        return None
    except InvalidInput:
        return ""


def require_exclusive_renames(hdfs: Hdfs, folder: str) -> None:
    """Rename two files onto one target in this folder; the server must refuse the second. Leaves nothing behind.

    Raises InvalidInput: when it grants both, or ignores the options as HttpFS does. Raises Denied: when the folder
    can't be written.
    """
    check = f"{folder.rstrip('/')}/.check-{uuid.uuid4().hex[:12]}"
    files = [f"{check}.first", f"{check}.second"]
    try:
        for file in files:
            hdfs.write(file, file, permission="600")
        for file in files:
            _rename(hdfs, file, check)
        if hdfs.read(check) != files[0]:
            raise InvalidInput(
                "it granted two renames onto one target, so it could grant one claim to two supervisors: name the "
                "NameNodes in the connection's namenodes",
                tried=f"rename twice onto {check}",
                server=hdfs.servers,
            )
    finally:
        for file in (check, *files):
            hdfs.delete(file)


def _rename(hdfs: Hdfs, source: str, target: str) -> None:
    """Rename if nothing stands there. A repeated request may find its own success: what stands there decides."""
    try:
        hdfs.rename_onto_nothing(source, target)
    except (Conflict, NotFound):
        return
