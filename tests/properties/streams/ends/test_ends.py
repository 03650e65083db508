"""The cause of an end, from the words of YARN, Hadoop and Spark as their logs and answers have them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.policy.streams.ends.ends import fingerprint_of


@given(st.integers(1, 10**9), st.integers(1, 10**9), st.sampled_from([0x1F, 0xABCDEF01, 0x7FFF]))
def test_two_ends_of_one_failure_have_one_fingerprint(first: int, second: int, address: int) -> None:
    def failure(number: int) -> str:
        return (
            f'Traceback (most recent call last):\n  File "/data/{number}/job.py", line 3, in <module>\n'
            f"org.apache.spark.SparkException: Job aborted due to stage failure: Task {number} in stage {number}.0 "
            f"failed 4 times, most recent failure: Lost task {number} (TID {number}) "
            f"(10.0.0.{number % 255} executor 2)\n"
            f"\tat org.apache.spark.errors.QueryExecutionErrors$.x(QueryExecutionErrors.scala:{number})\n"
            f"Caused by: com.acme.Bad$ParseException: record {number} of application_{number}_0001 at {address:#x}"
        )

    assert fingerprint_of(failure(first)) == fingerprint_of(failure(second)) != ""
