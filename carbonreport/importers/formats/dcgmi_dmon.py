"""dcgmi dmon: fields by their short names; TOTEC is a counter in millijoules, POWER are watts without times."""

from collections import defaultdict
from collections.abc import Mapping

from carbonreport.importers.cells import JOULES, number
from carbonreport.importers.counters import curve_of_counter
from carbonreport.importers.curves import Curve, Reading, curve_of_steps
from carbonreport.importers.drafts import Draft, Load, imported
from carbonreport.importers.imported import Imported, Rejected
from carbonreport.importers.limits import limit_of
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.wishes import Wishes, wishes_of
from carbonreport.model.notes import Note

FORMAT = "dcgmi-dmon"
_COUNTERS, _POWERS = ("TOTEC", "TOTEN"), ("POWER", "PWR")
_DAY_S = 86400.0


def create(options: Mapping[str, str]) -> "DcgmiDmon":
    """The importer of dcgmi dmon."""
    return DcgmiDmon(wishes_of(options))


def available() -> str | None:
    """Always usable."""
    return None


class DcgmiDmon:
    """Reads "#Entity  POWER  TOTEC" and "GPU 0  68.2  15152422938"."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    def recognises(self, file: LogFile) -> bool:
        """By the header with Entity."""
        return any(_header(line) for line in file.head.splitlines()[:20])

    def read(self, file: LogFile) -> Imported:
        """One run of all boards: by the counter where it was asked for, else by the power and its period."""
        rejected: list[Rejected] = []
        names, cells, rows = _cells(file.text, rejected)
        counter = next((name for name in _COUNTERS if name in names), "")
        power = next((name for name in _POWERS if name in names), "")
        if not counter and (not power or self._wishes.period_s is None):
            why = "energy is not derivable: it has neither TOTEC nor POWER; run dcgmi dmon -e 155,156"
            if power:
                why = "energy is not derivable: dcgmi wrote power without times; give the seconds between its rows with --mapping period_s=1, or run it with -e 156 (TOTEC)"
            return imported(FORMAT, file, (), rows=rows, rejected=rejected, wishes=self._wishes, why_not=why)
        column = counter or power
        loads, why_not, resets = [], None, 0
        for entity, readings in sorted(_series(names.index(column), cells, rejected, column).items()):
            if counter:
                # without a period the longest possible one bounds a difference: what a board may draw in a day
                step_s = self._wishes.period_s or _DAY_S
                timed = [(line, i * step_s, value * JOULES["mj"]) for i, (line, _, value) in enumerate(readings)]
                read = curve_of_counter(timed, limit_of(""))
            else:
                read = curve_of_steps(readings, limit_of(""), self._wishes.period_s or 0.0, named=power)
            rejected += read.rejected
            why_not = why_not or read.why_not or None
            if read.curve is not None:
                resets += read.curve.resets
                curve = read.curve if self._wishes.period_s else Curve((0.0, 0.0), (0.0, read.curve.total_joules))
                loads.append(
                    Load(
                        entity.replace(" ", "-").lower(), "GPU", "gpu", "counter" if counter else "averaged", f"dcgmi dmon {column}", curve
                    )
                )
        notes = [Note("counter-reset", f"{file.name}: a counter began again {resets} times")] if resets else []
        drafts = [Draft("", file.stem, tuple(loads), "none")] if loads else []
        return imported(FORMAT, file, drafts, rows=rows, rejected=rejected, notes=notes, wishes=self._wishes, why_not=why_not)


def _header(line: str) -> list[str]:
    """Short names of the fields where a line is a header; [] else."""
    words = line.replace("#", " ").split()
    return words[1:] if line.lstrip().startswith("#") and words and words[0].casefold() == "entity" else []


def _cells(text: str, rejected: list[Rejected]) -> tuple[list[str], list[tuple[int, str, list[str]]], int]:
    """Field names, and (line, entity, cells) of each row. MIG slices (GPU-I, GPU-CI) are not boards."""
    names: list[str] = []
    rows = []
    seen = 0
    for line, content in enumerate(text.split("\n"), start=1):
        if header := _header(content):
            names = header
            continue
        words = content.split()
        if len(words) < 3 or words[0] != "GPU" or not names:
            continue
        seen += 1
        if len(words) == len(names) + 2:
            rows.append((line, f"GPU {words[1]}", words[2:]))
        else:
            rejected.append((line, f"{len(words) - 2} values where the header has {len(names)}"))
    return names, rows, seen


def _series(at: int, cells: list[tuple[int, str, list[str]]], rejected: list[Rejected], column: str) -> dict[str, list[Reading]]:
    series: dict[str, list[Reading]] = defaultdict(list)
    for line, entity, values in cells:
        value = number(values[at])
        if value is None:
            rejected.append((line, f"{column} is {values[at]}"))
        else:
            series[entity].append((line, 0.0, value))
    return series
