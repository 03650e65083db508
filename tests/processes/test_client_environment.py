"""What a Spark client gets through the scripts of distributions, which here start a stub that prints its environment.

The scripts are as CDP's parcels, HDP, EMR and Bigtop install them: /usr/bin/spark-submit, and what it sources.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_kstream.clients.client_process import run_client
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.clients.spark import environment
from airflow_kstream.clients.spark_installations import installation, script_variables
from airflow_kstream.model.clusters.cluster import ClientSettings, Inherited
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.supervise.doctor.server_facts import spark_client
from tests.simulated.spark_homes import CLUSTER, SparkHome, executable

CACHE = Path("/tmp/ticket-of-this-submission")
# One variable on each line, then the arguments, each in brackets.
STUB = """#!/bin/sh
env
printf '[%s]' "$@"
"""
DETECT_JAVA = 'if [ -z "$JAVA_HOME" ]; then export JAVA_HOME=/usr/lib/jvm/java; fi\n'
Variables = Mapping[str, str | Inherited]


def cdp(root: Path) -> str:
    """A parcel's script behind two symlinks, which finds its folders from its own place and sources a conf."""
    parcel, conf = root / "parcels" / "CDH", root / "etc" / "spark3" / "conf"
    executable(parcel / "lib" / "spark3" / "bin" / "spark-submit", STUB)
    executable(parcel / "lib" / "bigtop-utils" / "bigtop-detect-javahome", DETECT_JAVA)
    executable(conf / "spark-env.sh", 'export SPARK_DIST_CLASSPATH="$SPARK_EXTRA_PATH:$SPARK_DIST_CLASSPATH"\n')
    script = executable(
        parcel / "bin" / "spark3-submit",
        f"""#!/bin/bash
  # Follow symlinks from $BEFORE on.
  SOURCE="${{BASH_SOURCE[0]}}"
  BIN_DIR="$( dirname "$SOURCE" )"
  while [ -h "$SOURCE" ]
  do
    SOURCE="$(readlink "$SOURCE")"
    [[ $SOURCE != /* ]] && SOURCE="$BIN_DIR/$SOURCE"
    BIN_DIR="$( cd -P "$( dirname "$SOURCE"  )" && pwd )"
  done
  BIN_DIR="$( cd -P "$( dirname "$SOURCE" )" && pwd )"
  LIB_DIR=$BIN_DIR/../lib
export HADOOP_HOME=$LIB_DIR/hadoop
. {conf}/spark-env.sh
. $LIB_DIR/bigtop-utils/bigtop-detect-javahome
exec $LIB_DIR/spark3/bin/spark-submit "$@"
""",
    )
    link = root / "usr" / "bin" / "spark3-submit"
    link.parent.mkdir(parents=True)
    (root / "alternatives").symlink_to(script)
    link.symlink_to(root / "alternatives")
    return str(link)


def hdp(root: Path) -> str:
    """A script that chooses between two Sparks, in a file beside it."""
    for client in ("spark-client", "spark2-client"):
        executable(root / "current" / client / "bin" / "spark-submit", f"{STUB}\necho; echo CLIENT={client}\n")
    executable(
        root / "bin" / "spark-script-wrapper.sh",
        f"""function find_script() {{
  FILE="$(basename $1)"
  SCRIPT=
  if [ -z "${{SPARK_MAJOR_VERSION}}" ]; then
    echo "Multiple versions of Spark are installed but SPARK_MAJOR_VERSION is not set" 1>&2
    exit 1
  elif [ "${{SPARK_MAJOR_VERSION}}" -eq "1" ]; then
    SCRIPT="{root}/current/spark-client/bin/${{FILE}}"
  else
    SCRIPT="{root}/current/spark${{SPARK_MAJOR_VERSION}}-client/bin/${{FILE}}"
  fi
  echo "${{SCRIPT}}"
}}
""",
    )
    return executable(
        root / "bin" / "spark-submit",
        """#!/bin/bash
CURRENT_DIR="$(cd "`dirname "$0"`"; pwd)"
. "${CURRENT_DIR}"/spark-script-wrapper.sh
EXECUTABLE=$(find_script $0) || exit 1
exec "${EXECUTABLE}" "$@"
""",
    )


