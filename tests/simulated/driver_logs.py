"""The lines of a Spark driver with a keytab about its rounds of new tokens."""

from __future__ import annotations

from datetime import datetime, timedelta

DAY = timedelta(days=1)
# As Spark 3.5 and 4.0 print them, on the minicluster and in SPARK-37787.
GOOD = (
    "26/11/23 17:01:02 INFO HadoopDelegationTokenManager: Calculated delay on renewal is {delay}, based on next "
    "renewal {end} and the ratio 0.75, and current time {at}\n"
    "26/11/23 17:01:02 INFO HadoopDelegationTokenManager: Scheduling renewal in 18.0 h.\n"
)
NEVER = (
    "26/11/23 17:01:02 WARN HadoopFSDelegationTokenProvider: Failed to get token from service hadoopfs\n"
    "26/11/23 17:01:02 INFO HadoopDelegationTokenManager: Calculated delay on renewal is 6917527719390187520, based on "
    "next renewal 9223372036854775807 and the ratio 0.75, and current time {at}\n"
    "26/11/23 17:01:02 INFO HadoopDelegationTokenManager: Scheduling renewal in 1921535501304.2 h.\n"
)


def ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def good(at: datetime, interval: timedelta = DAY) -> str:
    delay = interval * 0.75
    return GOOD.format(at=ms(at), end=ms(at + interval), delay=int(delay.total_seconds() * 1000))


def never(at: datetime) -> str:
    return NEVER.format(at=ms(at))
