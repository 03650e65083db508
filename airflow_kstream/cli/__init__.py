"""`kstream`: the functions of `supervise`, for a person at a terminal."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from airflow_kstream import __version__
from airflow_kstream.cli.output import complain, forget_unusable_sizes, forgiving_output, note, say
from airflow_kstream.model.errors import InvalidInput, KstreamError

_COMMANDS = {
    "streams": "airflow_kstream.cli.streams:app",
    "leases": "airflow_kstream.cli.leases:app",
    "tokens": "airflow_kstream.cli.tokens:app",
    "tickets": "airflow_kstream.cli.tickets:app",
    "state": "airflow_kstream.cli.state:app",
    "connection": "airflow_kstream.cli.connection:app",
    "doctor": "airflow_kstream.cli.doctor:doctor",
    "triage": "airflow_kstream.cli.triage:triage",
    "monitoring": "airflow_kstream.cli.monitoring:monitoring",
}
_OF_A_CHECKOUT = {
    "minicluster": "airflow_kstream.minicluster.cli:app",
    "demo": "airflow_kstream.demo.cli:demo",
    "up": "airflow_kstream.demo.cli:up",
}
_FAILED, _WRONG_INPUT, _INTERRUPTED = 1, 2, 130
_CLUSTER = "--cluster"
_TOO_MANY = "unexpected extra argument"
# ClickException, which Typer has as its own or as Click's, depending on its version.
_WRONG_USAGE: Any = typer.BadParameter.__mro__[2]


class _Interrupted(Exception):
    """Ctrl-C, told apart from a command that ends with 130 by itself."""


class _Group(TyperGroup):
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command, and hand it the --cluster that stands before it: one that stands behind comes later, and
        wins. A command that talks to no cluster needs none."""
        name, command, words = super().resolve_command(ctx, args)
        cluster = ctx.find_root().params.get("cluster_name")
        takes_it = command and any(_CLUSTER in param.opts for param in command.params)
        return name, command, [_CLUSTER, cluster, *words] if cluster is not None and takes_it else words


class _Commands(_Group):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise _Interrupted from error

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command. Raises InvalidInput: when it is one of a checkout, and this is not a checkout."""
        if args[0] in _OF_A_CHECKOUT and args[0] not in commands():
            raise InvalidInput(
                f"`{args[0]}` needs a checkout of the repository, and pip installed this package without it: clone it "
                f"and run ./kstream {args[0]} there"
            )
        return super().resolve_command(ctx, args)


def commands() -> dict[str, str]:
    """Return each command's module and name; for developers those that a checkout has and the wheel does not."""
    return _COMMANDS | {name: where for name, where in _OF_A_CHECKOUT.items() if _is_there(where)}


def _is_there(where: str) -> bool:
    return find_spec(where.rpartition(".")[0]) is not None


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


def _app(word: str) -> typer.Typer:
    """Return the command of this name, or else all: importing them all takes 0.3 s and 13 MB more than one."""
    app = typer.Typer(
        cls=_Commands,
        no_args_is_help=True,
        pretty_exceptions_show_locals=False,
        help="Keeps streaming jobs alive on kerberized Hadoop.",
        # Of all commands below it, too.
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    # With a callback, a single command still has its name to be typed.
    app.callback()(_root)
    found = commands()
    for name in [word] if word in found else found:
        module, _, attribute = found[name].partition(":")
        command = getattr(import_module(module), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, cls=_Group)
        else:
            app.command(name=name)(command)
    return app


def _tell_version(wanted: bool) -> None:
    if wanted:
        say(f"kstream {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version, and exit.")
    ] = False,
    cluster_name: Annotated[
        str | None,
        typer.Option(_CLUSTER, "-c", help="The cluster of the command that follows, unless it names its own."),
    ] = None,
) -> None:
    """Take the options that come before the command."""


def _run(argv: Sequence[str] | None) -> int:
    try:
        words = _with_help(list(sys.argv[1:] if argv is None else argv))
        return _app(_command_in(words))(args=words, prog_name="kstream", standalone_mode=False) or 0
    except _WRONG_USAGE as error:
        return _refuse_usage(error)
    except KstreamError as error:
        return _refuse(error)
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


def _with_help(words: list[str]) -> list[str]:
    """Read `help streams` as `streams --help`."""
    return [*words[1:], "--help"] if words[:1] == ["help"] else words


def _command_in(words: Sequence[str]) -> str:
    """Return the first word that is neither an option of the root nor its value."""
    rest = iter(words)
    for word in rest:
        if word in {_CLUSTER, "-c"}:
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return ""


def _refuse(error: KstreamError) -> int:
    """Print an error of ours. Nobody expects a typing error to go away by itself: it gets no advice about retries."""
    if not isinstance(error, InvalidInput):
        complain(str(error))
        return _FAILED
    complain(str(error) if error.retryable else error.without_advice)
    return _WRONG_INPUT


def _refuse_usage(error: Any) -> int:
    """Print a word that is wrong as any other error, and how the command is used."""
    # Without a command, its help is printed already. Typer has this class as its own or as Click's.
    if type(error).__name__ != "NoArgsIsHelpError":
        context, said = getattr(error, "ctx", None), error.format_message().rstrip(".")
        complain(f"{said}{_taken(context)}" if context and _TOO_MANY in said else said)
        if context:
            note(f"{' '.join(context.get_usage().split())}; {context.command_path} --help tells more")
    return _WRONG_INPUT


def _taken(context: Any) -> str:
    """Return how many words the command takes, and what each is."""
    arguments = [each for each in context.command.params if each.param_type_name == "argument"]
    taken = [f"one {each.metavar}{'' if each.required else ' or none'} ({each.help.rstrip('.')})" for each in arguments]
    return f": {context.command_path} takes {' and '.join(taken)}" if taken else ""
