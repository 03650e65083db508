"""Whether a connection allows what a declaration uses.

Pure: where a path of the worker really leads is asked by the caller.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import urlsplit

from airflow_kstream.model.airflow_options import NotifyPolicy, notifiers_of, texts_in
from airflow_kstream.model.clusters.allow import Allow, covers, covers_file, covers_secret, covers_server
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.kerberos.identity import CacheKind, split_cache_name
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.spark_conf import DOWNLOADS, redefined_schemes
from airflow_kstream.model.streams.stream import KeytabCredentials, ProxyUserCredentials, StreamSpec, TicketCredentials

# The kubelet writes a volume into a folder named by the time, and links to it (AtomicWriter).
_OF_KUBERNETES = re.compile(r"/\.\.\d{4}_\d\d_\d\d_[^/]+/.*")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
# What lies in these is not the worker's, and comes with the rights of the job's user. Others have to be named: `har`
# reads local files, `http` lets the worker ask any server. Jars that are `local` on each host are loaded here, too.
_ELSEWHERE = frozenset(
    {"hdfs", "viewfs", "webhdfs", "swebhdfs", "s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs"}
    | {"adl", "o3fs", "ofs"}
)
_FILE = "file:"
# Of a notifier's arguments: what it reads on the worker, and servers other than that of its connection.
_A_FILE = re.compile(r"file|attachment|path|template", re.IGNORECASE)
_A_SERVER = re.compile(r"ur[il]|host|endpoint|server|prox|address|webhook", re.IGNORECASE)
# A template, and what clients read in different ways.
_AMBIGUOUS = re.compile(r"\{[{%#]|[\\\s\x00-\x1f]")
# Spark's client (ConfigReader) and Hadoop's Configuration put variables of their environment into values.
_OF_THE_CLIENT = re.compile(r"\$\{env[:.]([^}]*)\}")


def _as_named(path: str) -> str:
    return path


def needs(spec: StreamSpec, cluster: Cluster) -> Allow:
    """Return exactly what a declaration uses beside what its connection has. Paths are as the declaration names them,
    without '..'."""
    principals, users, credentials = _identity(spec, cluster)
    return Allow(
        principals=_sorted(principals),
        proxy_users=_sorted(users),
        secrets=_sorted(_secrets(spec)),
        local_files=_sorted([*credentials, *_files(spec)]),
        brokers=_sorted(spec.kafka.brokers),
    ).with_all(_all_notifiers(spec))


def notifier_needs(notify: NotifyPolicy) -> Allow:
    """Return what a notifier uses: its class, and the connections, files and servers that its arguments name.

    By the names of the arguments, those within others too: what each class does with them, nobody here knows.
    """
    if notify.notifier is None:
        return Allow()
    connections, files, servers = [], [], []
    for place, key, text in texts_in(notify.kwargs, ""):
        if key.endswith("conn_id"):
            connections.append(f"conn:{text}")
        elif _A_SERVER.search(place):
            servers.append(_server(text))
        elif _A_FILE.search(place):
            files.append(_file(text, frozenset()))
    return Allow(
        secrets=_sorted(connections),
        local_files=_sorted(files),
        notifiers=(notify.notifier,),
        servers=_sorted(servers),
    )


def _server(address: str) -> str:
    """Return scheme, host and port alone: the rest of a webhook's address is its secret.

    Of what clients read in different ways, of a template, and of an address without a host: its hash.
    """
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return _hashed(address)
    if not parts.hostname or _AMBIGUOUS.search(address):
        return _hashed(address)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}" if parts.scheme else f"{host}{port}"


def _hashed(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode(errors='replace')).hexdigest()}"


def _all_notifiers(spec: StreamSpec) -> Allow:
    needed = Allow()
    for _, notify in (("", spec.notify), *notifiers_of(spec.airflow)):
        needed = needed.with_all(notifier_needs(notify))
    return needed


def refusals(
    spec: StreamSpec, cluster: Cluster, running: StreamSpec | None = None, real: Callable[[str], str] = _as_named
) -> Allow:
    """Return what the connection does not allow of what a declaration uses, as the lines that would allow it.

    What `running` has, the spec of the stream's newest generation, is not among it: what runs is restarted as it was.
    `real` returns where a path of this host leads once its symlinks are followed. Nothing, for a connection without
    `allow`.
    """
    allow = cluster.allow
    if allow is None:
        return Allow()
    before = needs(running, cluster) if running else Allow()
    new = {
        name: tuple(each for each in used if each not in getattr(before, name))
        for name, used in needs(spec, cluster).items()
    }
    return not_covered(allow, Allow(**new), real)


def not_covered(allow: Allow, needed: Allow, real: Callable[[str], str] = _as_named) -> Allow:
    """Return what of the needed a connection's `allow` lacks. `real` is as in `refusals`.

    A file in a Secret or ConfigMap that Kubernetes mounts is returned as the mount's folder: what lies between the two
    gets another name with each change.
    """
    files = [_real(path, real) for path in needed.local_files]
    secrets = [_real_secret(name, real) for name in needed.secrets]
    return Allow(
        principals=tuple(name for name in needed.principals if not covers(allow.principals, name)),
        proxy_users=tuple(name for name in needed.proxy_users if not covers(allow.proxy_users, name)),
        secrets=_lasting(name for name in secrets if not covers_secret(allow.secrets, name)),
        local_files=_lasting(path for path in files if not covers_file(allow.local_files, path)),
        notifiers=tuple(name for name in needed.notifiers if not covers(allow.notifiers, name)),
        servers=tuple(name for name in needed.servers if not covers_server(allow.servers, name)),
        brokers=tuple(name for name in needed.brokers if not covers(allow.brokers, name)),
    )


def words(missing: Allow, connection: str) -> str:
    """Name what is not allowed, and the lines that would allow it."""
    named = "; ".join(f"{name}: {', '.join(names)}" for name, names in missing.items() if names)
    return (
        f"connection {connection} does not allow {named}. Somebody who may edit the connection can add it to its "
        f"allow: {json.dumps(missing.to_json())}"
    )


def _lasting(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_OF_KUBERNETES.sub("/", path) for path in paths))


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def _identity(spec: StreamSpec, cluster: Cluster) -> tuple[list[str], list[str], list[str]]:
    """Return the principals, the proxied users, and the files with keys and tickets."""
    own = cluster.watcher
    principal: str | None
    cache: str | None = None
    match spec.credentials:
        case ProxyUserCredentials(user):
            return [], [user], []
        case KeytabCredentials(principal, keytab):
            pass
        case TicketCredentials(principal, keytab, cache):
            pass
    files = [posixpath.normpath(keytab)] if keytab and keytab != own.keytab else []
    files += [_cache_file(cache)] if cache and cache != own.ticket_cache else []
    return [principal] if principal and principal != own.principal else [], [], files


def _cache_file(cache: str) -> str:
    kind, rest = split_cache_name(cache)
    return posixpath.normpath(rest) if kind in {CacheKind.FILE, CacheKind.DIR} else cache


def _secrets(spec: StreamSpec) -> Iterator[str]:
    for value in (*spec.conf.values(), *spec.deploy.environment.values()):
        if isinstance(value, SecretRef):
            yield f"{_FILE}{posixpath.normpath(value.name)}" if value.kind == "file" else str(value)
        else:
            yield from (f"env:{name}" for name in _OF_THE_CLIENT.findall(value))


def _files(spec: StreamSpec) -> Iterator[str]:
    elsewhere = frozenset[str]() if DOWNLOADS in spec.conf else _ELSEWHERE - redefined_schemes(spec.conf)
    named = [spec.application, *spec.deploy.shipped, *spec.files_in_conf]
    yield from (path for name in named if name and (path := _file(name, elsewhere)))


def _file(name: str, elsewhere: frozenset[str]) -> str:
    """Return the path of a file on this host, as Spark reads its name; what is neither that nor elsewhere, as it is."""
    name = name.partition("#")[0]
    scheme = _SCHEME.match(name)
    if scheme is None:
        return _plain(name)
    if scheme[1].lower() in elsewhere:
        return ""
    if scheme[1].lower() not in {"file", "local"}:
        return name
    rest = name[scheme.end() :]
    return _plain(f"/{rest[2:].partition('/')[2]}" if rest.startswith("//") else rest)


def _plain(path: str) -> str:
    normal = posixpath.normpath(path) if path else ""
    return f"/{normal.lstrip('/')}" if normal.startswith("/") else normal


def _real(path: str, real: Callable[[str], str]) -> str:
    return path if _SCHEME.match(path) else _plain(real(path))


def _real_secret(name: str, real: Callable[[str], str]) -> str:
    return f"{_FILE}{_real(name.removeprefix(_FILE), real)}" if name.startswith(_FILE) else name
