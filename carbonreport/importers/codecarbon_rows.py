"""Rows of CodeCarbon as energies of a run's parts: what is cumulative, what adds up, what contradicts itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from carbonreport.importers.cells import number
from carbonreport.importers.codecarbon_boards import boards_of
from carbonreport.importers.curves import Curve
from carbonreport.importers.drafts import Load
from carbonreport.importers.tables import Row
from carbonreport.model.run import DeviceKind

PARTS: tuple[tuple[str, str, DeviceKind], ...] = (("cpu", "cpu_model", "cpu"), ("gpu", "gpu_model", "gpu"), ("ram", "ram", "dram"))
_SAME = 0.01  # parts and total closer than this agree
_MOST_RATIO = 3.0  # energy over power times time; powers were the last reading before 3.2


@dataclass(frozen=True, slots=True)
class Entry:
    """One usable row.

    Attributes:
        row: As written.
        end_s: Its stamp, which is the end of its time.
        duration_s: How long the run had gone on; of a task, the task.
        joules: Its energy without a PUE. [J]
        parts: The same by cpu, gpu and ram, as far as they are written. [J]
    """

    row: Row
    end_s: float | None
    duration_s: float
    joules: float
    parts: dict[str, float]

    @property
    def run_id(self) -> str:
        """Id of its run, "" where it has none."""
        return self.row.get("run_id")

    @property
    def is_task(self) -> bool:
        """Whether it is of a task file, whose rows are not cumulative."""
        return "task_name" in self.row.where


def disagreement(row: Row, entry: Entry) -> str:
    """How a row's energy differs from its powers times its time; "" where it does not. A run's total after tasks has the last task's duration."""
    powers = [number(row.get(f"{part}_power")) for part, _, _ in PARTS]
    watts = sum(p for p in powers if p is not None)
    if watts <= 0 or entry.duration_s <= 0:
        return ""
    ratio = entry.joules / (watts * entry.duration_s)
    return (
        f"its energy is {ratio:.3g} times its power times its duration; the duration may be that of its last task alone"
        if ratio > _MOST_RATIO
        else ""
    )


def rising_of(entries: Sequence[Entry]) -> list[Entry]:
    """Rows of one run by their length, each with no less energy than the one before; the most energy ends it."""
    ordered: list[Entry] = []
    for entry in sorted(entries, key=lambda e: (e.duration_s, e.joules)):
        while ordered and (ordered[-1].joules > entry.joules or ordered[-1].duration_s == entry.duration_s):
            ordered.pop()
        ordered.append(entry)
    return ordered


def loads_of(rising: Sequence[Entry], start_s: float, row: Row, *, is_whole: bool) -> list[Load]:
    """Its parts where they add up to the total, else the total alone."""
    source = f"CodeCarbon {row.get('codecarbon_version') if is_whole else ''}".strip()
    last = rising[-1]
    adds_up = last.parts and abs(sum(last.parts.values()) - last.joules) <= _SAME * max(last.joules, 1e-12)
    same = all(entry.parts.keys() == last.parts.keys() for entry in rising)
    if not adds_up or not same or any(b.parts[p] < a.parts[p] for a, b in pairwise(rising) for p in last.parts):
        return [Load("machine", "machine as CodeCarbon counts it", "node", "reported", source, _curve(rising, None, start_s))]
    scale = last.joules / sum(last.parts.values()) if last.joules else 1.0
    loads = []
    for part, model, kind in PARTS:
        if last.parts.get(part):
            text = (row.get(model) if is_whole else "") or part.upper()
            name, count, _ = boards_of(text, row.get("gpu_count") if is_whole else "") if kind == "gpu" else (text, 1, "")
            loads.append(Load(f"{part} {text}", name, kind, "reported", source, _curve(rising, part, start_s, scale), count))
    return loads or [Load("machine", "machine as CodeCarbon counts it", "node", "reported", source, _curve(rising, None, start_s))]


def _curve(rising: Sequence[Entry], part: str | None, start_s: float, scale: float = 1.0) -> Curve:
    joules = [0.0, *(e.joules if part is None else e.parts[part] * scale for e in rising)]
    return Curve((start_s, *(start_s + e.duration_s for e in rising)), tuple(joules))


def pue_of(row: Row) -> float:
    """The PUE inside a row's energy; 1 where the row has none, or where its cells have shifted."""
    pue = number(row.get("pue")) if len(row.cells) >= len(row.where) else None
    return pue if pue is not None and 1 <= pue < 10 else 1.0
