"""The page of a verdict: log text in it is foreign, and stays text."""

from __future__ import annotations

import re
import stat
from html.parser import HTMLParser
from pathlib import Path

import pytest

from airflow_kstream.cli import main
from airflow_kstream.views.triage import diagnosis_page
from tests.simulated.logs import DRIVER, diagnosed, died, driver, failing

HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(2)> \" onload='alert(3)' &lt; \x1b[2J "
    "https://ada:hunter2@host/x password=hunter2 java.io.IOException: No space left on device"
)


class Elements(HTMLParser):
    """The names of a page's elements, and of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(page: str) -> Elements:
    elements = Elements()
    elements.feed(page)
    return elements


def test_markup_in_a_log_is_shown_and_never_run() -> None:
    page = diagnosis_page(
        diagnosed({f"<b>{DRIVER}": driver(failing("10:00:00", "x", HOSTILE), died("10:00:01"))}), "<i>"
    )
    elements = parsed(page)
    assert not elements.names & {"script", "img", "b", "i"}
    assert not {name for name in elements.attributes if name.startswith("on")} | elements.attributes & {"src", "href"}
    assert "<script>alert(1)</script>" in elements.text
    assert "default-src 'none'" in page
    assert "\x1b" not in page
    assert "hunter2" not in page


def test_unknown_lines_are_escaped_too() -> None:
    strange = failing("10:00:00", "x", "LedgerException: <script>alert(1)</script> password=hunter-two")
    page = diagnosis_page(diagnosed({DRIVER: driver(strange, died("10:00:01"))}), "app")
    assert "script" not in parsed(page).names
    assert "hunter" not in page


def test_a_command_is_code_and_a_step_has_a_colour_on_a_dark_page_too() -> None:
    dead = "SecretManager$InvalidToken: token (HDFS_DELEGATION_TOKEN token 17 for alice) can't be found in cache"
    page = diagnosis_page(diagnosed({DRIVER: driver(failing("10:00:00", "x", dead), died("10:00:01"))}), "app")
    assert "<code>kstream tokens push</code>" in page
    drawn = set(re.findall(r'<g class="(\w+)"', page))
    assert drawn == {"cause", "consequence"}
    assert {kind: page.count(f"--{kind}:#") for kind in drawn} == {"cause": 2, "consequence": 2}


def test_of_several_possible_causes_the_one_of_the_verdict_is_drawn_as_the_cause() -> None:
    log = driver(
        failing("10:00:00", "x", "java.io.IOException: No space left on device"),
        failing("10:00:05", "x", "org.apache.hadoop.security.AccessControlException: Permission denied: user=ada"),
        died("10:00:06"),
    )
    page = diagnosis_page(diagnosed({DRIVER: log}), "app")
    drawn = re.findall(r'<g class="(\w+)">.*?<text[^>]*>[^<]*driver: ([^<]*)<', page)
    assert drawn[:2] == [("cause", "a disk is full"), ("other", "HDFS denies the user a right")]


def test_a_narrow_page_lists_the_steps_that_a_wide_one_draws() -> None:
    log = driver(failing("10:00:00", "x", "java.io.IOException: No space left on device"), died("10:10:00"))
    page = diagnosis_page(diagnosed({DRIVER: log}), "app")
    assert 'name="viewport"' in page
    assert re.findall(r'<g class="(\w+)"', page) == re.findall(r'<li class="(\w+)"', page)


def test_the_timeline_is_drawn_in_the_order_of_time() -> None:
    log = driver(failing("10:00:00", "x", "java.io.IOException: No space left on device"), died("10:10:00"))
    page = diagnosis_page(diagnosed({DRIVER: log}), "app")
    places = [float(x) for x in re.findall(r'<circle cx="(\d+)"', page)]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (20, 980)
    assert "10:00:00 driver: a disk is full" in parsed(page).text


def test_the_page_is_for_its_owner_alone_and_replaces_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "stderr").write_text(driver(failing("10:00:00", "x", HOSTILE), died("10:00:01")))
    words = ["triage", str(tmp_path / "logs"), "--html", str(tmp_path / "page.html")]
    for code in (0, 2):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert (end.value.code or 0) == code
    assert stat.S_IMODE((tmp_path / "page.html").stat().st_mode) == 0o600
    assert "exists already" in capsys.readouterr().err
