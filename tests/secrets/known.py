"""Every secret that a minicluster ever had: the keys of its keytabs, and the password of each delegation token."""

from __future__ import annotations

import hmac
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import krb5

from airflow_kstream.clients.local.credential_files import read_credentials
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import KstreamError
from tests.simulated.hadoop_writers import text, vlong

_VIEWER = "org.apache.hadoop.hdfs.tools.offlineEditsViewer.OfflineEditsViewer"


def keys_of(keytab: Path) -> set[bytes]:
    """Return a keytab's keys; none if the file is gone or only half written."""
    with suppress(krb5.Krb5Error):
        context = krb5.init_context()
        return {bytes(entry.key.data) for entry in krb5.kt_resolve(context, f"FILE:{keytab}".encode())}
    return set()


def passwords_in(credentials: Path) -> set[bytes]:
    """Return the passwords in a container's credentials; none if they are gone."""
    with suppress(KstreamError, OSError):
        content = credentials.read_bytes()
        tokens = read_credentials(credentials).credentials.tokens
        return {content[token.password_place] for token in tokens} - {b""}
    return set()


def token_passwords(minicluster: Minicluster, scratch: Path) -> set[bytes]:
    """Return the passwords of all HDFS delegation tokens that the NameNodes ever made, from their journal.

    A password is the HMAC-SHA1 of the identifier with a master key (SecretManager.createPassword), and the journal
    holds both.
    """
    assert minicluster.hdfs("dfsadmin", "-rollEdits").returncode == 0
    keys: dict[str, bytes] = {}
    made: list[tuple[str, bytes]] = []
    for segment in sorted((minicluster.root / "data/journal").glob("*/current/edits_*-*")):
        for key_id, key in _master_keys(seen := _records(minicluster, segment, scratch)):
            keys[key_id] = key
        made += _identifiers(seen)
    return {hmac.digest(keys[key_id], identifier, "sha1") for key_id, identifier in made}


def _records(minicluster: Minicluster, segment: Path, scratch: Path) -> list[ET.Element]:
    """Return those of the journal's records that are about tokens."""
    readable = scratch / f"{segment.name}.xml"
    done = minicluster.hadoop_main(_VIEWER, "-i", str(segment), "-o", str(readable), "-p", "xml")
    assert done.returncode == 0, done.stderr[-2000:]
    wanted = {"OP_UPDATE_MASTER_KEY", "OP_GET_DELEGATION_TOKEN"}
    found = []
    for _, element in ET.iterparse(readable):
        if element.tag == "RECORD":
            if element.findtext("OPCODE") in wanted:
                found.append(element)
            else:
                element.clear()
    readable.unlink()
    return found


def _master_keys(records: Iterable[ET.Element]) -> Iterator[tuple[str, bytes]]:
    for key in _all(records, "DELEGATION_KEY"):
        yield key["KEY_ID"], bytes.fromhex(key["KEY"])


def _identifiers(records: Iterable[ET.Element]) -> Iterator[tuple[str, bytes]]:
    """AbstractDelegationTokenIdentifier.writeImpl."""
    for said in _all(records, "DELEGATION_TOKEN_IDENTIFIER"):
        names = b"".join(text(said[name]) for name in ("OWNER", "RENEWER", "REALUSER"))
        numbers = ("ISSUE_DATE", "MAX_DATE", "SEQUENCE_NUMBER", "MASTER_KEY_ID")
        yield said["MASTER_KEY_ID"], b"\x00" + names + b"".join(vlong(int(said[name])) for name in numbers)


def _all(records: Iterable[ET.Element], tag: str) -> Iterator[dict[str, str]]:
    for record in records:
        for found in record.iter(tag):
            yield {part.tag: part.text or "" for part in found}
