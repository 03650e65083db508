"""The page of all commands and their options, from the Typer app itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import typer.main

from airflow_kstream import cli
from docs.site.markdown import block, page, table, word, words

# They need a checkout; the page is for who installed the package.
OF_A_CHECKOUT = {"minicluster", "demo", "up"}


def commands(group: Any, path: tuple[str, ...] = ("kstream",)) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each command that does something, with the words that call it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


@cache
def app() -> Any:
    """Return the command line as Click sees it, with every command."""
    return typer.main.get_command(cli._app(""))


def _texts() -> Iterator[str]:
    for path, command in commands(app()):
        if path[1] not in OF_A_CHECKOUT:
            context = command.make_context(" ".join(path), [], resilient_parsing=True)
            usage = " ".join([*path, *command.collect_usage_pieces(context)])
            yield f"## {' '.join(path)}\n\n{command.help or ''}\n\n{block(usage, 'text')}\n{_parameters(command)}"


def _parameters(command: Any) -> str:
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    return table(
        ("", "meaning", "default", "environment"),
        ((_named(each), words(each.help or ""), word(_default(each)), word(each.envvar or "")) for each in shown),
    )


def _named(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"{word(parameter.metavar or parameter.name.upper())}"
    names = ", ".join(word(name) for name in (*parameter.opts, *parameter.secondary_opts))
    return f"{names} (required)" if parameter.required else names


def _default(parameter: Any) -> str:
    given = parameter.default
    return "" if given is None or isinstance(given, bool) or given in ((), []) or callable(given) else str(given)


def page_of_all() -> str:
    """Return the page."""
    return page(
        "Commands and options of kstream",
        "`airflow kstream ...` runs the same where Airflow is at hand. Exit codes: 0 done, 1 not done, 2 wrong input, "
        "130 after Ctrl-C, 141 if the reader of the output stopped reading. Before any command:",
        _parameters(app()),
        *_texts(),
    )
