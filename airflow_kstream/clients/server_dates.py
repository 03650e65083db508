"""The clock of a web server: the Date header of its answer."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import requests


def server_date(answer: requests.Response) -> datetime:
    """Return the moment of its Date header, which is in GMT on every server (RFC 9110, 5.6.7).

    Hadoop sends the header twice, once by its own filter (HttpServer2.NoCacheFilter) and once by Jetty. `requests`
    joins the two with a comma, and what the standard library makes of both together has no time zone.

    Raises ValueError, OverflowError: when there is none, or it is not a date.
    """
    first = ",".join(answer.headers.get("Date", "").split(",")[:2])
    return parsedate_to_datetime(first).replace(tzinfo=UTC)
