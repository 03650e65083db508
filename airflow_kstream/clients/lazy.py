"""Libraries that are imported at the first use of something in them, and not where a DAG file is parsed.

They take half a second, and stand on libraries in C and Rust that a DAG processor may lack. Type checkers see the
modules themselves; two kinds of code import them at once, because they derive classes from theirs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["gssapi", "hdfs", "hdfs_native", "krb5", "requests_kerberos", "spnego"]


class _Lazy:
    """A module that is imported when it is asked for its first attribute."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


if TYPE_CHECKING:
    import gssapi
    import hdfs
    import hdfs_native
    import krb5
    import requests_kerberos
    import spnego
else:
    gssapi, hdfs, hdfs_native = _Lazy("gssapi"), _Lazy("hdfs"), _Lazy("hdfs_native")
    krb5, requests_kerberos, spnego = _Lazy("krb5"), _Lazy("requests_kerberos"), _Lazy("spnego")
