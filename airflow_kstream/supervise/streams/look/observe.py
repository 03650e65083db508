"""One look at a stream."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from airflow_kstream.clients.kerberos import keytabs
from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.clusters.authors import AuthoredFiles
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import KstreamError, NotFound
from airflow_kstream.model.kerberos.identity import split_principal
from airflow_kstream.model.kerberos.keytab import KeyVersion
from airflow_kstream.model.streams.contract import recorded_ends
from airflow_kstream.model.streams.freeze import Freeze
from airflow_kstream.model.streams.generation import Claim, DesiredState
from airflow_kstream.model.streams.generation_end import PastEnd
from airflow_kstream.model.streams.observation import (
    CredentialLook,
    DriverLook,
    FolderLook,
    Observation,
    YarnLook,
    application_of,
)
from airflow_kstream.model.streams.persisted_spec import UnknownSpec
from airflow_kstream.model.streams.stream import KeytabCredentials, StreamSpec
from airflow_kstream.policy.streams.ends.after_end import recorded_end
from airflow_kstream.policy.streams.horizon.rotation import keytab_of
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.state_dir import StateListing
from airflow_kstream.supervise.streams.folder.engine import Newest
from airflow_kstream.supervise.streams.folder.memory import failure_of, past_ends
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.folder.tagged_applications import TaggedApplications
from airflow_kstream.supervise.streams.look.renewals import with_tokens
from airflow_kstream.supervise.streams.look.watched_claim import completed


@dataclass(frozen=True)
class Prefetched:
    """Facts that the caller has: the newest claim and record of ends that it read, whose files never change, the listed
    applications of all streams, the files of the stream's folder with their authors, a listing of the state_dir, and
    the last order to freeze the cluster."""

    claim: Claim | None = None
    ends: tuple[PastEnd, ...] = ()
    listed: tuple[Application, ...] | None = None
    authored: AuthoredFiles | None = None
    listing: StateListing | None = None
    freeze: Freeze | None = None


def observe(run: StreamRun, prefetched: Prefetched | None = None) -> Observation:
    """Look at the stream through the ResourceManager and HDFS.

    The folder is read before the applications: a visible application's claim is either among the names already read,
    or is later, and then its generation is the newest anyway.

    Raises Unavailable: when either server is away, or an application that is missing may yet be there: neither proves
    anything about the stream.
    """
    prefetched = prefetched or Prefetched()
    session, spec, folder = run.session, run.spec, run.folder
    listing = prefetched.listing or session.state.look()
    authored, claim = _listed_with_claim(folder, prefetched)
    owners, names = authored.counted, frozenset(authored.counted)
    applications, strangers = _applications(session, TaggedApplications(run.id, owners), claim, prefetched.listed)
    if claim:
        claim = completed(session, claim, application_of(applications, claim.generation))
        claim = with_tokens(folder, claim, names)
    if claim and all(number != claim.generation for number, _ in applications):
        # NameNodes' clocks differ, but who finds it absent here waits `submit.ttl` by a clock of its own.
        age = session.hdfs.now() - claim.claimed_at if claim.submitted_by_us else timedelta.max
        confirm_absence(run, claim, age)
    running = [app for _, app in applications if app.state is ApplicationState.RUNNING]
    submitted = _submitted(claim) or spec
    desired = folder.desired(folder.newest_order(authored, listing))
    newest = _newest(claim, applications)
    observation = Observation(
        stream=run.id,
        now=session.hdfs.now(),
        desired=desired,
        claim=claim,
        files=names,
        applications=applications,
        checkpoints=run.engine.progress(session, spec, newest),
        freeze=prefetched.freeze if prefetched.freeze is not None else run.freeze(listing),
        yarn=YarnLook(strangers, _our_names(session), running[-1].lifetime_left if running else None),
        credentials=CredentialLook(
            key_at_hand(spec, claim, run.cluster),
            # The submitted spec counts, not the one declared now.
            renewal_ratio=run.engine.renewal_ratio(run.cluster, submitted),
            renewed=run.engine.tokens_are_renewed(run.cluster, submitted),
            workers=run.engine.worker_tokens(session, newest, names),
        ),
        folder=FolderLook(authored.strangers, _ends(run, names, prefetched.ends)),
    )
    # No file that concerns a successor alone keeps a person from stopping the stream.
    runs = desired.state is DesiredState.RUNNING
    return replace(
        observation,
        folder=replace(observation.folder, accepted=folder.accepted(observation.generation, names) if runs else None),
        driver=DriverLook(failure_of(session.hdfs, run.id, observation)),
        yarn=replace(observation.yarn, ended=_ended(session, observation)),
    )


def _newest(claim: Claim | None, applications: tuple[tuple[int, Application], ...]) -> Newest:
    return Newest(claim, application_of(applications, claim.generation) if claim else None)


def _ended(session: ClusterSession, observation: Observation) -> datetime | None:
    """Return when the newest application ended, by the NameNode's clock, if a person's order may be younger.

    Once the end is recorded, its record has the time. Costs a request to the ResourceManager: the two clocks may differ
    by Kerberos' five minutes, and how long ago it was is one clock's matter.
    """
    app = observation.current
    if app is None or app.finished is None or observation.desired.at is None or recorded_end(observation):
        return None
    try:
        return observation.now - max(session.yarn.time_since(app.finished), timedelta())
    except KstreamError:
        return None


def _listed_with_claim(folder: StreamFolder, known: Prefetched) -> tuple[AuthoredFiles, Claim | None]:
    """Return the files in the folder with their authors, and its newest claim.

    A NameNode lists a folder of more than dfs.ls.limit files in pieces, so a claim that is made meanwhile can show
    without its fence. The fence was placed before: unless somebody took it, the next listing has it.
    """
    authored = known.authored if known.authored is not None else folder.authored()
    claim = folder.claim(frozenset(authored.counted), known.claim)
    if claim and claim.fence not in authored.counted:
        authored = folder.authored()
        claim = folder.claim(frozenset(authored.counted), claim)
    return authored, claim


def _ends(run: StreamRun, names: frozenset[str], known: tuple[PastEnd, ...]) -> tuple[PastEnd, ...]:
    newest = recorded_ends(names)[-1:]
    return known if newest == tuple(end.generation for end in known[-1:]) else past_ends(run.folder, names)


def _our_names(session: ClusterSession) -> frozenset[str]:
    """Return the usual short names of the principals that act for us; the applications' own user is one more."""
    principals = (session.identity, session.cluster.watcher)
    return frozenset(
        {split_principal(one.principal)[0] for one in principals} | {one.do_as or "" for one in principals}
    )


