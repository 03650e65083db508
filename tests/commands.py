"""`kstream` in this process: quick, and observable by the test."""

from __future__ import annotations

import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import yaml

from airflow_kstream.cli import main


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


@dataclass(frozen=True)
class TicketCommands:
    """`kstream tickets`: the commands for one cluster, and a declaration; both are files in `folder`."""

    folder: Path

    def cluster(self, fields: dict[str, str]) -> None:
        (self.folder / "cluster.yaml").write_text(yaml.safe_dump(fields))

    def declaration(self, *principals: dict[str, str]) -> None:
        declaration = {"principals": list(principals), "folder": str(self.folder / "kept")}
        (self.folder / "order.yaml").write_text(yaml.safe_dump(declaration))

    def cache(self, principal: str) -> Path:
        """Return the path of a cache in the folder of the cluster's file."""
        (cache,) = (self.folder / "kept").glob(f"cluster-*/{principal}.ccache")
        return cache

    def run(self, *words: str) -> Ran:
        return ran("tickets", *words)

    def on_cluster(self, *words: str, declaration: str = "order.yaml") -> Ran:
        files = {"--cluster": "cluster.yaml", "--declaration": declaration}
        return self.run(*words, *(word for option, name in files.items() for word in (option, str(self.folder / name))))
