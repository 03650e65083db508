"""The cluster and the stream of `tests/faults`, anew for the longer part of the suite."""

from tests.faults.conftest import faulty, only, proxies, stream

__all__ = ["faulty", "only", "proxies", "stream"]
