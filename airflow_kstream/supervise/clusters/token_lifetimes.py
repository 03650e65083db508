"""The lifetimes of this cluster's delegation tokens: measured, not assumed."""

from __future__ import annotations

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.tokens import DelegationToken, TokenLifetimes


def learn_lifetimes(hdfs: Hdfs, identity: Identity) -> TokenLifetimes:
    """Get a token that this identity may renew itself, read and renew it, and cancel it again.

    Spark measures its renewal interval in the same way. No other source shows the real values to a user without
    administrator rights.
    """
    token = hdfs.new_token(renewer=identity.do_as or identity.principal)
    try:
        read = DelegationToken.from_url_string(token)
        renewed_until = hdfs.renew_token(token)
    finally:
        hdfs.cancel_token(token)
    return TokenLifetimes(renew_interval=renewed_until - read.issued, max_lifetime=read.max_date - read.issued)
