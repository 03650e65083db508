"""A daemon's /conf: what it tells of its properties and its clock, and what another server's answer is worth."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.clients.server_conf import served_conf
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.clusters.cluster_facts import NotKnown, known
from airflow_kstream.model.errors import CredentialError, Denied, KstreamError, Unavailable
from airflow_kstream.model.finding import NotChecked
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.supervise.doctor.try_ask import try_ask
from tests.simulated.strange_servers import NOW, STRANGE, Answer, said, serving

WATCHER = Identity("watcher@EXAMPLE.COM", keytab="/no/such/keytab")
PAGE = {
    "properties": [
        {"key": "a.b", "value": " 250 ", "isFinal": False, "resource": "yarn-default.xml"},
        {"key": "secret", "value": "<redacted>", "isFinal": True, "resource": "file:/etc/hadoop/conf/yarn-site.xml"},
        {"key": "set.later", "value": "1h", "isFinal": False, "resource": "programatically"},
    ]
}


def test_a_value_comes_with_the_file_that_set_it() -> None:
    with serving({"/conf": said(PAGE)}) as server:
        conf = served_conf(server.address, WATCHER, Tls()).conf
    assert conf.said("a.b", "secret", "none") == (
        f"{server.address}: a.b=250 (yarn-default.xml), secret=<redacted> (yarn-site.xml), no none"
    )
    assert (conf.duration("a.b"), conf.duration("set.later")) == (timedelta(milliseconds=250), timedelta(hours=1))
    assert server.requests == ["GET /conf?format=json"]


def test_what_no_file_sets_is_not_known() -> None:
    with serving({"/conf": said(PAGE)}) as server:
        conf = served_conf(server.address, WATCHER, Tls()).conf
    with pytest.raises(NotKnown, match=r"none could not be asked, because http.* its version has no default for it"):
        conf.need("none")
    with pytest.raises(NotKnown, match="which is not a duration"):
        conf.duration("secret")


@pytest.mark.parametrize("kind", ["text/html", "application/json"])
def test_a_page_in_place_of_json_is_called_one(kind: str) -> None:
    """A login page or a proxy answered: nothing is wrong with the daemon's JSON."""
    words, page = (
        "it answered an HTML page, not JSON, as a login page or a proxy in between does",
        STRANGE["HTML with 200"].body,
    )
    with serving({"/conf": Answer(200, page, kind)}) as server, pytest.raises(Unavailable, match=words):
        served_conf(server.address, WATCHER, Tls())


def test_the_date_of_an_answer_is_the_server_s_clock() -> None:
    with serving({"/conf": said(PAGE)}) as server:
        ahead = served_conf(server.address, WATCHER, Tls()).ahead
    assert ahead is not None
    assert abs(NOW - datetime.now(UTC) - ahead) < timedelta(minutes=1)


def test_a_server_of_the_same_second_has_the_same_clock() -> None:
    date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    with serving({"/conf": Answer(200, said(PAGE).body, headers={"Date": date})}) as server:
        ahead = served_conf(server.address, WATCHER, Tls()).ahead
    assert ahead is not None
    assert abs(ahead) <= timedelta(seconds=1)


@pytest.mark.parametrize("answer", STRANGE)
def test_another_server_s_answer_is_a_missing_fact_and_no_configuration(answer: str) -> None:
    with serving({"": STRANGE[answer]}) as server:
        fact = try_ask("its configuration", lambda: served_conf(server.address, WATCHER, Tls()), "a right")
    assert isinstance(fact, NotChecked)
    assert server.address in fact.why


def test_only_a_refusal_names_the_missing_right() -> None:
    def fact(error: KstreamError) -> NotChecked:
        def fail() -> str:
            raise error

        answer = try_ask("it", fail, "a place in the acl")
        assert isinstance(answer, NotChecked)
        return answer

    assert fact(Denied("it answered 403")).right == "a place in the acl"
    assert fact(Unavailable("it is away")).right == fact(CredentialError("no ticket")).right == ""
    assert try_ask("it", lambda: known("an answer")) == "an answer"
