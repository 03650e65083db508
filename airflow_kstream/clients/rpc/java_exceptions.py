"""What Hadoop's exceptions mean to us: one table, whichever way they come (RPC, WebHDFS, hdfs-native, `hdfs debug`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from airflow_kstream.model.errors import (
    Conflict,
    CredentialError,
    Denied,
    InvalidInput,
    KstreamError,
    NotFound,
    Unavailable,
)

# A server without the operation: wrong for this server, and a retry won't help. Who has another way asks for these.
NO_SUCH_OPERATION = frozenset({"RpcNoSuchMethodException", "UnsupportedOperationException"})

ERRORS: Mapping[str, type[KstreamError]] = MappingProxyType(
    {
        "FileNotFoundException": NotFound,
        "ParentNotDirectoryException": NotFound,
        "AccessControlException": Denied,
        "AuthorizationException": Denied,
        "InvalidToken": Denied,
        "NSQuotaExceededException": Denied,
        "DSQuotaExceededException": Denied,
        "SaslException": CredentialError,
        "IllegalArgumentException": InvalidInput,
        "HadoopIllegalArgumentException": InvalidInput,
        "InvalidPathException": InvalidInput,
        **dict.fromkeys(NO_SUCH_OPERATION, InvalidInput),
        "FileAlreadyExistsException": Conflict,
        "AlreadyBeingCreatedException": Conflict,
        "RecoveryInProgressException": Conflict,
    }
)
# For a tool that prints what an exception says and not its class.
_WORDS: tuple[tuple[str, type[KstreamError]], ...] = (
    ("File does not exist", NotFound),
    ("Path is not a file", NotFound),
    ("Permission denied", Denied),
    (".*(?:no leases found|pendingCreates is non-null|waiting to be minimally replicated)", Conflict),
    (".*(?:GSS initiate failed|Client cannot authenticate)", CredentialError),
)


def simple_name(java_class: str) -> str:
    """Return the class's name without its package and without the class that encloses it."""
    return java_class.rpartition(".")[2].rpartition("$")[2]


def error_of(java_class: str) -> type[KstreamError]:
    """Return our error for this exception. One that is not in the table proves nothing: Unavailable."""
    return ERRORS.get(simple_name(java_class), Unavailable)


def error_of_words(words: str) -> type[KstreamError]:
    """Return our error for an exception of which only the message is known."""
    return next((kind for pattern, kind in _WORDS if re.match(pattern, words)), Unavailable)
