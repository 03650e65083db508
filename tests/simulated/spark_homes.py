"""A cluster that streams are submitted to, and a home of Spark whose spark-submit acts as the real one does here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.submission import SparkDefaults

CLUSTER = Cluster(
    name="prod",
    resourcemanagers=("http://rm:8088",),
    namenodes=("http://nn1:9870", "http://nn2:9870"),
    default_fs="hdfs://prod",
    watcher=Identity("airflow/edge@EXAMPLE.COM", keytab="/etc/airflow.keytab"),
    state_dir="/kstream",
    spark_conf={"spark.executor.memory": "2g", "spark.eventLog.enabled": "true"},
)
DEFAULTS = SparkDefaults("connection spark_prod", "/opt/spark/bin/spark-submit", queue="streams")
# It prints the command of its JVM and its banner, refuses an option that its version lacks with its usage, and keeps
# what it was given. SPARK_CONF_DIR moves its conf folder, as it does for Spark's launcher.
_SCRIPT = r"""#!/bin/sh
echo asked >> {home}/starts
case " $* " in
*" --version "*)
  conf=${{SPARK_CONF_DIR:-{home}/conf}}
  jars={home}/jars
  if [ -n "$SPARK_PRINT_LAUNCH_COMMAND" ]; then
    echo "Spark Command: /usr/bin/java -cp kstream:$conf/:$jars/slf4j-api-2.0.17.jar:$jars/*:{home}/hadoop/* \
-Xmx1g -XX:+IgnoreUnrecognizedVMOptions org.apache.spark.deploy.SparkSubmit --driver-class-path kstream --version" >&2
    echo ======================================== >&2
  fi
  echo '   /___/ .__/\_,_/_/ /_/\_\   version {version}' >&2
  exit ;;
*" --load-spark-defaults "*)
  case {version} in [123].*)
    echo "Error: Unrecognized option: --load-spark-defaults"
    echo
    echo "Usage: spark-submit [options] <app jar | python file | R file> [app arguments]"
    for line in $(seq 50); do echo "  --option$line VALUE          Cluster deploy mode only."; done
    exit 1 ;;
  esac ;;
esac
echo "$*" > {home}/argv
cp "$2" {home}/properties
"""


@dataclass(frozen=True)
class SparkHome:
    """The home of a Spark of this version, with Hadoop's jars in a folder of their own, as distributions have them."""

    path: Path
    version: str = "3.5.7"

    @property
    def submit(self) -> str:
        return str(self.path / "bin" / "spark-submit")

    @property
    def starts(self) -> int:
        """Return how often its spark-submit was started."""
        file = self.path / "starts"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def made(self, defaults: str = "") -> SparkHome:
        """Write it down, with this spark-defaults.conf."""
        for name in ("bin", "jars", "hadoop", "conf"):
            (self.path / name).mkdir(parents=True)
        (self.path / "jars" / f"spark-core_2.12-{self.version}.jar").touch()
        (self.path / "hadoop" / "hadoop-common-3.1.1.7.1.9.0-387.jar").touch()
        (self.path / "conf" / "spark-defaults.conf").write_text(defaults)
        executable(self.path / "bin" / "spark-class", "#!/bin/sh\n")
        executable(Path(self.submit), _SCRIPT.format(home=self.path, version=self.version))
        return self

    def wrapped(self, path: Path, conf_dir: Path | None = None) -> str:
        """Write a script around it, as a distribution puts it into /usr/bin; `conf_dir` is exported in it."""
        export = f"export SPARK_CONF_DIR={conf_dir}\n" if conf_dir else ""
        return executable(path, f'#!/bin/sh\n{export}exec {self.submit} "$@"\n')


def executable(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)
