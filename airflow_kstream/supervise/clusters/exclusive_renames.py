"""The proof that a folder's server decides between two callers: everything that is claimed there rests on it."""

from __future__ import annotations

import uuid

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.errors import Conflict, InvalidInput, NotFound


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
