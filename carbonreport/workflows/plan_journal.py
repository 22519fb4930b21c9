"""Finished stages of a profile or a validation, so that what was stopped goes on with them."""

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from carbonreport.errors import CarbonreportError
from carbonreport.workflows.journal import JournalFile, opened_file
from carbonreport.workflows.plan_stage import Stage


class Identity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What makes stages comparable.

    Attributes:
        step: The step that was measured, as it was named.
        sequence_hash: Hash of its phases in their order.
        devices: Boards.
        driver: Their driver.
        is_dry: Whether no clock was set.
        seconds: Of each stage. [s]
        settle_s: Left out before each. [s]
        source: Hash of the code of the step; "" where it cannot be read.
        arguments: Hash of what the step was bound to.
        version: Of the format.
    """

    step: str
    sequence_hash: str
    devices: tuple[str, ...]
    driver: str | None
    is_dry: bool
    seconds: float
    settle_s: float
    source: str = ""
    arguments: str = ""
    version: int = 2


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    key: str
    stage: Stage
    at: str = ""


class StageJournal:
    """Stages by key.

    Args:
        file: Takes lines.
        stages: What it held.
        last: When the last of them was measured; "" where there is none.
        now: The time of day in UTC.
    """

    def __init__(
        self, file: JournalFile, stages: dict[str, Stage], last: str = "", now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._file, self._stages, self.last, self._now = file, stages, last, now

    def get(self, key: str) -> Stage | None:
        """A finished stage."""
        return self._stages.get(key)

    def under(self, begin: str) -> dict[str, Stage]:
        """Finished stages whose keys begin so."""
        return {key: stage for key, stage in self._stages.items() if key.startswith(begin)}

    def add(self, key: str, stage: Stage) -> None:
        """Keep a finished stage."""
        self._file.append(msgspec.json.encode(_Line(key, stage, f"{self._now():%Y-%m-%d %H:%M} UTC")))
        self._stages[key] = stage


@contextlib.contextmanager
def opened_stages(path: Path, wanted: Identity) -> Iterator[StageJournal]:
    """The journal of a profile, a new one or that of the same profile before.

    Raises:
        OutputError: It cannot be written.
        CarbonreportError: It is of other work, or another process goes on with it now.
    """
    with opened_file(path, called=str(path)) as file:
        lines = _read(file, path, wanted)
        yield StageJournal(file, {line.key: line.stage for line in lines}, lines[-1].at if lines else "")


def _read(file: JournalFile, path: Path, wanted: Identity) -> list[_Line]:
    """Its stages; a new one gets its first line."""
    first, *rest = file.lines or (b"",)
    if not first:
        file.append(msgspec.json.encode(wanted))
        return []
    try:
        held = msgspec.json.decode(first, type=Identity)
        lines = [msgspec.json.decode(line, type=_Line) for line in rest]
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CarbonreportError(f"{path} is no journal of stages that can be read ({error}); remove it, or give another --out") from error
    different = [name for name in Identity.__struct_fields__ if getattr(held, name) != getattr(wanted, name)]
    if different:
        name = different[0]
        raise CarbonreportError(
            f"{path} holds stages of another {name.replace('_', ' ')} ({getattr(held, name)}, now {getattr(wanted, name)}): give another --out, or remove it"
        )
    return lines
