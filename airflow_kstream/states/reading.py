"""What is stored of the streams, for pages. It reads Airflow's database, so it runs in the API server alone."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_kstream.assets import SCHEME, subject_of
from airflow_kstream.model.event import Ledger
from airflow_kstream.model.stream_state import StreamState
from airflow_kstream.notifications.ledgers import KEY
from airflow_kstream.policy.states.due import Kind

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@dataclass(frozen=True)
class StoredState:
    """The rows of a stream, or with an empty `stream` of the cluster; each part is None if it is not there.

    `active` is whether a DAG names its asset. `written` is when the state was written, by the database's clock.
    """

    cluster: str
    stream: str
    active: bool
    state: StreamState | None
    written: datetime | None
    detail: Mapping[str, Any] | None
    told: Ledger


def stored_states(session: Session) -> tuple[StoredState, ...]:
    """Return what is stored of all streams and clusters, by cluster and stream, in one query.

    What can't be read is left out: it is a cache, and a later version may have written it.
    """
    from airflow.models.asset import AssetModel
    from airflow.models.asset_state_store import AssetStateStoreModel as Store
    from sqlalchemy import select

    rows = session.execute(
        select(AssetModel.uri, AssetModel.active.has(), Store.key, Store.value, Store.updated_at)
        .join(Store, Store.asset_id == AssetModel.id)
        .where(AssetModel.uri.startswith(f"{SCHEME}://"), Store.key.in_([Kind.VERDICT, Kind.DETAIL, KEY]))
    )
    found: dict[tuple[str, bool], dict[str, tuple[Any, datetime]]] = defaultdict(dict)
    for uri, active, key, value, written in rows:
        found[uri, active][key] = _json(value), written
    return tuple(sorted((_stored(*asset, keys) for asset, keys in found.items()), key=lambda s: (s.cluster, s.stream)))


def _stored(uri: str, active: bool, keys: Mapping[str, tuple[Any, datetime]]) -> StoredState:
    verdict, written = keys.get(Kind.VERDICT, (None, None))
    detail, _ = keys.get(Kind.DETAIL, (None, None))
    told, _ = keys.get(KEY, (None, None))
    return StoredState(
        *subject_of(uri),
        active=active,
        state=StreamState.from_json(verdict),
        written=written,
        detail=detail if isinstance(detail, Mapping) else None,
        told=Ledger.from_json(told),
    )


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
