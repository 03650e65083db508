"""One process that lists the open files of a NameNode by one way, as lean as that way allows.

python -m benchmarks.listers rpc|py4j CONF_FOLDER PRINCIPAL KEYTAB KRB5_CONF TIMES
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def rpc(conf_folder: str, principal: str, keytab: str, krb5_conf: str) -> Iterator[Callable[[], int]]:
    from airflow_kstream.clients.hadoop_conf import HadoopConf
    from airflow_kstream.clients.hdfs.namenode import NameNodeRpc
    from airflow_kstream.model.kerberos.identity import Identity

    os.environ["KRB5_CONFIG"] = krb5_conf
    conf = HadoopConf(conf_folder)
    identity = Identity(principal, keytab=keytab)
    with closing(NameNodeRpc(conf.namenode_rpcs(), conf.namenode_principal, identity)) as namenode:
        yield lambda: sum(1 for _ in namenode.open_files())


@contextmanager
def py4j(conf_folder: str, principal: str, keytab: str, krb5_conf: str) -> Iterator[Callable[[], int]]:
    from importlib.util import find_spec

    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway  # type: ignore[import-untyped]

    from airflow_kstream.minicluster.site import JAVA_BRISK, JAVA_MODULES

    # Where pyspark is, without importing it.
    spec = find_spec("pyspark")
    assert spec
    assert spec.origin
    jars = Path(spec.origin).parent / "jars"
    folders = (f"-Djava.io.tmpdir={gettempdir()}", f"-Djava.security.krb5.conf={krb5_conf}")
    port, token, jvm = launch_gateway(
        classpath=f"{conf_folder}:{jars}/*",
        jarpath=str(next(jars.glob("py4j*.jar"))),
        javaopts=[*JAVA_BRISK, *JAVA_MODULES, *folders, "-Xmx256m"],
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield _by_gateway(gateway.jvm, principal, keytab)
    finally:
        gateway.shutdown()
        jvm.stdin.close()
        jvm.wait(10)


def _by_gateway(jvm: Any, principal: str, keytab: str) -> Callable[[], int]:
    hadoop = jvm.org.apache.hadoop
    conf = hadoop.conf.Configuration()
    user = hadoop.security.UserGroupInformation
    user.setConfiguration(conf)
    user.loginUserFromKeytab(principal, keytab)
    filesystem = hadoop.fs.FileSystem.get(conf)

    def count() -> int:
        found, entries = 0, filesystem.listOpenFiles()
        while entries.hasNext():
            entry = entries.next()
            # Every field of an entry takes a call through the gateway.
            _ = entry.getId(), entry.getFilePath(), entry.getClientName(), entry.getClientMachine()
            found += 1
        return found

    return count


def _cpu() -> float:
    """Return the CPU seconds of this process and its running children."""
    own = time.process_time()
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    fields = (Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split() for child in children)
    return own + sum(int(field[11]) + int(field[12]) for field in fields) / _TICKS


def main() -> None:
    way, *where, times = sys.argv[1:]
    with {"rpc": rpc, "py4j": py4j}[way](*where) as lister:
        count = lister()
        cpu, begun = _cpu(), time.perf_counter()
        for _ in range(int(times)):
            lister()
        wall, cpu = time.perf_counter() - begun, _cpu() - cpu
    print(json.dumps({"count": count, "wall": wall / max(1, int(times)), "cpu": cpu / max(1, int(times))}))


if __name__ == "__main__":
    main()
