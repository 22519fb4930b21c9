"""nvidia-smi dmon: columns by the name in the repeated header; times only where -o DT or -o T wrote them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from carbonreport.importers.cells import number
from carbonreport.importers.curves import Reading, curve_of_powers, curve_of_steps
from carbonreport.importers.drafts import Draft, Load, imported
from carbonreport.importers.imported import Imported, Rejected
from carbonreport.importers.limits import limit_of
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.moments import Moments, moments
from carbonreport.importers.wishes import Wishes, wishes_of
from carbonreport.model.notes import Note

FORMAT = "nvidia-smi-dmon"
_DAY_S = 86400.0

Line = tuple[int, dict[str, str]]


def create(options: Mapping[str, str]) -> "Dmon":
    """The importer of nvidia-smi dmon."""
    return Dmon(wishes_of(options))


def available() -> str | None:
    """Always usable."""
    return None


class Dmon:
    """Reads "# gpu  pwr  gtemp …" with its units in the second line."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    def recognises(self, file: LogFile) -> bool:
        """By its header, which begins with # and names gpu."""
        return any(_header(line) is not None for line in file.head.splitlines()[:40])

    def read(self, file: LogFile) -> Imported:
        """One run of all boards."""
        rejected: list[Rejected] = []
        lines = _lines(file.text, rejected)
        rows = len(lines) + len(rejected)
        if not any("pwr" in cells for _, cells in lines):
            return self._refused(file, rows, rejected, "energy is not derivable: it has no column pwr; run dmon with -s p")
        has_times = any("time" in cells for _, cells in lines)
        if not has_times and self._wishes.period_s is None:
            return self._refused(
                file,
                rows,
                rejected,
                "energy is not derivable: dmon wrote no times (-o DT does); give the seconds between its rows with --mapping period_s=1",
            )
        stamps = self._stamps(lines) if has_times else None
        series: dict[str, list[Reading]] = defaultdict(list)
        for i, (line, cells) in enumerate(lines):
            gpu, watts = cells.get("gpu", "0"), number(cells.get("pwr", ""))
            at_s = stamps.seconds[i] if stamps is not None else 0.0
            if watts is None or at_s is None:
                rejected.append(
                    (line, f"pwr is {cells.get('pwr', '-')}: no power" if watts is None else stamps.reasons[i] if stamps else "")
                )
            else:
                series[gpu].append((line, at_s, watts))
        return self._run(file, series, stamps, rows, rejected)

    def _run(
        self, file: LogFile, series: Mapping[str, list[Reading]], stamps: Moments | None, rows: int, rejected: list[Rejected]
    ) -> Imported:
        loads, why_not, repeats = [], None, 0
        for gpu, readings in sorted(series.items()):
            read = (
                curve_of_powers(readings, limit_of(""), named="pwr")
                if stamps is not None
                else curve_of_steps(readings, limit_of(""), self._wishes.period_s or 0.0, named="pwr")
            )
            rejected += read.rejected
            why_not = why_not or read.why_not or None
            if read.curve is not None:
                repeats += read.curve.twins
                loads.append(Load(f"gpu-{gpu}", "GPU", "gpu", "averaged", "nvidia-smi dmon pwr", read.curve))
        notes = [Note("import-repeats", f"{file.name}: {repeats} rows repeat a reading and count once")] if repeats else []
        drafts = [Draft("", file.stem, tuple(loads), stamps.clock if stamps is not None else "none")] if loads else []
        return imported(FORMAT, file, drafts, rows=rows, rejected=rejected, notes=notes, wishes=self._wishes, why_not=why_not)

    def _stamps(self, lines: Sequence[Line]) -> Moments:
        """Times with their dates; without dates they count from midnight, a day more after each midnight."""
        if any("date" in cells for _, cells in lines):
            return moments([f"{cells.get('date', '')} {cells.get('time', '')}" for _, cells in lines], zone=self._wishes.zone)
        seconds: list[float | None] = []
        day_s, before = 0.0, 0.0
        for _, cells in lines:
            parts = [number(part) for part in cells.get("time", "").split(":")]
            if len(parts) != 3 or any(part is None for part in parts):
                seconds.append(None)
                continue
            of_day = sum((part or 0.0) * unit for part, unit in zip(parts, (3600.0, 60.0, 1.0), strict=True))
            day_s += _DAY_S if of_day + day_s < before - _DAY_S / 2 else 0.0
            before = of_day + day_s
            seconds.append(before)
        return Moments(tuple(seconds), "none", tuple("" if s is not None else "its time cannot be read" for s in seconds))

    def _refused(self, file: LogFile, rows: int, rejected: list[Rejected], why: str) -> Imported:
        return imported(FORMAT, file, (), rows=rows, rejected=rejected, wishes=self._wishes, why_not=why)


def _header(line: str) -> list[str] | None:
    """Names of the columns where a line is a header of dmon."""
    if not line.lstrip().startswith("#"):
        return None
    names = _cells(line.lstrip().lstrip("#").casefold())
    return names if "gpu" in names and len(names) > 1 and not {"entity", "idx"} & set(names) else None


def _lines(text: str, rejected: list[Rejected]) -> list[Line]:
    """Data rows as cells by column; a header counts from where it stands."""
    names: list[str] = []
    lines = []
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        if content.lstrip().startswith("#"):
            names = _header(content) or names
            continue
        cells = _cells(content)
        if names and len(cells) == len(names):
            lines.append((line, dict(zip(names, cells, strict=True))))
        elif names:
            rejected.append((line, f"{len(cells)} cells where the header has {len(names)}"))
    return lines


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")] if "," in line else line.split()
