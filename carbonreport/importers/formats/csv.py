"""Any other table with times and power, or with energies: by the names of its columns, or as --mapping says."""

from collections.abc import Mapping
from itertools import pairwise

from carbonreport.importers.cells import JOULES, SECONDS, number, quantity
from carbonreport.importers.counters import curve_of_counter
from carbonreport.importers.drafts import Draft, Load, imported, steady
from carbonreport.importers.headers import heading
from carbonreport.importers.imported import Imported, Rejected
from carbonreport.importers.limits import MOST_NODE_WATTS
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.moments import moments
from carbonreport.importers.power_roles import roles_of
from carbonreport.importers.power_table import read_power_table
from carbonreport.importers.tables import Cells, Table, read_table
from carbonreport.importers.tabular import is_tabular
from carbonreport.importers.wishes import Wishes, wishes_of
from carbonreport.model.notes import Note

FORMAT = "csv"


def create(options: Mapping[str, str]) -> "AnyTable":
    """The importer of tables that no other importer knows."""
    return AnyTable(wishes_of(options))


def available() -> str | None:
    """Always usable."""
    return None


class AnyTable:
    """Reads delimited text; asked after all others."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    def recognises(self, file: LogFile) -> bool:
        """Whether somebody named its columns, a header has rows under it, or it is rows of numbers."""
        wishes = self._wishes
        is_named = any((wishes.columns, wishes.time, wishes.power, wishes.energy, wishes.device, wishes.duration))
        return is_named or is_tabular(file.head, self._is_header)

    def read(self, file: LogFile) -> Imported:
        """One run of power over time; or one run a row of energies."""
        table = read_table(file.text, self._is_header, columns=self._wishes.columns)
        if table is None:
            lines = [line.strip() for line in file.text.splitlines() if line.strip()] or [""]
            is_header = not any(c.isdecimal() for c in lines[0].split(",")[0])
            why = (_without_columns if is_header else _without_header)(lines[0][:60])
            return imported(FORMAT, file, (), rows=len(lines) - is_header, wishes=self._wishes, why_not=why)
        roles = roles_of(table, self._wishes)
        energy = self._wishes.energy or next((c for c in table.columns if heading(c).is_energy and _has_numbers(table, c)), "")
        by_power = roles.powers and (roles.time or self._wishes.period_s) and not self._wishes.energy
        if by_power or not energy:
            return read_power_table(FORMAT, file, table, self._wishes)
        return self._of_energies(file, table, energy, roles.time[0] if roles.time else "")

    def _is_header(self, cells: Cells) -> bool:
        wanted = {self._wishes.time, self._wishes.energy, self._wishes.device, self._wishes.duration, *self._wishes.power} - {""}
        if wanted:
            return wanted <= set(cells)
        headings = [heading(cell) for cell in cells]
        is_named = any(h.is_power or h.is_energy for h in headings) or (
            any(h.is_time for h in headings) and any(c.startswith("gpu") for c in cells)
        )
        return is_named and not any(number(cell) is not None or "=" in cell for cell in cells)

    def _of_energies(self, file: LogFile, table: Table, energy: str, time: str) -> Imported:
        """Rows of energies: of a growing counter, or one run a row."""
        unit = (self._wishes.unit or heading(energy).unit).casefold()
        if energy not in table.columns:
            return imported(FORMAT, file, (), rows=table.seen, wishes=self._wishes, why_not=f"it has no column {energy!r}")
        if unit not in JOULES:
            why = f"the unit of {energy!r} is not known: say --mapping unit=J (or Wh, kWh, mJ)"
            return imported(FORMAT, file, (), rows=table.seen, wishes=self._wishes, why_not=why)
        values = [quantity(row.get(energy), comma_is_point=table.comma_is_point)[0] for row in table.rows]
        kind = self._wishes.energy_is or ("interval" if not time else "")
        if not kind:
            known = [value for value in values if value is not None]
            rises = len(known) > 1 and all(b >= a for a, b in pairwise(known))
            why = f"the energies in {energy!r} {'rise' if rises else 'do not rise'}: say --mapping energy_is=counter where they go on growing, or energy_is=interval where each row has its own"
            return imported(FORMAT, file, (), rows=table.seen, wishes=self._wishes, why_not=why)
        return (
            self._counter(file, table, energy, values, JOULES[unit], time)
            if kind == "counter"
            else self._intervals(file, table, energy, values, JOULES[unit])
        )

    def _counter(self, file: LogFile, table: Table, energy: str, values: list[float | None], factor: float, time: str) -> Imported:
        stamps = moments([row.get(time) for row in table.rows], zone=self._wishes.zone, date_order=self._wishes.date_order)
        rejected: list[Rejected] = list(table.rejected)
        readings = []
        for row, at_s, why, value in zip(table.rows, stamps.seconds, stamps.reasons, values, strict=True):
            if at_s is None or value is None:
                rejected.append((row.line, why or f"{energy} is no number"))
            else:
                readings.append((row.line, at_s, value * factor))
        read = curve_of_counter(readings, MOST_NODE_WATTS)
        if read.curve is None:
            return imported(
                FORMAT, file, (), rows=table.seen, rejected=[*rejected, *read.rejected], wishes=self._wishes, why_not=read.why_not
            )
        notes = [Note("counter-reset", f"{file.name}: the counter began again {read.curve.resets} times")] if read.curve.resets else []
        load = Load("meter", energy, "other", "reported", f"column {energy}", read.curve)
        return imported(
            FORMAT,
            file,
            [Draft("", file.stem, (load,), stamps.clock)],
            rows=table.seen,
            rejected=[*rejected, *read.rejected],
            notes=notes,
            wishes=self._wishes,
        )

    def _intervals(self, file: LogFile, table: Table, energy: str, values: list[float | None], factor: float) -> Imported:
        duration = self._wishes.duration or next((c for c in table.columns if heading(c).is_duration), "")
        scale = SECONDS.get(heading(duration).unit, 1.0)
        rejected: list[Rejected] = list(table.rejected)
        drafts, seen, repeats = [], set(), 0
        for row, value in zip(table.rows, values, strict=True):
            seconds = (number(row.get(duration), comma_is_point=table.comma_is_point) or 0.0) * scale if duration else 0.0
            if value is None or value < 0 or seconds < 0:
                rejected.append((row.line, f"{energy} is {row.get(energy)[:40] or 'blank'}: no energy"))
            elif seconds and value * factor / seconds > MOST_NODE_WATTS:
                rejected.append((row.line, f"{value:g} in {seconds:g} s are {value * factor / seconds:.3g} W, which no node draws"))
            elif tuple(row.cells) in seen:
                repeats += 1
            else:
                seen.add(tuple(row.cells))
                load = Load("meter", energy, "other", "reported", f"column {energy}", steady(seconds, value * factor))
                drafts.append(Draft("", f"{file.stem} row {row.line}", (load,), "none"))
        notes = [Note("import-repeats", f"{file.name}: {repeats} rows repeat others word for word and count once")] if repeats else []
        return imported(FORMAT, file, drafts, rows=table.seen, rejected=rejected, notes=notes, wishes=self._wishes)


def _has_numbers(table: Table, column: str) -> bool:
    return any(quantity(row.get(column))[0] is not None for row in table.rows[:50])


def _without_header(first: str) -> str:
    return f"it has no header: say what its columns are with --mapping columns=NAME,NAME,… (its first line is {first!r})"


def _without_columns(first: str) -> str:
    return f"energy is not derivable: no column of power or energy in its first line {first!r}"
