"""A folder's listing in pages as a NameNode gives them: a thousand names each, which no test wants to create."""

from __future__ import annotations

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.cluster import Tls
from airflow_kstream.model.identity import Identity
from tests.simulated.strange_servers import Answer, said, serving

ADA = Identity("ada@EXAMPLE.TEST", keytab="/no/such/keytab")


def page(*names: str, left: int) -> Answer:
    statuses = [{"pathSuffix": name} for name in names]
    return said(
        {"DirectoryListing": {"partialListing": {"FileStatuses": {"FileStatus": statuses}}, "remainingEntries": left}}
    )


def test_names_that_begin_alike_may_fill_pages_and_nothing_beyond_them_is_fetched() -> None:
    pages = {
        "startAfter=%5E": page("^a", "_1", left=5),
        "startAfter=_1": page("_2", "_3", left=3),
        "startAfter=_3": page("_4", "part-0", left=1),
    }
    with serving(pages) as server:
        hdfs = Hdfs((server.address,), ADA, Tls())
        assert hdfs.names_beginning("/a", "_") == {"_1", "_2", "_3", "_4"}
        assert len(server.requests) == len(pages)
        hdfs.close()


def test_a_server_that_repeats_a_page_is_asked_no_further() -> None:
    with serving({"": page("_1", "_2", left=5)}) as server:
        hdfs = Hdfs((server.address,), ADA, Tls())
        assert hdfs.names_beginning("/a", "_") == {"_1", "_2"}
        assert len(server.requests) == 2
        hdfs.close()
