"""`airflow kstream ...`: the same commands as `kstream ...`, where Airflow is what people have at hand.

Airflow imports this module for each of its own commands: it imports nothing of the rest before `kstream` runs.
"""

from __future__ import annotations

import sys
from argparse import REMAINDER, Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow.cli.cli_config import ActionCommand, Arg

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def commands() -> list[ActionCommand]:
    """Return what this provider adds to Airflow's command line."""
    # Airflow's parser leaves alone what follows the first word, and refuses options before it that it does not know.
    cluster = Arg(("-c", "--cluster"), help="the cluster of the command, unless it names its own")  # type: ignore[no-untyped-call]
    version = Arg(("--version",), action="store_true", help="print the version, and exit")  # type: ignore[no-untyped-call]
    words = Arg(  # type: ignore[no-untyped-call]
        ("words",), nargs=REMAINDER, metavar="COMMAND", help="as of kstream, such as `streams status orders`"
    )
    return [
        ActionCommand(
            name="kstream",
            help="Keep streaming jobs alive on kerberized Hadoop",
            description="Runs `kstream COMMAND`: streams, leases, tokens, tickets, state, connection, doctor, triage "
            "or monitoring; each has its --help.",
            func=run,
            args=(cluster, version, words),
        )
    ]


def run(arguments: Namespace) -> None:
    """Run `kstream` with these words, and exit with its code."""
    from airflow_kstream.cli import main

    if arguments.words[:2] == ["streams", "status"] and "--help" not in arguments.words:
        tell_unserved()
    before = ["--version"] if arguments.version else ["--cluster", arguments.cluster] if arguments.cluster else []
    main([*before, *arguments.words] if before or arguments.words else ["--help"])


def tell_unserved(database: Callable[[], AbstractContextManager[Session]] | None = None) -> None:
    """Tell of triggers that no triggerer serves; nothing where this host doesn't reach Airflow's database."""
    try:
        from airflow.utils.session import create_session

        from airflow_kstream.states.reading import triggerers_load

        with (database or create_session)() as session:
            words = triggerers_load(session, datetime.now(UTC)).words
    except Exception:
        return
    if words:
        print(words, file=sys.stderr)