def confirm_absence(run: StreamRun, claim: Claim, age: timedelta) -> None:
    """Make sure that a claim's application, which was not listed, is not in the cluster.

    `age` is how long ago it may have been submitted.

    Raises Unavailable: when the ResourceManager that answered may merely not know it.
    """
    # The tag of a generation or, for a job that somebody else submitted some day, its id.
    name = claim.adoption.application or run.id.generation_tag(claim.generation)
    run.session.yarn.confirm_absence(name, age, run.spec.watch.recovery_wait)


def key_at_hand(spec: StreamSpec, claim: Claim | None, cluster: Cluster) -> KeyVersion | None:
    """Read the key of the running generation's principal: another principal is another spec, not a rotation."""
    declared = spec.credentials
    if claim is None or claim.credentials.key is None or isinstance(claim.spec, UnknownSpec):
        return None
    submitted = claim.spec.credentials
    if not isinstance(declared, KeytabCredentials) or not isinstance(submitted, KeytabCredentials):
        return None
    if submitted.principal != declared.principal:
        return None
    path = keytab_of(spec, cluster)
    return keytabs.key_at_hand(path, declared.principal) if path else None


def _submitted(claim: Claim | None) -> StreamSpec | None:
    return claim.spec if claim and isinstance(claim.spec, StreamSpec) else None


def _applications(
    session: ClusterSession,
    tagged: TaggedApplications,
    claim: Claim | None,
    listed: tuple[Application, ...] | None,
) -> tuple[tuple[tuple[int, Application], ...], tuple[Application, ...]]:
    """Return the stream's applications with their generations, and the strangers among those that carry its tags."""
    ours, strangers = tagged.split(session, listed or ())
    newest = claim.generation if claim else 0
    if all(number != newest for number, _ in ours):
        # Before its absence proves anything, an application missing from the common listing is looked up by its tag.
        ours, strangers = tagged.split(session, session.yarn.applications(tagged.stream.tag))
    if claim and claim.adoption.application and all(app.id != claim.adoption.application for _, app in ours):
        # A job that somebody else submitted carries no tags of ours.
        with suppress(NotFound):
            adopted = session.yarn.application(claim.adoption.application)
            if tagged.is_adopted(session, claim.generation, adopted):
                ours.append((claim.generation, adopted))
            else:
                strangers.append(adopted)
    return tuple(sorted(ours, key=lambda pair: (pair[0], pair[1].order))), tuple(strangers)
