"""Tokens that Hadoop itself issued and wrote, and sessions that may probe them."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from getpass import getuser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.local import credential_files
from airflow_kstream.clients.local.credential_files import read_credentials
from airflow_kstream.clients.local.private import write_private
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.tools import java_home
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.credentials_file import HadoopCredentials
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.tokens import Token, decoded_url_string
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.tokens import files
from airflow_kstream.supervise.tokens.files import ChosenToken, TokenValidity
from tests.live import sleepers
from tests.live.streams import cluster
from tests.run_folder import java_options

DTUTIL = "org.apache.hadoop.security.token.DtUtilShell"
JOB_KEY = b"\x01\x02\x03"
_FETCHER = "org.apache.hadoop.hdfs.tools.DelegationTokenFetcher"
_PROGRAM = Path(__file__).parent / "hadoop_tokens" / "Tokens.java"


def fetch(minicluster: Minicluster, file: Path) -> Path:
    """Fetch a token with `hdfs fetchdt` as streamer: over RPC, so that the owner is the whole principal."""
    done = minicluster.hadoop_main(_FETCHER, "--renewer", "yarn", str(file), as_="streamer")
    assert done.returncode == 0, done.stderr
    file.chmod(0o600)
    return file


def issue(minicluster: Minicluster, file: Path) -> Path:
    """Write a WebHDFS token in its URL form to the file; owner and renewer are streamer's short name."""
    hdfs = Hdfs(minicluster.namenodes, identity(minicluster, "streamer"), Tls())
    with closing(hdfs):
        return write_private(file, hdfs.new_token(getuser()).encode())


def identity(minicluster: Minicluster, name: str) -> Identity:
    return Identity(minicluster.principal(name), keytab=str(minicluster.keytab(name)))


@contextmanager
def access_as(minicluster: Minicluster, name: str, **changed: Any) -> Iterator[ClusterSession]:
    with cluster(minicluster) as found, open_session(replace(found, **changed), identity(minicluster, name)) as session:
        yield session


def chosen(minicluster: Minicluster, file: Path) -> ChosenToken:
    with cluster(minicluster) as found:
        return files.choose(found, file, None)


def standing(minicluster: Minicluster, file: Path) -> TokenValidity:
    with cluster(minicluster) as found:
        (said,) = files.validities(found, read_credentials(file))
    return said


@contextmanager
def sleeper(minicluster: Minicluster, credentials: Path, tags: tuple[str, ...] = ()) -> Iterator[str]:
    """An application of streamer that sleeps, with this file's token and one secret key."""
    with (
        access_as(minicluster, "streamer") as session,
        sleepers.sleeping(session, "sleeper", tags, container={"credentials": held(credentials)}) as app,
    ):
        yield app


def held(credentials: Path) -> dict[str, Any]:
    """Return this file's token and one secret key as credentials of a container."""
    (token,) = read_credentials(credentials).credentials.tokens
    url_string = credential_files.url_string(credentials, token).reveal().decode()
    key = base64.b64encode(JOB_KEY).decode()
    return {
        "tokens": {"entry": [{"key": token.alias, "value": url_string}]},
        "secrets": {"entry": [{"key": "job.key", "value": key}]},
    }


def leaked(file: Path, *texts: str) -> list[str]:
    """Return those of the texts that show a password of the file: as bytes, as digits, or as a part of a URL string."""
    content = SecretBytes(file.read_bytes())
    found = HadoopCredentials.read(content)
    (token,) = found.tokens
    url_string = found.url_string(content, token).reveal().decode()
    inside = SecretBytes(url_string.encode())
    password = decoded_url_string(inside).reveal()[Token.from_url_string(inside).password_place]
    parts = {url_string[at : at + 16] for at in range(len(url_string) - 15)}
    parts |= {repr(password)[2:-1], password.hex(), base64.b64encode(password).decode()}
    return [text for text in texts if any(part in text for part in parts)]


def hadoop_classes(*words: str) -> list[list[str]]:
    """Run the program beside this file on pyspark's Hadoop; return its lines, split at tabs."""
    spec = find_spec("pyspark")
    jars = Path(spec.origin if spec and spec.origin else "").parent / "jars"
    java = (str(java_home() / "bin/java"), "-XX:TieredStopAtLevel=1", *java_options(), "-Dstdout.encoding=UTF-8")
    done = subprocess.run([*java, "-cp", f"{jars}/*", str(_PROGRAM), *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]
