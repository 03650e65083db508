"""Libraries that are imported at their first use, and not when a DAG file is parsed.

They take half a second, and depend on libraries in C and Rust that a DAG processor may lack. Type checkers see the
real modules. Only code that derives classes from theirs imports them at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["gssapi", "hdfs", "hdfs_native", "krb5", "requests_kerberos", "spnego"]


class _Lazy:
    """A module that is imported when its first attribute is read."""

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
