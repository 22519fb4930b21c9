"""eco2AI's emission.csv: kilowatt-hours under a header that says power, its PUE inside unless it was 1."""

from collections.abc import Mapping
from dataclasses import dataclass

from carbonreport.importers.cells import JOULES, number
from carbonreport.importers.drafts import Draft, Load, imported, steady
from carbonreport.importers.imported import Imported, Rejected
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.moments import moments
from carbonreport.importers.tables import Cells, Row, read_table
from carbonreport.importers.wishes import Wishes, wishes_of
from carbonreport.model.notes import Note

FORMAT = "eco2ai"
_ENERGY = "power_consumption(kwh)"
# eco2AI counts one machine; 16 boards of 1.4 kW and their host draw less than this.
_MOST_WATTS = 30_000.0


def create(options: Mapping[str, str]) -> "Eco2AI":
    """The importer of eco2AI's CSV files."""
    return Eco2AI(wishes_of(options))


def available() -> str | None:
    """Always usable."""
    return None


@dataclass(frozen=True, slots=True)
class _Entry:
    row: Row
    start_s: float | None
    duration_s: float
    joules: float


class Eco2AI:
    """Reads one row a run; rows of one id are its epochs, each with its own energy."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    def recognises(self, file: LogFile) -> bool:
        """By its energy column and its duration."""
        return read_table(file.head, _is_header) is not None

    def read(self, file: LogFile) -> Imported:
        """One run a row."""
        table = read_table(file.text, _is_header)
        if table is None:
            return Imported(FORMAT, (), 0, why_not="its header is not eco2AI's")
        if self._wishes.unit and self._wishes.unit.casefold() not in JOULES:
            why = f"its column is an energy, and {self._wishes.unit} is a unit of power; say --mapping unit=J or kWh"
            return imported(FORMAT, file, (), rows=table.seen, wishes=self._wishes, why_not=why)
        rejected = list(table.rejected)
        stamps = moments([row.get("start_time") for row in table.rows], zone=self._wishes.zone, date_order=self._wishes.date_order)
        drafts, seen, hot = [], set(), 0
        for row, start_s, why in zip(table.rows, stamps.seconds, stamps.reasons, strict=True):
            entry, is_hot = self._entry(row, start_s, why, rejected)
            hot += is_hot
            if entry is None:
                continue
            key = tuple(row.cells)
            if key in seen:
                rejected.append((row.line, "it repeats another row"))
                continue
            seen.add(key)
            source = "eco2AI"
            load = Load("machine", _name(row), "node", "reported", source, steady(entry.duration_s, entry.joules, start_s=start_s or 0.0))
            facts = {"cpu": row.get("cpu_name"), "gpu": row.get("gpu_name").strip()}
            drafts.append(
                Draft(
                    f"{row.get('id')} {row.get('epoch')} {row.get('start_time')}",
                    row.get("project_name"),
                    (load,),
                    stamps.clock if start_s is not None else "none",
                    facts=facts,
                )
            )
        notes = [
            Note(
                "import-pue-unknown",
                f"{file.name}: eco2AI multiplies by the PUE that it was started with, 1 unless somebody gave one, and does not write it down",
            )
        ]
        if self._wishes.pue:
            notes = [Note("import-pue-taken-out", f"{file.name}: the energy was divided by the PUE of {self._wishes.pue:g} that was given")]
        why_not = None
        if hot and not drafts:
            why_not = f"{hot} of {table.seen} rows would draw over {_MOST_WATTS / 1000:g} kW if they were kWh as the header says; if they are joules, say --mapping unit=J"
        return imported(
            FORMAT, file, drafts, rows=table.seen, rejected=rejected, notes=notes if drafts else (), wishes=self._wishes, why_not=why_not
        )

    def _entry(self, row: Row, start_s: float | None, why: str, rejected: list[Rejected]) -> tuple[_Entry | None, bool]:
        """A usable row, and whether it was refused for its power."""
        duration_s, energy = number(row.get("duration(s)")), number(row.get(_ENERGY))
        if duration_s is None or energy is None or duration_s < 0 or energy < 0:
            rejected.append((row.line, "it has no duration or no energy"))
        elif start_s is None and row.get("start_time") and why:
            rejected.append((row.line, why))
        else:
            joules = energy * JOULES[self._wishes.unit.casefold() or "kwh"] / (self._wishes.pue or 1.0)
            if joules > _MOST_WATTS * max(duration_s, 1.0):
                rejected.append(
                    (
                        row.line,
                        f"{energy:g} in {duration_s:g} s as {self._wishes.unit or 'kWh'} are {joules / max(duration_s, 1.0):.3g} W, which no such machine draws",
                    )
                )
                return None, True
            return _Entry(row, start_s, duration_s, joules), False
        return None, False


def _is_header(cells: Cells) -> bool:
    return {"id", "project_name", "start_time", "duration(s)", _ENERGY} <= set(cells)


def _name(row: Row) -> str:
    """The GPU without eco2AI's count, else the processor."""
    gpu = row.get("gpu_name").strip()
    return (
        gpu.rpartition(" ")[0].rpartition(" ")[0]
        if "device(s)" in gpu and gpu.split()[0] != "0" and not gpu[0].isdecimal()
        else row.get("cpu_name").partition("/")[0] or "machine"
    )