def emr(root: Path) -> str:
    """A script that exports where Hadoop and Spark lie, each unless it is set already."""
    executable(root / "lib" / "spark" / "bin" / "spark-submit", STUB)
    return executable(
        root / "bin" / "spark-submit",
        f"""#!/usr/bin/env bash
export HADOOP_HOME="${{HADOOP_HOME:-/usr/lib/hadoop}}"
export SPARK_LOG_DIR=${{SPARK_LOG_DIR:-/var/log/spark}}
[ -n "$EMR_STEP_ID" ] && export SPARK_IDENT_STRING='$EMR_NOBODY'
exec {root}/lib/spark/bin/spark-submit "$@"
""",
    )


def bigtop(root: Path) -> str:
    """A script that looks for Java and nothing else."""
    executable(root / "lib" / "spark" / "bin" / "spark-submit", STUB)
    java = executable(root / "lib" / "bigtop-utils" / "bigtop-detect-javahome", DETECT_JAVA)
    return executable(
        root / "bin" / "spark-submit",
        f"#!/bin/bash \n\n# Autodetect JAVA_HOME if not defined\n. {java}\n\n"
        f'exec {root}/lib/spark/bin/spark-submit "$@"\n',
    )


SCRIPTS = {"cdp": cdp, "hdp": hdp, "emr": emr, "bigtop": bigtop}
READS = {"cdp": {"SPARK_EXTRA_PATH"}, "hdp": {"SPARK_MAJOR_VERSION"}, "emr": {"EMR_STEP_ID"}, "bigtop": set[str]()}


