"""docker/airflow.Dockerfile, built on a stand-in for Airflow's image, which only registries of images have.

It has the layout of the last stage of Airflow's own Dockerfile: Debian, Airflow in a virtual environment in the home of
user 50000, whose group is root's, its constraints beside it, and no pip for root.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.wheel import ROOT, built_wheel, locked_constraints

pytestmark = pytest.mark.compatibility

AIRFLOW = version("apache-airflow")
STAND_IN = f"""
FROM scratch
ADD base.tar /
ADD certificates.pem /etc/ssl/certs/ca-certificates.crt
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8 \\
    AIRFLOW_HOME=/opt/airflow AIRFLOW_UID=50000 AIRFLOW_VERSION={AIRFLOW} VIRTUAL_ENV=/home/airflow/.local \\
    PATH=/root/bin:/home/airflow/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
RUN useradd --uid 50000 --gid 0 --create-home airflow \\
    && mkdir -p /root/bin /opt/airflow/dags /opt/airflow/logs \\
    && chown -R airflow:0 /opt/airflow \\
    && printf '#!/bin/sh\\necho "no pip for root" >&2\\nexit 1\\n' >/root/bin/pip \\
    && chmod u+x /root/bin/pip
USER 50000
ADD --chown=50000:0 constraints.txt /home/airflow/constraints.txt
RUN python3 -m venv /home/airflow/.local \\
    && pip install --no-cache-dir --constraint ~/constraints.txt apache-airflow=={AIRFLOW}
WORKDIR /opt/airflow
ENTRYPOINT ["/usr/bin/dumb-init", "--"]
"""
# What Airflow's image has of Debian, as far as it matters here. Its Python is its own, with headers.
PACKAGES = "ca-certificates,dumb-init,krb5-user,python3-dev,python3-venv"


@dataclass(frozen=True)
class Images:
    """Images in a store of the test's own: buildah needs no daemon, and in a chroot no network of its own."""

    store: Path

    def build(self, name: str, dockerfile: Path, context: Path, **arguments: str) -> None:
        named = [word for key, value in arguments.items() for word in ("--build-arg", f"{key}={value}")]
        build = ("build", "--isolation=chroot", "--format=docker", "--pull-never", "--layers", *named)
        self._buildah(*build, "-t", name, "-f", str(dockerfile), str(context))

    def run(self, name: str, *command: str) -> str:
        """Run a command in a container of the image, as its user, and return what it prints."""
        container = self._buildah("from", "--pull-never", name).strip()
        try:
            return self._buildah("run", "--isolation=chroot", container, "--", *command)
        finally:
            self._buildah("rm", container)

    def _buildah(self, *words: str) -> str:
        store = ("--root", str(self.store / "root"), "--runroot", str(self.store / "run"))
        done = subprocess.run(["buildah", *store, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"buildah {' '.join(words)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    """Images with the stand-in, `base`, and ours on it, `ours`."""
    folder = tmp_path_factory.mktemp("images")
    context, package = folder / "context", folder / "package"
    for each in (context, package):
        each.mkdir()
    bootstrap = ("mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", "bookworm")
    subprocess.run([*bootstrap, context / "base.tar"], check=True)
    # Where an authority of this host's own stands between it and the package index.
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", context / "certificates.pem")
    (context / "constraints.txt").write_text(locked_constraints())
    (context / "Dockerfile").write_text(STAND_IN)
    built_wheel(package)
    images = Images(folder)
    try:
        images.build("base", context / "Dockerfile", context)
        images.build("ours", ROOT / "docker/airflow.Dockerfile", package, AIRFLOW_IMAGE="localhost/base")
        yield images
    finally:
        # Gigabytes, which nobody looks at.
        with suppress(OSError):
            shutil.rmtree(folder)


def test_airflow_in_the_image_has_the_provider(images: Images) -> None:
    assert "airflow-kstream" in images.run("ours", "airflow", "providers", "list")


def test_the_image_has_kerberos_and_a_java_for_spark(images: Images) -> None:
    assert "done" in images.run("ours", "sh", "-c", 'java -version && python -c "import gssapi, krb5" && echo done')


def test_the_base_stays_as_it_was(images: Images) -> None:
    def frozen(name: str) -> set[str]:
        return set(images.run(name, "python", "-m", "pip", "freeze").splitlines())

    base, ours = frozen("base"), frozen("ours")
    assert f"apache-airflow=={AIRFLOW}" in base
    assert base <= ours


def test_the_image_runs_as_airflows_user_and_has_no_compiler(images: Images) -> None:
    assert images.run("ours", "id", "-u").strip() == "50000"
    assert "no compiler" in images.run("ours", "sh", "-c", "command -v gcc cc || echo no compiler")
