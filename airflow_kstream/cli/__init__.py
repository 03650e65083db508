"""`kstream`: the functions of `supervise`, for a person at a terminal."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import typer
from typer.core import TyperGroup

from airflow_kstream.cli import connection, leases, state, streams, tickets, tokens
from airflow_kstream.cli.doctor import doctor
from airflow_kstream.cli.monitoring import monitoring
from airflow_kstream.cli.output import complain, forget_unusable_sizes
from airflow_kstream.cli.stdio import forgiving_output
from airflow_kstream.cli.triage import triage
from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.model.printable import printable_words

_FAILED, _WRONG_INPUT, _INTERRUPTED = 1, 2, 130
# ClickException, which Typer has as its own or as Click's, depending on its version.
_WRONG_USAGE: Any = typer.BadParameter.__mro__[2]


class _Interrupted(Exception):
    """Ctrl-C, told apart from a command that ends with 130 by itself."""


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise _Interrupted from error


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    help="Keeps streaming jobs alive on kerberized Hadoop.",
)
app.add_typer(streams.app, name="streams")
app.add_typer(leases.app, name="leases")
app.add_typer(tokens.app, name="tokens")
app.add_typer(tickets.app, name="tickets")
app.add_typer(state.app, name="state")
app.add_typer(connection.app, name="connection")
app.command(name="doctor")(doctor)
app.command(name="triage")(triage)
app.command(name="monitoring")(monitoring)

# For developers: a checkout has them, the wheel does not.
if find_spec("airflow_kstream.minicluster"):
    from airflow_kstream.minicluster.cli import app as minicluster

    app.add_typer(minicluster, name="minicluster")
if find_spec("airflow_kstream.demo"):
    from airflow_kstream.demo.cli import demo, up

    app.command(name="demo")(demo)
    app.command(name="up")(up)


def main(argv: Sequence[str] | None = None) -> None:
    """Run `kstream` with these arguments, by default the process's own, and exit.

    The exit code is 2 for wrong input and 1 for every other error of ours, with one clear sentence on standard error;
    130 after Ctrl-C; 141 if the program that read the output stopped reading.
    """
    forget_unusable_sizes()
    with forgiving_output() as output:
        code = _run(argv)
        sys.stdout.flush()
        if output.error and output.error.errno != errno.EPIPE:
            complain(f"can't write to standard output: {output.error.strerror}")
    sys.exit(output.exit_code(code))


def _run(argv: Sequence[str] | None) -> int:
    try:
        return app(args=argv, prog_name="kstream", standalone_mode=False) or 0
    except _WRONG_USAGE as error:
        return _refuse_usage(error)
    except KstreamError as error:
        complain(str(error))
        return _WRONG_INPUT if isinstance(error, InvalidInput) else _FAILED
    except (_Interrupted, KeyboardInterrupt, typer.Abort):
        complain("interrupted")
        return _INTERRUPTED
    except UnicodeError as error:
        complain(f"a name or a path that was given is not UTF-8: {error}")
        return _WRONG_INPUT
    except OSError as error:
        # Caused by this host, not by a defect of ours: a traceback would not help.
        complain(str(error))
        return _FAILED


def _refuse_usage(error: Any) -> int:
    """Show the error as Typer does, but with escapes: it quotes the command line."""
    # Imported late: it reads the widths that `main` has cleaned up.
    from typer.rich_utils import rich_format_error

    message = printable_words(error.format_message())
    error.format_message = lambda: message
    rich_format_error(error)
    return int(error.exit_code)
