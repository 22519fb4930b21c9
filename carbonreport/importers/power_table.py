"""A table of power readings as a run: units by the cell, devices told apart, energy over the real times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from carbonreport.importers.cells import WATTS, number, quantity
from carbonreport.importers.curves import Reading, come_in_bursts, curve_of_powers, curve_of_steps
from carbonreport.importers.drafts import Draft, Load, imported
from carbonreport.importers.headers import heading
from carbonreport.importers.imported import Imported, Rejected
from carbonreport.importers.limits import MOST_NODE_WATTS, limit_of
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.moments import Moments, moments
from carbonreport.importers.nvidia_power import power_method
from carbonreport.importers.power_roles import PowerColumn, Roles, roles_of
from carbonreport.importers.tables import Row, Table
from carbonreport.importers.wishes import Wishes
from carbonreport.model.notes import Note
from carbonreport.model.run import DeviceKind, Method

_MOST_NAMED = 12
_LEAST_FOR_RATE, _SLOW_SENSOR = 20, 0.34


@dataclass(frozen=True, slots=True)
class _Stamped:
    row: Row
    at_s: float


def read_power_table(format_name: str, file: LogFile, table: Table, wishes: Wishes, *, default_kind: DeviceKind = "other") -> Imported:
    """The run that a table of power readings tells."""
    roles = roles_of(table, wishes, default_kind=default_kind)
    if why := _lacks(table, roles, wishes):
        return imported(format_name, file, (), rows=table.seen, wishes=wishes, why_not=why)
    rejected = list(table.rejected)
    stamps = _stamps(table, roles, wishes)
    rows = []
    for row, at_s, why in zip(table.rows, stamps.seconds, stamps.reasons, strict=True):
        if at_s is None:
            rejected.append((row.line, why))
        else:
            rows.append(_Stamped(row, at_s))
    reader = _Reader(format_name, file, table, roles, wishes, rejected)
    loads = reader.loads(rows)
    notes = reader.notes()
    drafts = [Draft("", file.stem, tuple(loads), stamps.clock)] if loads else []
    why_not = reader.why_not or (stamps.reasons[0] if stamps.reasons and not rows else None)
    return imported(format_name, file, drafts, rows=table.seen, rejected=rejected, notes=notes, wishes=wishes, why_not=why_not)


def _lacks(table: Table, roles: Roles, wishes: Wishes) -> str:
    """What a table lacks for energy, in words; "" where it has all."""
    missing = [
        c for c in (*roles.time, *(p.column for p in roles.powers), *((wishes.device,) if wishes.device else ())) if c not in table.columns
    ]
    names = ", ".join(table.columns[:_MOST_NAMED]) + (", …" if len(table.columns) > _MOST_NAMED else "")
    if missing:
        return f"it has no column {missing[0]!r}; there are {names}"
    if not roles.powers:
        return f"energy is not derivable: no column of power or energy among {names}; utilisation is not power"
    if not roles.time and wishes.period_s is None:
        return f"energy is not derivable: no column of time among {names}; give --mapping time=COLUMN, or period_s=SECONDS between rows"
    if not table.rows:
        return "it has no data rows"
    return ""


def _stamps(table: Table, roles: Roles, wishes: Wishes) -> Moments:
    if not roles.time:  # rows hold for a period each; where they lie in time is not known
        return Moments(tuple(0.0 for _ in table.rows), "none", tuple("" for _ in table.rows))
    texts = [" ".join(row.get(name) for name in roles.time) for row in table.rows]
    factor = heading(roles.time[0]).seconds_per_count
    if factor != 1.0:
        texts = [text if (count := number(text)) is None else repr(count * factor) for text in texts]
    return moments(texts, zone=wishes.zone, date_order=wishes.date_order)


class _Reader:
    """Collects readings by device and makes curves of them."""

    def __init__(self, format_name: str, file: LogFile, table: Table, roles: Roles, wishes: Wishes, rejected: list[Rejected]) -> None:
        self._format, self._file, self._table, self._roles, self._wishes = format_name, file, table, roles, wishes
        self._rejected = rejected
        self._stray: list[int] = []
        self._is_unit_assumed = False
        self._gaps = self._twins = 0
        self._slow: list[tuple[str, float]] = []
        self.why_not: str | None = None

    def loads(self, rows: Sequence[_Stamped]) -> list[Load]:
        """One load a device, each power column on its own."""
        loads = []
        for power in self._roles.powers:
            series = self._series(rows, power)
            for key, (readings, first) in series.items():
                load = self._load(power, key, readings, first)
                if load is not None:
                    loads.append(load)
        return loads

    def notes(self) -> list[Note]:
        """What was assumed or left out."""
        name = self._file.name
        notes = []
        if self._is_unit_assumed:
            notes.append(Note("import-unit-assumed", f"{name}: neither header nor cells say the unit of the power; watts were assumed"))
        if self._stray:
            notes.append(
                Note(
                    "import-stray",
                    f"{name}: {len(self._stray)} cells hold a second line, which was left out; the first is line {self._stray[0]}",
                )
            )
        if self._twins:
            notes.append(
                Note(
                    "import-repeats",
                    f"{name}: {self._twins} rows repeat the reading of a device (MIG slices show their board's) and count once",
                )
            )
        if self._gaps:
            notes.append(Note("reading-gap", f"{name}: {self._gaps} pauses without a reading; nothing is counted inside them"))
        if self._slow:
            device, changes = min(self._slow, key=lambda pair: pair[1])
            notes.append(
                Note(
                    "import-oversampled",
                    f"{name}: {changes * 100:.0f} % of the readings of {device} differ from the one before; the sensor is slower than the log, and its many rows are no more evidence",
                )
            )
        if self._roles.left_out:
            notes.append(
                Note("import-repeats", f"{name}: {self._roles.left_out[0]} is the sum of the other columns and was not added to them")
            )
        return notes

    def _series(self, rows: Sequence[_Stamped], power: PowerColumn) -> Mapping[str, tuple[list[Reading], Row]]:
        """Readings by device, with the first row of each."""
        readings = [(row, watts) for row in rows if (watts := self._watts(row.row, power)) is not None]
        column = self._device_column(readings)
        series: dict[str, tuple[list[Reading], Row]] = {}
        for stamped, watts in readings:
            row = stamped.row
            board = row.get(column) if column else ""
            host = row.get(self._roles.host) if self._roles.host and not board.startswith("GPU-") else ""
            key = " ".join(filter(None, (host, board)))
            series.setdefault(key, ([], row))[0].append((row.line, stamped.at_s, watts))
        return series

    def _device_column(self, readings: Sequence[tuple[_Stamped, float]]) -> str:
        """The first column under which no moment has two values; the first of all where each has some; "" where there is no such column."""
        best: tuple[int, str] | None = None
        for column in self._roles.devices:
            seen: dict[tuple[str, str, float], float] = {}
            twice = 0
            for stamped, watts in readings:
                key = (stamped.row.get(self._roles.host), stamped.row.get(column), stamped.at_s)
                twice += seen.setdefault(key, watts) != watts
            if not twice:
                return column
            if best is None or twice < best[0]:
                best = (twice, column)
        return best[1] if best else ""

    def _watts(self, row: Row, power: PowerColumn) -> float | None:
        """Watts of a cell in its own unit, or else in the header's; a second line in the cell is left out."""
        text, _, stray = row.get(power.column).partition("\n")
        if stray:
            self._stray.append(row.line)
        value, said = quantity(text, comma_is_point=self._table.comma_is_point)
        if value is None:
            self._rejected.append((row.line, f"{power.column} is {text.strip()[:40] or 'blank'}: no power"))
            return None
        unit = said.casefold() or self._wishes.unit.casefold() or power.unit
        if unit not in WATTS:
            if said or unit:
                self._rejected.append((row.line, f"{power.column} is in {said or unit}, which is no unit of power"))
                return None
            self._is_unit_assumed = True
        return value * WATTS.get(unit, 1.0)

    def _load(self, power: PowerColumn, key: str, readings: Sequence[Reading], first: Row) -> Load | None:
        board = first.get(self._roles.board) if self._roles.board else ""
        limit = self._limit(power, board, first)
        device_id = "-".join(filter(None, (power.label, key))) or f"{power.kind}-0"
        if self._roles.time and not key and come_in_bursts([at_s for _, at_s, _ in readings]):
            self.why_not = (
                self.why_not
                or "its rows come in bunches, as those of several devices do, and no column tells them apart; log the uuid, or name a column with --mapping device=COLUMN"
            )
            return None
        if self._roles.time:
            read = curve_of_powers(readings, limit, named=power.column)
        else:
            read = curve_of_steps(readings, limit, self._wishes.period_s or 0.0, named=power.column)
        self._rejected += read.rejected
        if read.curve is None:
            self.why_not = self.why_not or read.why_not
            return None
        if len(read.curve.seconds) > _LEAST_FOR_RATE and read.curve.changes < _SLOW_SENSOR:
            self._slow.append((device_id, read.curve.changes))
        self._gaps, self._twins = self._gaps + len(read.curve.gaps), self._twins + read.curve.twins
        method: Method = power_method(board, power.column) if power.kind == "gpu" and self._format.startswith("nvidia") else "reported"
        name = board or power.label or {"gpu": "GPU", "cpu": "processor"}.get(power.kind, power.kind)
        return Load(device_id, name, power.kind, method, f"column {power.column}", read.curve)

    def _limit(self, power: PowerColumn, board: str, first: Row) -> float:
        if power.kind != "gpu":
            return MOST_NODE_WATTS
        said = number(first.get(self._roles.limit)) if self._roles.limit else None
        return max(said, limit_of(board) if board else said) if said is not None and said > 0 else limit_of(board)
