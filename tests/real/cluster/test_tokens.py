"""What a NameNode refuses about a token, over WebHDFS and over RPC, shows nothing of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Denied, KstreamError, Unavailable
from airflow_kstream.supervise.tokens import files
from tests.live.token_makers import access_as, chosen, fetch, leaked
from tests.simulated.token_cases import shown


def test_no_error_below_renew_cancel_and_ask_holds_the_token(minicluster: Minicluster, tmp_path: Path) -> None:
    """Neither the error's words nor a variable of any frame, its own or its causes', hold it."""
    token = chosen(minicluster, fetch(minicluster, tmp_path / "token"))
    with (
        access_as(minicluster, "watcher") as watcher,
        access_as(minicluster, "watcher", hadoop_conf_dir=None) as by_web,
    ):
        dead = replace(watcher, hdfs=Hdfs(("http://localhost:1",), watcher.identity, Tls()))
        for kind, attempt in (
            (Denied, lambda: files.renew(watcher, token)),
            (Denied, lambda: files.cancel(watcher, token)),
            (Denied, lambda: files.cancel(by_web, token)),
            (Unavailable, lambda: files.renew(dead, token)),
        ):
            with pytest.raises(KstreamError) as refused:
                attempt()
            assert isinstance(refused.value, kind)
            assert not leaked(token.path, *shown(refused.value))
