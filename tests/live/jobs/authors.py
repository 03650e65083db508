"""Prints what a driver's JVM tells it of who wrote in a folder, and of tokens, as one line of JSON.

spark-submit --master local[1] --py-files kstream_driver.py,kstream_tokens.py authors.py FOLDER
"""

import json
import sys
from types import SimpleNamespace
from typing import Any

from kstream_driver import Generation, StateFolder  # type: ignore[import-not-found]
from kstream_tokens import NotYet, Refused, SparkTokens  # type: ignore[import-not-found]
from pyspark.java_gateway import launch_gateway


def context() -> Any:
    """Return as much of a SparkContext as the helper needs, without its threads and its pages."""
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    conf = gateway.jvm.org.apache.hadoop.conf.Configuration()
    return SimpleNamespace(_gateway=gateway, _jvm=gateway.jvm, _jsc=SimpleNamespace(hadoopConfiguration=lambda: conf))


def believed(driver: Any, folder: str) -> dict[str, Any]:
    """Return the claims that would end a driver there, and who this one is, after it wrote two of its own files."""
    files = StateFolder(driver, folder)
    claims = Generation("orders", 0, files)._words_to_end(files)
    files.put("started-000001", {})
    files.put("failed-000001", {})
    return {"names": sorted(claims), "user": files._user}


def tried(driver: Any) -> list[list[str]]:
    """Return what becomes of a good token, of one with another password, of one that was cancelled, and of one whose
    NameNode is not there."""
    jvm, conf = driver._jvm, driver._jsc.hadoopConfiguration()
    credentials = jvm.org.apache.hadoop.security.Credentials()
    (good,) = jvm.org.apache.hadoop.fs.FileSystem.get(conf).addDelegationTokens("nobody", credentials)
    wrong = jvm.org.apache.hadoop.security.token.Token(
        good.getIdentifier(), bytearray(b"p" * 20), good.getKind(), good.getService()
    )
    answers = [answer(driver, good), answer(driver, wrong)]
    good.cancel(conf)
    lost = jvm.org.apache.hadoop.security.token.Token(
        good.getIdentifier(), good.getPassword(), good.getKind(), jvm.org.apache.hadoop.io.Text("127.0.0.1:9")
    )
    return [*answers, answer(driver, good), answer(driver, lost)]


def answer(driver: Any, token: Any) -> list[str]:
    """Return what its NameNode says to this token, and what the receiver of tokens makes of that."""
    try:
        SparkTokens(driver)._greet_namenode(token, "hdfs://" + str(token.getService()).split(":")[-1])
        said = "taken"
    except Exception as error:  # Py4J's, for whatever Java has raised
        said = str(error)[:1500]
    try:
        SparkTokens(driver)._try(token, str(token.getService()))
    except Refused as refusal:
        return [said, f"refused: {refusal}"]
    except NotYet as trouble:
        return [said, f"not yet: {trouble}"]
    return [said, "used"]


folder, jvm = sys.argv[1], context()
print("TOLD", json.dumps([believed(jvm, folder), tried(jvm)]))
