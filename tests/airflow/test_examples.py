"""The examples in docstrings: a person who copies one has something that runs."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, AssetWatcher, BaseHook, BaseNotifier, BaseOperator, task
from airflow.triggers.base import BaseEventTrigger

import airflow_kstream
from airflow_kstream import hooks, notifications, operators, sensors, triggers
from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.model.streams import event, plan, submission
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.supervise.clusters import session
from airflow_kstream.supervise.streams.folder.engine import Engine
from airflow_kstream.supervise.streams.look import watch

_FACES = BaseOperator, BaseHook, BaseNotifier, BaseEventTrigger


def faces() -> Iterator[type]:
    """Yield what people use from their own DAGs and programs: operators, sensors, hooks, notifiers and their like."""
    for package in (operators, sensors, hooks, notifications, triggers):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for name, kind in inspect.getmembers(importlib.import_module(found.name), inspect.isclass):
                if kind.__module__ == found.name and issubclass(kind, _FACES) and not name.startswith("_"):
                    yield kind


AT_HAND = session, event, submission, plan, watch
# Their examples are compiled.
NEED_A_CLUSTER = {KstreamClusterHook}
PUBLIC = [getattr(airflow_kstream, name) for name in dir(airflow_kstream) if not name.startswith("_")]
FACES = list(dict.fromkeys([StreamSpec, Engine, *PUBLIC, *faces()]))


def example_of(kind: type) -> str:
    """Return the lines below `Example::` in a class's docstring; empty if there are none."""
    _, _, below = (kind.__dict__.get("__doc__") or "").partition("Example::\n")
    lines = below.splitlines()
    indented = next((len(line) - len(line.lstrip()) for line in lines if line.strip()), 0)
    end = next((number for number, line in enumerate(lines) if line.strip() and line[:indented].strip()), len(lines))
    return dedent("\n".join(lines[:end]))


def names() -> dict[str, Any]:
    """Return the names that a DAG's author imports before any example: the package's, and Airflow's."""
    of_airflow = DAG, Asset, AssetWatcher, EmptyOperator, SparkSubmitOperator, Path
    known: dict[str, Any] = {each.__name__: each for each in of_airflow} | {"task": task}
    for module in (*AT_HAND, *(importlib.import_module(kind.__module__) for kind in FACES)):
        known |= {name: value for name, value in vars(module).items() if not name.startswith("__")}
    return known


@pytest.mark.parametrize("kind", FACES, ids=lambda kind: kind.__name__)
def test_each_has_an_example_that_runs_as_it_stands(kind: type) -> None:
    example = example_of(kind)
    assert example, f"{kind.__module__}.{kind.__name__} has no example"
    code = compile(example, kind.__name__, "exec", dont_inherit=True)
    if kind not in NEED_A_CLUSTER:
        with DAG("examples", schedule="@daily", start_date=datetime(2026, 3, 1, tzinfo=UTC)):
            exec(code, names())


def test_a_declaration_in_yaml_says_the_same_as_the_one_in_python() -> None:
    known = names()
    exec(example_of(StreamSpec), known)
    assert known["spec"] == known["same"]
