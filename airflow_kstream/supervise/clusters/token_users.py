"""For whom a token is made that an application gets: for the user as whom YARN runs it, and for nobody else.

The author of an application chooses what its driver says of itself; as whom it runs, YARN has proven.
"""

from __future__ import annotations

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import Denied, KstreamError
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.supervise.clusters.session import ClusterSession


def unproven(session: ClusterSession, app: Application, minter: Identity) -> str:
    """Return why no server tells whether YARN runs the application as the user for whom `minter` makes tokens; empty if
    it does.

    That is the user whom it impersonates, or its own by the ResourceManager's rules of auth_to_local; by HDFS's, where
    the ResourceManager tells no names.

    Raises Denied: when YARN runs it as somebody else.
    """
    if app.user and app.user == minter.do_as:
        return ""
    if not app.user:
        return f"the ResourceManager does not tell as whom it runs {app.id}"
    try:
        whose = _own_user(session) if minter == session.identity else minter.do_as
    except KstreamError as error:
        return f"YARN runs it as {app.user}, and whether that is {minter} no server tells: {error.without_advice}"
    if app.user == whose:
        return ""
    raise Denied(
        f"YARN runs it as {app.user}, and the token would be {whose}'s: the job could act as {whose} with it",
        tried=f"push tokens to {app.id}",
        principal=str(minter),
    )


def _own_user(session: ClusterSession) -> str:
    """Return the session's user. HDFS is not asked in the place of a ResourceManager that is away."""
    user = session.yarn.user()
    if user is None:
        session.yarn.active()
    return user or session.state.user
