"""Zeus's window log: joules by GPU without a unit in the header; windows inside windows are counted once."""

from collections.abc import Mapping, Sequence

from carbonreport.importers.cells import number
from carbonreport.importers.drafts import Draft, Load, imported, steady
from carbonreport.importers.imported import Imported, Rejected
from carbonreport.importers.limits import MOST_BOARD_WATTS
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.moments import Clock
from carbonreport.importers.tables import Cells, Row, read_table
from carbonreport.importers.wishes import Wishes, wishes_of
from carbonreport.model.notes import Note

FORMAT = "zeus"
_SLACK_S = 0.01
_SLACK = 1.5  # a board passes its rated power for moments only
_EARLIEST_EPOCH_S = 1e9  # smaller starts come from a clock that counts since boot

Window = tuple[Row, float, float, dict[str, float]]  # row, start [s], length [s], joules by GPU


def create(options: Mapping[str, str]) -> "Zeus":
    """The importer of ZeusMonitor's log files."""
    return Zeus(wishes_of(options))


def available() -> str | None:
    """Always usable."""
    return None


class Zeus:
    """Reads start_time,window_name,elapsed_time,gpu0_energy,…"""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    def recognises(self, file: LogFile) -> bool:
        """By its three first columns."""
        return read_table(file.head, _is_header) is not None

    def read(self, file: LogFile) -> Imported:
        """One run for each window that lies in no other."""
        table = read_table(file.text, _is_header)
        if table is None:
            return Imported(FORMAT, (), 0, why_not="its header is not Zeus's")
        rejected = list(table.rejected)
        windows = [w for row in table.rows if (w := _window(row, rejected)) is not None]
        outer = _outermost(windows)
        clock: Clock = "utc" if windows and all(start >= _EARLIEST_EPOCH_S for _, start, _, _ in windows) else "none"
        drafts = [_draft(window, clock) for window in outer if window[3]]
        notes = [Note("import-partial", f"{file.name}: Zeus writes the energy of GPUs alone; processors and memory are missing")]
        if len(outer) < len(windows):
            notes.append(Note("import-nested", f"{file.name}: {len(windows) - len(outer)} windows lie inside others and are counted once"))
        why_not = None if any(w[3] for w in windows) else "none of its windows has energy of a GPU; Zeus found none on that machine"
        return imported(
            FORMAT, file, drafts, rows=table.seen, rejected=rejected, notes=notes if drafts else (), wishes=self._wishes, why_not=why_not
        )


def _is_header(cells: Cells) -> bool:
    return {"start_time", "window_name", "elapsed_time"} <= set(cells)


def _window(row: Row, rejected: list[Rejected]) -> Window | None:
    start_s, elapsed_s = number(row.get("start_time")), number(row.get("elapsed_time"))
    if start_s is None or elapsed_s is None or elapsed_s < 0:
        rejected.append((row.line, "it has no start or no length"))
        return None
    joules = {}
    for name in row.where:
        if name.startswith("gpu") and name.endswith("_energy"):
            value = number(row.get(name))
            if value is None or value < 0:
                rejected.append((row.line, f"{name} is {row.get(name) or 'blank'}: the counter began again, or was not read"))
                return None
            if value > max(elapsed_s, 1.0) * MOST_BOARD_WATTS * _SLACK:
                rejected.append((row.line, f"{name} of {value:g} J in {elapsed_s:g} s is more than any board draws"))
                return None
            joules[name.removesuffix("_energy")] = value
    return row, start_s, elapsed_s, joules


def _outermost(windows: Sequence[Window]) -> list[Window]:
    """Windows that lie in no other one, in the order of time; a repeated row is one window."""
    outer: list[Window] = []
    last_end_s = float("-inf")
    for window in sorted(windows, key=lambda w: (w[1], -w[2])):
        end_s = window[1] + window[2]
        if end_s <= last_end_s + _SLACK_S:
            continue
        outer.append(window)
        last_end_s = end_s
    return outer


def _draft(window: Window, clock: Clock) -> Draft:
    row, start_s, elapsed_s, joules = window
    loads = tuple(
        Load(
            gpu,
            "GPU",
            "gpu",
            "counter",
            "energy counter of the board, by Zeus",
            steady(elapsed_s, j, start_s=start_s),
        )
        for gpu, j in joules.items()
    )
    return Draft(f"{row.get('window_name')} {start_s!r} {elapsed_s!r}", row.get("window_name"), loads, clock, start_s, start_s + elapsed_s)
