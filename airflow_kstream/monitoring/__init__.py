"""Files for Prometheus and Grafana, which `kstream monitoring` writes where an administrator wants them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files

from airflow_kstream.model.streams.event import link

# In the order in which somebody sets them up.
NAMES = ("statsd_mapping.yml", "alerts.rules.yml", "alerts.test.yml", "dashboard.json")

_ALERT = re.compile(r" *(?:- alert|alertname): (\w+)\n")


def text_of(name: str, docs_url: str = "") -> str:
    """Return one of the files, as it is in the package; with the site's address, each alert links its runbook."""
    text = files(__name__).joinpath(name).read_text(encoding="utf-8")
    return "".join(_linked(text, docs_url)) if docs_url else text


def _linked(text: str, docs_url: str) -> Iterator[str]:
    """Yield the lines with a `runbook_url` in each alert's annotations, also in those that a test expects."""
    alert = ""
    for line in text.splitlines(keepends=True):
        yield line
        if named := _ALERT.fullmatch(line):
            alert = named[1]
        if line.strip() in {"annotations:", "exp_annotations:"}:
            indent = " " * (len(line) - len(line.lstrip()) + 2)
            yield f"{indent}runbook_url: {json.dumps(link(docs_url, alert))}\n"
