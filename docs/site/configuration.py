"""The pages of `[kstream]` and of the connection's fields, from the provider's metadata."""

from __future__ import annotations

from typing import Any

from airflow_kstream.get_provider_info import get_provider_info
from docs.site.markdown import page, table, word, words


def settings() -> str:
    """Return the page of all settings."""
    section: dict[str, Any] = get_provider_info()["config"]["kstream"]
    rows = (
        (word(name), words(option["description"]), option["type"], word(option["default"]), word(option["example"]))
        for name, option in sorted(section["options"].items())
    )
    return page(
        "Settings of Airflow: [kstream]",
        "They stand in the section `[kstream]` of `airflow.cfg`, or in `AIRFLOW__KSTREAM__NAME`. "
        "`airflow config list --section kstream --include-descriptions` prints them as this Airflow has them.",
        table(("setting", "meaning", "type", "default", "example"), rows),
    )


def connection() -> str:
    """Return the page of the fields of a connection."""
    kind: dict[str, Any] = get_provider_info()["connection-types"][0]
    examples = kind["ui-field-behaviour"]["placeholders"]
    rows = [
        (
            word(name),
            field["label"],
            words(field["description"]),
            word(field["schema"].get("default") or ""),
            word(examples.get(name, "")),
        )
        for name, field in kind["conn-fields"].items()
    ]
    password = kind["ui-field-behaviour"]["relabeling"]["password"]
    rows.append(
        ("`keytab`", password, "The keytab itself, in the connection's password.", "", word(examples["password"]))
    )
    return page(
        f"Fields of a connection of type {kind['connection-type']}",
        f"In Airflow its type is *{kind['hook-name']}*, and the fields stand in `extra` under these names. A YAML file "
        "with the same fields is what `--cluster FILE.yaml` takes.",
        table(("field", "in the form", "meaning", "default", "example"), rows),
    )
