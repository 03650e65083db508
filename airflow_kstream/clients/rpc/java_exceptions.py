"""Our errors for Hadoop's exceptions: one table for RPC, WebHDFS and `hdfs debug`."""

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

# The server lacks the operation, and retrying will not help. Callers that have another way check for these.
NO_SUCH_OPERATION = frozenset({"RpcNoSuchMethodException", "UnsupportedOperationException"})
# Another NameNode may be the active one.
NOT_ACTIVE = frozenset({"StandbyException", "ObserverRetryOnActiveException"})

ERRORS: Mapping[str, type[KstreamError]] = MappingProxyType(
    {
        "FileNotFoundException": NotFound,
        "ParentNotDirectoryException": NotFound,
        "ApplicationNotFoundException": NotFound,
        "ContainerNotFoundException": NotFound,
        "AccessControlException": Denied,
        "AuthorizationException": Denied,
        "InvalidToken": Denied,
        "NSQuotaExceededException": Denied,
        "DSQuotaExceededException": Denied,
        "SaslException": CredentialError,
        "IllegalArgumentException": InvalidInput,
        "HadoopIllegalArgumentException": InvalidInput,
        "InvalidPathException": InvalidInput,
        "AclException": InvalidInput,
        **dict.fromkeys(NO_SUCH_OPERATION, InvalidInput),
        "FileAlreadyExistsException": Conflict,
        "PathIsNotEmptyDirectoryException": Conflict,
        "AlreadyBeingCreatedException": Conflict,
        "RecoveryInProgressException": Conflict,
    }
)
# For a tool that prints an exception's message and not its class.
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
    """Return our error for this exception: Unavailable if it is not in the table, as it then proves nothing."""
    return ERRORS.get(simple_name(java_class), Unavailable)


def error_of_words(words: str) -> type[KstreamError]:
    """Return our error for an exception, by its message alone."""
    return next((kind for pattern, kind in _WORDS if re.match(pattern, words)), Unavailable)