def said_by(client: str, variables: Variables, *arguments: str) -> tuple[dict[str, str], str]:
    """Return the environment in which the stub ran, and all that was printed."""
    cluster = replace(CLUSTER, client=ClientSettings(variables))
    with private_folder() as private:
        _, said = run_client([client, *arguments], environment(cluster, CACHE, client), private, timedelta(minutes=1))
    return dict(line.split("=", 1) for line in said.splitlines() if "=" in line), said


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_client_gets_what_its_connection_adds_and_nothing_else_of_the_worker(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ambient = {
        "KRB5CCNAME": "/tmp/krb5cc_of_the_worker",
        "HADOOP_TOKEN_FILE_LOCATION": "/tmp/tokens_of_the_worker",
        "HADOOP_PROXY_USER": "of_the_worker",
        "PYSPARK_PYTHON": "/of_the_worker/python",
        "JAVA_TOOL_OPTIONS": "-Dof_the_worker",
        "AIRFLOW_CONN_PROD": "of_the_worker",
    }
    for variable, value in {**ambient, "SPARK3_OF_HERE": "/conf"}.items():
        monkeypatch.setenv(variable, value)
    added: Variables = {
        "SPARK_MAJOR_VERSION": "2",
        "SPARK_CONF_DIR": Inherited("SPARK3_OF_HERE"),
        "LD_LIBRARY_PATH": Inherited("NO_SUCH_VARIABLE"),
    }
    variables, said = said_by(SCRIPTS[name](tmp_path), added, "--name", "Orders.Stream v2")
    assert (variables["SPARK_MAJOR_VERSION"], variables["SPARK_CONF_DIR"]) == ("2", "/conf")
    assert variables["KRB5CCNAME"] == f"FILE:{CACHE}"
    assert "LD_LIBRARY_PATH" not in variables
    assert "of_the_worker" not in said
    assert "[--name][Orders.Stream v2]" in said


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_read_for_the_variables_that_it_takes_and_never_run(name: str, tmp_path: Path) -> None:
    client = SCRIPTS[name](tmp_path)
    started = tmp_path / "started"
    script = Path(client).resolve()
    script.write_text(script.read_text().replace("\n", f"\ntouch {started}\n", 1))
    assert script_variables(client) == READS[name]
    assert not started.exists()


def test_a_script_that_chooses_a_spark_chooses_the_one_of_the_connection(tmp_path: Path) -> None:
    client = hdp(tmp_path)
    assert "Multiple versions of Spark are installed" in said_by(client, {})[1]
    assert "CLIENT" not in said_by(client, {})[0]
    for version, chosen in (("1", "spark-client"), ("2", "spark2-client")):
        assert said_by(client, {"SPARK_MAJOR_VERSION": version})[0]["CLIENT"] == chosen


def test_a_client_is_asked_in_the_environment_in_which_it_submits(tmp_path: Path) -> None:
    """Its answer decides how secrets reach it: another Spark's would leave its defaults out."""
    homes = {version: SparkHome(tmp_path / version, version).made() for version in ("3.5.7", "4.0.1")}
    chosen = "\n".join(f'[ "$SPARK_MAJOR_VERSION" = {v[0]} ] && exec {home.submit} "$@"' for v, home in homes.items())
    client = executable(tmp_path / "bin" / "spark-submit", f"#!/bin/sh\n{chosen}\n")
    for version, numbers in (("3", (3, 5)), ("4", (4, 0)), ("3", (3, 5))):
        assert installation(client, {"SPARK_MAJOR_VERSION": version}).version == numbers


def test_options_of_java_of_the_connection_replace_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dof=worker")
    assert environment(CLUSTER, CACHE, "/c")["SPARK_SUBMIT_OPTS"].startswith("-Dof=worker -XX:")
    cluster = replace(CLUSTER, client=ClientSettings({"SPARK_SUBMIT_OPTS": "-Dof=connection"}))
    assert environment(cluster, CACHE, "/c")["SPARK_SUBMIT_OPTS"].startswith("-Dof=connection -XX:")


def test_the_doctor_names_what_the_script_misses_and_what_this_host_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = hdp(tmp_path)
    monkeypatch.delenv("SPARK_MAJOR_VERSION", raising=False)
    assert spark_client(CLUSTER, client, starts=False).missing == {"SPARK_MAJOR_VERSION": False}
    monkeypatch.setenv("SPARK_MAJOR_VERSION", "2")
    assert spark_client(CLUSTER, client, starts=False).missing == {"SPARK_MAJOR_VERSION": True}
    added = replace(CLUSTER, client=ClientSettings({"SPARK_MAJOR_VERSION": Inherited("SPARK_MAJOR_VERSION")}))
    assert spark_client(added, client, starts=False).missing == {}


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o755)


@pytest.mark.parametrize(
    "spoil",
    [_fifo, lambda path: path.write_text("#!/bin/sh\n" + "x" * 70_000)],
    ids=["a pipe", "longer than any script of a distribution"],
)
def test_a_script_that_can_not_be_read_tells_nothing(spoil: Callable[[Path], object], tmp_path: Path) -> None:
    client = bigtop(tmp_path)
    spoil(Path(client))
    with pytest.raises(InvalidInput):
        script_variables(client)


def test_scripts_that_source_each_other_are_read_once(tmp_path: Path) -> None:
    executable(tmp_path / "b.sh", f'. {tmp_path}/spark-submit\n. ./b.sh\n. "$ANYWHERE"\n. /no/such\necho $OF_B')
    client = executable(tmp_path / "spark-submit", f"#!/bin/sh\n. {tmp_path}/b.sh\necho $OF_A\n")
    assert script_variables(client) == {"OF_A", "OF_B", "ANYWHERE"}


def test_another_program_and_sparks_own_script_tell_nothing(tmp_path: Path) -> None:
    own = SparkHome(tmp_path / "spark").made()
    assert script_variables(own.submit) == frozenset()
    program = executable(tmp_path / "spark-submit", "#!/usr/bin/python3\nprint('$HADOOP_HOME')\n")
    assert script_variables(program) == frozenset()
