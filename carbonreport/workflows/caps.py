"""Where power caps come from: the user's own sweep, else what others reported of that board."""

import csv
import json
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from carbonreport.errors import CarbonreportError
from carbonreport.grid.zones import DATA
from carbonreport.model.run import RunRecord
from carbonreport.recommend.caps import CapPoint

WORKLOADS = ("training", "inference")
_TABLE = DATA / "power_caps.csv"
_LONGEST_NAME = 60
_LONGEST_REASON = 240


@dataclass(frozen=True, slots=True)
class Swept:
    """The user's own sweep.

    Attributes:
        points: Its caps; the chosen one alone where it chose one, all of them rejected where it found none worth it.
        why_none: Why it found no cap worth it; None where it did not look, or chose one.
    """

    points: tuple[CapPoint, ...]
    why_none: str | None = None

    @property
    def in_words(self) -> str | None:
        """That it found no cap worth it, and why; None where it did not say so."""
        return None if self.why_none is None else f"your sweep found no cap worth it: {self.why_none}"


def reported_caps(board: str, workload: str) -> tuple[CapPoint, ...]:
    """What others measured of a board: the curve of the first source, each point with the range of all that were reported for its cap.

    Args:
        board: Its name; every word of a row's name must be in it.
        workload: training or inference.

    Raises:
        CarbonreportError: The table has no such board or workload; the message names those it has.
    """
    rows = [row for row in _rows() if _is_named(row["board"], board) and row["workload"] == workload]
    if not rows:
        known = ", ".join(dict.fromkeys(f"{row['board']} ({row['workload']})" for row in _rows()))
        raise CarbonreportError(
            f"nobody's power caps of {board[:_LONGEST_NAME]!r} ({workload}) are in the table, which has {known}; measure your own and give --sweep"
        )
    points = []
    for row in (row for row in rows if row["source"] == rows[0]["source"]):
        ratios = [float(other["energy_ratio"]) for other in rows if other["cap_watts"] == row["cap_watts"]]
        cap_watts, energy, time = (float(row[name]) for name in ("cap_watts", "energy_ratio", "time_ratio"))
        points.append(CapPoint(cap_watts, energy, time, min(ratios), max(ratios), len(ratios), row["source"]))
    return tuple(points)


def caps_like(run: RunRecord, workload: str | None) -> tuple[CapPoint, ...]:
    """What others measured of a run's board, doing what it did; nothing where the table has no such board."""
    board = board_of(run)
    if board is None:
        return ()
    kind = workload or ("inference" if run.kind in ("inference", "evaluation") else "training")
    return reported_caps(board, kind) if any(_is_named(row["board"], board) and row["workload"] == kind for row in _rows()) else ()


def swept_caps(path: Path) -> Swept:
    """The points of the user's own sweep; its choice alone where it names one; where it has none, all are rejected.

    A table of points without a choice, as another tool may have measured it, offers all of them.

    Raises:
        CarbonreportError: It is no sweep; the message names the field.
    """
    try:
        held = json.loads(path.read_bytes())
    except RecursionError as error:
        raise CarbonreportError(f"cannot read the sweep {path}: its brackets are nested too deeply for a sweep") from error
    except (OSError, ValueError) as error:
        raise CarbonreportError(f"cannot read the sweep {path}: {error}") from error
    if not isinstance(held, dict) or not isinstance(held.get("points"), list) or not held["points"]:
        raise CarbonreportError(
            f"{path}: points is missing: a sweep has baseline, points with cap_watts, time_ratio, energy_ratio, and choice"
        )
    chosen = held.get("choice")
    if chosen is None and ("choice" in held or held.get("not_confirmed") is not None):
        rejected = (replace(_point(path, number, point), is_rejected=True) for number, point in enumerate(held["points"]))
        return Swept(tuple(rejected), _why_none(held))
    points = tuple(_point(path, number, point) for number, point in enumerate(held["points"]) if not _says_dominated(point))
    if chosen is None:
        return Swept(points)
    cap_watts = chosen.get("cap_watts") if isinstance(chosen, dict) else chosen
    only = tuple(point for point in points if point.cap_watts == cap_watts)
    if not only:
        raise CarbonreportError(f"{path}: choice: no point of it that is not dominated has a cap of {str(cap_watts)[:_LONGEST_NAME]} W")
    return Swept(only)


def _why_none(held: dict[str, Any]) -> str:
    """The sweep's own reason, on one line."""
    said = held.get("because")
    words = " ".join(said.split()) if isinstance(said, str) else ""
    for opening in ("no cap is worth it: ", "no cap is worth it"):
        words = words.removeprefix(opening)
    return words[:_LONGEST_REASON] or "its choice is null, and it does not say why"


def gpu_share_of(run: RunRecord) -> float | None:
    """Part of a run's energy that its GPUs took, or None where it has none of theirs."""
    gpus = {device.id for device in run.devices if device.kind == "gpu"}
    joules = {trace.device: trace.joules[-1] - trace.joules[0] for trace in run.traces if trace.offsets_s}
    of_gpus, whole = sum(j for device, j in joules.items() if device in gpus), sum(joules.values())
    return of_gpus / whole if of_gpus > 0 else None


def board_of(run: RunRecord) -> str | None:
    """The board of a run, or None where it has none, or several kinds."""
    names = {device.name for device in run.devices if device.kind == "gpu"}
    return names.pop() if len(names) == 1 else None


def _says_dominated(point: Any) -> bool:
    return isinstance(point, dict) and point.get("dominated") is True


def _point(path: Path, number: int, point: Any) -> CapPoint:
    where = f"{path}: points[{number}]"
    if not isinstance(point, dict):
        raise CarbonreportError(f"{where} is no table")
    numbers: dict[str, float] = {}
    for name in ("cap_watts", "energy_ratio", "time_ratio"):
        value = point.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise CarbonreportError(f"{where}.{name} must be a number, not {value!r}")
        try:
            numbers[name] = float(value)
        except OverflowError as error:
            raise CarbonreportError(f"{where}.{name} has too many digits for a number") from error
    try:
        cap_watts, energy, time = (numbers[name] for name in ("cap_watts", "energy_ratio", "time_ratio"))
        return CapPoint(cap_watts, energy, time, low=energy, high=energy, reports=1, source=path.name, is_own=True)
    except ValueError as error:
        raise CarbonreportError(f"{where}: {error}, which cannot be") from error


def _is_named(row: str, board: str) -> bool:
    """Whether the table's name is meant: "Tesla V100-SXM2-16GB" is a V100, "RTX 6000 Ada" is no Quadro RTX 6000."""
    words = "".join(c if c.isalnum() else " " for c in board.casefold()).split()
    return all(word in words for word in row.casefold().split())


@lru_cache(maxsize=1)
def _rows() -> tuple[dict[str, str], ...]:
    with _TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(line for line in file if not line.startswith("#")))
