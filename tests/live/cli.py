"""`kstream` in this process: quick, and observable by the test."""

from __future__ import annotations

import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import yaml

from airflow_kstream.cli import main
from airflow_kstream.minicluster import Minicluster
from tests.live.streams import fields


@dataclass(frozen=True)
class Ran:
    code: object
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)

    @property
    def words(self) -> str:
        """Return the output without a table's borders and line breaks."""
        return " ".join(word for word in self.out.split() if word.isascii())


def ran(*argv: str) -> Ran:
    out, err = StringIO(), StringIO()
    code: object = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(argv)
        except SystemExit as end:
            code = end.code
    return Ran(code or 0, out.getvalue(), err.getvalue())


def cluster_file(minicluster: Minicluster, who: str, folder: Path) -> Path:
    """Write and return the file for `--cluster`: the minicluster, as one of its principals."""
    file = folder / "minicluster.yaml"
    file.write_text(yaml.safe_dump({name: value for name, value in asdict(fields(minicluster, who)).items() if value}))
    return file
