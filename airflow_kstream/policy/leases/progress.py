"""The files of a recovery, and the outcome of each."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from airflow_kstream.model.leases.lease_recovery import Outcome, Recovery, Target
from airflow_kstream.policy.leases.file_recovery import FileRecovery, Stage
from airflow_kstream.policy.leases.outcomes import End


class RecoveryProgress:
    """The record of which files have ended and how; it decides nothing, and knows no queue and no limit.

    If two targets have the same path, the first one counts. `epoch` is the time of day when the run began; all other
    times are counted from there.
    """

    def __init__(self, targets: Iterable[Target], epoch: datetime) -> None:
        self._files: dict[str, FileRecovery] = {}
        self._left = 0
        self._unreported: list[Recovery] = []
        self.epoch = epoch
        self.add(targets)

    def add(self, targets: Iterable[Target]) -> list[FileRecovery]:
        """Add the files of these targets, and return those that are new."""
        new: list[FileRecovery] = []
        for target in targets:
            if target.path not in self._files:
                self._files[target.path] = file = FileRecovery(target)
                new.append(file)
        self._left += len(new)
        return new

    @property
    def files(self) -> Iterable[FileRecovery]:
        return self._files.values()

    @property
    def done(self) -> bool:
        return self._left == 0

    @property
    def in_flight(self) -> tuple[str, ...]:
        """Return the paths whose recovery was requested and whose outcome is not known."""
        return tuple(file.path for file in self.files if file.request.requests and file.end is None)

    def file(self, path: str) -> FileRecovery:
        return self._files[path]

    def ended(self) -> list[Recovery]:
        """Return the recoveries that ended since the last call."""
        ended, self._unreported = self._unreported, []
        return ended

    def end_of(self, path: str) -> Recovery:
        """Return the outcome of a file that has ended."""
        end = self._files[path].end
        assert end is not None, f"{path} has not ended"
        return end

    def end(self, file: FileRecovery, end: End) -> None:
        """End a file that has not ended yet."""
        if end.outcome is Outcome.NOT_TRIED and file.target.accepted:
            end = End(Outcome.UNCONFIRMED, f"probing its holder started its recovery; {end.why}")
        file.end = file.recovery(end.outcome, end.why, end.after, self.epoch)
        file.stage = Stage.ENDED
        self._unreported.append(file.end)
        self._left -= 1
