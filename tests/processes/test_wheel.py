"""The wheel that this checkout builds and users install, instead of the checkout."""

from __future__ import annotations

import email
import subprocess
import sys
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

import airflow_kstream
from airflow_kstream.monitoring import NAMES
from airflow_kstream.supervise.triage.scan import signature_files
from tests.wheel import ROOT, built_wheel

DIST = f"airflow_kstream-{airflow_kstream.__version__}.dist-info"
# On its own, without what this environment has of the checkout.
FROM_THE_WHEEL = """
import sys
sys.path[:] = [sys.argv[1], *(path for path in sys.path if path != sys.argv[2])]
import airflow_kstream
from airflow_kstream.cli import commands, main
print(airflow_kstream.__file__)
print(*sorted(commands()))
main(["up"])
"""
EXAMPLES = ROOT / "airflow_kstream" / "example_dags"
OFFERED = ["connection", "doctor", "leases", "monitoring", "state", "streams", "tickets", "tokens", "triage"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    return ZipFile(wheel).namelist()


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    return email.message_from_bytes(ZipFile(wheel).read(f"{DIST}/METADATA"))


def test_the_wheel_has_the_shipped_dags_and_what_a_licence_asks_for(names: list[str], wheel: Path) -> None:
    stubs = {f"airflow_kstream/dags/stubs/kstream_{kind}.py" for kind in ("streams", "leases", "tickets", "tokens")}
    papers = {f"{DIST}/licenses/LICENSE", f"{DIST}/licenses/NOTICE", f"{DIST}/extra_metadata/CHANGELOG.md"}
    monitoring = {f"airflow_kstream/monitoring/{name}" for name in NAMES}
    signatures = {f"airflow_kstream/supervise/triage/signatures/{file.name}" for file in signature_files()}
    examples = {f"airflow_kstream/example_dags/{file.name}" for file in EXAMPLES.glob("*.py")}
    names_and_types = {"airflow_kstream/__init__.pyi", "airflow_kstream/py.typed", "airflow_kstream/dags/factory.py"}
    assert len(examples) == 8
    flink = {f"airflow_kstream/jobs/flink/{name}" for name in ("kstream-flink.jar", "kstream/flink/Settings.java")}
    expected = names_and_types | flink | examples | stubs | papers | monitoring | signatures
    assert expected <= set(names)
    licence = ZipFile(wheel).read(f"{DIST}/licenses/LICENSE").decode()
    assert "Version 2.0, January 2004" in licence
    assert "END OF TERMS AND CONDITIONS" in licence


def test_the_wheel_has_neither_minicluster_nor_demo_nor_tests(names: list[str]) -> None:
    packages = {name.split("/")[1] for name in names if name.startswith("airflow_kstream/")}
    assert packages.isdisjoint({"minicluster", "demo"})
    assert {name.partition("/")[0] for name in names} == {"airflow_kstream", DIST}


def test_the_wheel_has_the_pages_as_they_were_built_and_not_their_sources(names: list[str]) -> None:
    assert "airflow_kstream/plugin/static/kstream.js" in names
    assert not [name for name in names if name.startswith("airflow_kstream/plugin/ui")]


def test_the_wheel_says_its_version_and_licence(metadata: Message) -> None:
    assert metadata["Version"] == airflow_kstream.__version__
    assert metadata["License-Expression"] == "Apache-2.0"


def test_the_wheel_says_what_it_is_and_on_which_pythons_it_runs(metadata: Message) -> None:
    """And no address that nobody serves."""
    said = metadata.get_all("Classifier", [])
    minors = [each.rpartition(" ")[2] for each in said if each.startswith("Programming Language :: Python :: 3.")]
    assert metadata["Requires-Python"] == "<3.14,>=3.11"
    assert minors == ["3.11", "3.12", "3.13"]
    assert {"airflow-provider", "kerberos", "yarn"} <= set(metadata["Keywords"].split(","))
    assert metadata.get_all("Project-URL") is None


def test_the_changelog_has_this_version() -> None:
    assert airflow_kstream.__version__ in (ROOT / "CHANGELOG.md").read_text()


def test_a_spark_client_is_an_extra_whose_pair_takes_the_same_versions(metadata: Message) -> None:
    required = [str(word) for word in metadata.get_all("Requires-Dist", [])]
    spark = [word for word in required if "spark" in word]
    assert spark
    assert all(word.endswith("; extra == 'spark'") for word in spark)
    pair = {each.name: each.specifier for each in map(Requirement, spark) if each.name.startswith("pyspark")}
    assert pair.keys() == {"pyspark-client", "pyspark"}
    # From what Airflow's own provider requires on; and below the first pyspark that came without its pyspark-client.
    assert {str(versions) for versions in pair.values()} == {"<4.3,>=4"}


def test_the_command_line_of_the_wheel_offers_no_development_commands(wheel: Path, tmp_path: Path) -> None:
    ZipFile(wheel).extractall(tmp_path)
    command = [sys.executable, "-c", FROM_THE_WHEEL, str(tmp_path), str(ROOT)]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    place, commands = done.stdout.splitlines()
    assert Path(place).is_relative_to(tmp_path)
    assert commands.split() == OFFERED
    assert done.returncode == 2
    assert "`up` needs a checkout of the repository" in done.stderr
