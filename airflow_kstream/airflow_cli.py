"""`airflow kstream ...`: the same commands as `kstream ...`, where Airflow is what people have at hand.

Airflow imports this module for each of its own commands: it imports nothing of the rest before `kstream` runs.
"""

from __future__ import annotations

from argparse import REMAINDER, Namespace

from airflow.cli.cli_config import ActionCommand, Arg


def commands() -> list[ActionCommand]:
    """Return what this provider adds to Airflow's command line."""
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
            args=(words,),
        )
    ]


def run(arguments: Namespace) -> None:
    """Run `kstream` with these words, and exit with its code."""
    from airflow_kstream.cli import main

    main(arguments.words or ["--help"])
