"""The ends of containers' logs: from NodeManagers, their log server, and HDFS; bounded, masked, and clear when lost."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from airflow_kstream.clients.hdfs.answers import MOST_ROWS
from airflow_kstream.model.errors import Denied, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.logs.container_log import LoggedContainer
from tests.simulated.strange_servers import HTML, STRANGE, Answer
from tests.simulated.yarn_logs import APP, BUCKET, ID, NOT_ALLOWED, UNKNOWN, logs, page

LOG = f"/ws/v1/node/containers/{ID}/logs"
OUT, ERR = f"{LOG}/stdout", f"{LOG}/stderr"


def test_a_nodemanager_sends_the_last_bytes_of_each_file() -> None:
    with logs({OUT: page("stdout", b"a\nb\n"), ERR: page("stderr", b"")}) as yarn:
        assert yarn.tails(size=77) == {"stdout": "a\nb\n", "stderr": ""}
        assert yarn.nodemanager.requests == [f"GET {OUT}?size=-77", f"GET {ERR}?size=-77"]


def test_a_file_that_was_never_written_is_left_out() -> None:
    with logs({ERR: page("stderr", b"words\n")}) as yarn:
        assert yarn.tails("syslog", "stderr") == {"stderr": "words\n"}


def test_what_was_aggregated_before_the_newest_part_is_left_out() -> None:
    earlier = page("stdout", b"last week's\n").body
    with logs({OUT: page("stdout", b"End of LogType:stdout was printed\nnow\n", more=earlier)}) as yarn:
        assert yarn.tails("stdout") == {"stdout": "End of LogType:stdout was printed\nnow\n"}


def test_secrets_are_masked_and_half_a_line_is_left_out() -> None:
    """The beginning of the first line may be what told that the rest is a secret."""
    content = b"sword=hunter2\nurl=jdbc:x://bob:hunter3@db password=hunter4\nend\n"
    with logs({OUT: page("stdout", content, length=500_000_000)}) as yarn:
        (text,) = yarn.tails("stdout").values()
    assert "hunter" not in text
    assert text.endswith("\nend\n")


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    with logs({OUT: page("stdout", b"\xff\xfe caf\xc3\xa9\n")}) as yarn:
        assert yarn.tails("stdout") == {"stdout": "\ufffd\ufffd café\n"}


ENDLESS = replace(page("stdout", b"x" * 5_000_000), headers={"Content-Length": "500000000"})
SLOW = replace(page("stdout", b"words\n" * 100), drip=1.0)
FAILURES = {
    "a byte a second": (SLOW, Unavailable, "not complete after"),
    "500 MB": (ENDLESS, Unavailable, "it sends more than the bytes that it should"),
    "HTML": (Answer(200, HTML, "text/html"), Unavailable, "not a page of a container's log"),
    "404": (UNKNOWN, NotFound, "it answered 404"),
    "a redirect to itself": (
        Answer(307, headers={"Location": "http://127.0.0.1:1/ws/v1/history/x"}),
        Unavailable,
        "Connection refused",
    ),
} | {
    name: (STRANGE[name], KstreamError, "")
    for name in ("401", "403 of a proxy", "500", "503", "redirect without Location", "broken gzip", "truncated JSON")
}


@pytest.mark.parametrize(("answer", "kind", "words"), FAILURES.values(), ids=FAILURES)
def test_what_a_nodemanager_can_not_show_is_one_error_in_time(
    answer: Answer, kind: type[KstreamError], words: str
) -> None:
    with logs({OUT: answer}) as yarn, pytest.raises(kind) as caught:
        yarn.tails("stdout", seconds=1.0)
    assert words in str(caught.value)
    assert f"of {ID}" in str(caught.value)
    assert "below /tmp/logs" in str(caught.value), "both places are named"


def test_two_slow_servers_together_take_no_longer_than_allowed() -> None:
    with logs({"": SLOW}) as yarn, logs({"": SLOW}) as other:
        yarn.namenode = other.nodemanager.address.removeprefix("http://")
        with pytest.raises(KstreamError) as caught:
            yarn.tails(seconds=1.0)
    limits = re.findall(r"not complete after ([0-9.]+) s", str(caught.value))
    assert len(limits) == 2, "each of them was asked"
    assert sum(map(float, limits)) <= 1.0


def test_a_redirect_leads_to_the_log_server() -> None:
    with logs({"/ws/v1/history": page("stdout", b"aggregated\n")}) as history, logs() as yarn:
        location = f"{history.nodemanager.address}/ws/v1/history/containers/{ID}/logs/stdout?size=-9&from=node"
        yarn.nodemanager.script[OUT] = Answer(307, headers={"Location": location})
        assert yarn.tails("stdout") == {"stdout": "aggregated\n"}
        assert history.nodemanager.requests == [f"GET {location.removeprefix(history.nodemanager.address)}"]


LAYOUTS = [BUCKET, f"/tmp/logs/bob/logs/{APP}", f"/tmp/logs/bob/logs-tfile/{APP}", f"/tmp/logs/bob/{APP}"]


@pytest.mark.parametrize("folder", LAYOUTS)
def test_what_the_nodemanager_has_no_longer_is_read_from_hdfs(folder: str) -> None:
    """The layouts of Hadoop 3.3 and later, of those before, and without yarn.nodemanager.remote-app-log-dir-suffix."""
    with logs() as yarn:
        yarn.aggregate(folder=folder)
        tails = yarn.tails("stdout", "stderr", "syslog")
    assert tails == {"stdout": "Traceback of 1\nValueError: café\n", "stderr": tails["stderr"]}
    assert tails["stderr"].endswith("the end of stderr of 1\n")


def test_a_compressed_log_of_many_chunks_is_read() -> None:
    with logs() as yarn:
        yarn.aggregate(file="chunked.gz.tfile")
        assert yarn.tails("stderr", size=40) == {"stderr": "the end of stderr of 1\n"}


def test_a_users_many_other_applications_and_nodes_hide_no_log() -> None:
    above = "/tmp/logs/bob"
    with logs() as yarn:
        yarn.aggregate(folder=f"{above}/{APP}")
        yarn.files.update({f"{above}/application_1600000000000_{number:05d}/n_1": b"" for number in range(MOST_ROWS)})
        yarn.files.update({f"{above}/{APP}/node{number}_45454": b"" for number in range(MOST_ROWS)})
        requests: list[int] = []
        yarn.asked.append(lambda: requests.append(1))
        assert "stdout" in yarn.tails("stdout")
    assert len(requests) < 10, "no folder of another application is listed"


def test_only_finished_files_of_the_containers_node_are_read_the_newest_first() -> None:
    with logs() as yarn:
        yarn.aggregate()
        for name in ("127.0.0.1_45454.tmp", "other_45454"):
            yarn.files[f"{BUCKET}/{name}"] = b"no TFile"
        assert "stdout" in yarn.tails()
        yarn.files[f"{BUCKET}/127.0.0.1_45454_1700"] = b"written by LogAggregationIndexedFileController"
        with pytest.raises(InvalidInput, match=r"45454_1700.*it is not a TFile"):
            yarn.tails()


def test_where_the_nodemanager_refuses_us_the_aggregated_log_is_awaited() -> None:
    """A gateway may not view its proxy user's logs there, but HDFS knows doAs."""
    with logs({OUT: NOT_ALLOWED}) as yarn:
        yarn.files[f"{BUCKET}/127.0.0.1_45454.tmp"] = b""
        with pytest.raises(Denied, match="the application's own view ACL doesn't name the user who logs in"):
            yarn.tails("stdout", seconds=1.0)
        yarn.aggregate_after(requests=12)
        assert yarn.tails("stdout") == {"stdout": "Traceback of 1\nValueError: café\n"}


def test_the_bounds_are_ten_megabytes_and_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    with logs({OUT: page("stdout", b"")}) as yarn:
        yarn.tails("stdout", size=10**12, seconds=1e9)
        assert yarn.nodemanager.requests == [f"GET {OUT}?size=-{10 << 20}"]


def test_a_link_names_the_container_its_node_and_its_user() -> None:
    found = LoggedContainer.of_link(f"https://node1:8044/node/containerlogs/{ID}/bob")
    assert found == LoggedContainer(ID, "https://node1:8044", "bob")
    assert (found.application, found.host) == (APP, "node1")
    later = LoggedContainer.of_link("http://n:1/node/containerlogs/container_e17_1700_0042_02_000001/bob/")
    assert later is not None
    assert later.application == "application_1700_0042"
    for link in ("", "N/A", f"http://rm:8088/cluster/app/{APP}", "http://n:1/node/containerlogs/x/bob"):
        assert LoggedContainer.of_link(link) is None
