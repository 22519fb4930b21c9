"""CodeCarbon's emissions.csv and task files, 1.x to 3.3: cumulative rows once, its PUE taken out, its CO2 never used."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from carbonreport.importers.cells import joules_from_kwh, number
from carbonreport.importers.codecarbon_boards import boards_of
from carbonreport.importers.codecarbon_rows import PARTS, Entry, disagreement, loads_of, pue_of, rising_of
from carbonreport.importers.drafts import Draft, imported
from carbonreport.importers.imported import Imported, Rejected
from carbonreport.importers.limits import MOST_NODE_WATTS
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.moments import Moments, moments
from carbonreport.importers.tables import Cells, Row, Table, read_table
from carbonreport.importers.wishes import Wishes, wishes_of
from carbonreport.model.notes import Note

FORMAT = "codecarbon"
_MOST_WATTS = 16 * MOST_NODE_WATTS  # a row is one process of one machine; this is far above any
_COUNTRY = re.compile(r"[A-Z]{3}")  # stands where the short rows of 3.2.9 and 3.3.0 are still whole


def create(options: Mapping[str, str]) -> "CodeCarbon":
    """The importer of CodeCarbon's CSV files."""
    return CodeCarbon(wishes_of(options))


def available() -> str | None:
    """Always usable."""
    return None


class CodeCarbon:
    """Reads emissions.csv (one row a run or flush, cumulative) and emissions_<name>_<run>.csv (one row a task)."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    def recognises(self, file: LogFile) -> bool:
        """By the columns that every version has."""
        return read_table(file.head, _is_header) is not None

    def read(self, file: LogFile) -> Imported:
        """One run per run_id, or per task."""
        table = read_table(file.text, _is_header, keeps_short=True)
        if table is None:
            return Imported(FORMAT, (), 0, why_not="its header is not one of CodeCarbon's")
        rejected, notes = list(table.rejected), []
        stamps = moments([row.get("timestamp") for row in table.rows], zone=self._wishes.zone, date_order=self._wishes.date_order)
        has_totals = any(number(row.get("energy_consumed")) is not None for row in table.rows)
        entries = [e for i, row in enumerate(table.rows) if (e := self._entry(row, stamps, i, rejected, has_totals=has_totals)) is not None]
        if short := [e for e in entries if len(e.row.cells) < len(e.row.where)]:
            notes.append(
                Note(
                    "import-columns-shifted",
                    f"{file.name}: {len(short)} rows have fewer cells than the header (CodeCarbon 3.2.9 and 3.3.0); their energy is read, the rest is not",
                )
            )
        drafts = [_draft(runs, stamps) for runs in _by_run(entries).values()]
        notes += [*_told_of(file, table, entries), *_overlaps(file, drafts, entries)]
        return imported(FORMAT, file, drafts, rows=table.seen, rejected=rejected, notes=notes, wishes=self._wishes)

    def _entry(self, row: Row, stamps: Moments, i: int, rejected: list[Rejected], *, has_totals: bool) -> Entry | None:
        """A usable row. A blank total is a lower bound where every row is like that, and a torn row among others."""
        duration_s, total = number(row.get("duration")), number(row.get("energy_consumed"))
        parts = {part: kwh for part, _, _ in PARTS if (kwh := number(row.get(f"{part}_energy"))) is not None}
        kwh = total if total is not None else sum(parts.values()) if parts and not has_totals else None
        if len(row.cells) < len(row.where) and not _COUNTRY.fullmatch(row.get("country_iso_code")):
            rejected.append(
                (row.line, f"{len(row.cells)} cells where the header has {len(row.where)}, and its country is not where it belongs")
            )
        elif duration_s is None or duration_s < 0:
            rejected.append((row.line, "it has no duration"))
        elif kwh is None or kwh < 0 or any(value < 0 for value in parts.values()):
            rejected.append((row.line, "it has no energy" if kwh is None else "its energy is below 0"))
        elif stamps.reasons[i] and stamps.seconds[i] is None and row.get("timestamp"):
            rejected.append((row.line, stamps.reasons[i]))
        elif duration_s and joules_from_kwh(kwh) / duration_s > _MOST_WATTS:
            rejected.append(
                (row.line, f"{kwh:g} kWh in {duration_s:g} s are {joules_from_kwh(kwh) / duration_s:.3g} W, which no machine draws")
            )
        else:
            pue = self._wishes.pue or pue_of(row)
            return Entry(
                row, stamps.seconds[i], duration_s, joules_from_kwh(kwh) / pue, {p: joules_from_kwh(v) / pue for p, v in parts.items()}
            )
        return None


def _is_header(cells: Cells) -> bool:
    return {"timestamp", "project_name", "duration", "energy_consumed"} <= set(cells) and bool({"emissions", "country_name"} & set(cells))


def _by_run(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Rows of each run; a row without a run_id and a task is a run of its own."""
    runs: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        alone = entry.is_task or not entry.run_id
        key = f"{entry.run_id} {entry.row.get('task_name')} {entry.row.get('timestamp')} {entry.duration_s!r}" if alone else entry.run_id
        runs[key].append(entry)
    return runs


def _draft(entries: Sequence[Entry], stamps: Moments) -> Draft:
    """A run out of its rows, which are cumulative: the longest holds all."""
    rising = rising_of(entries)
    last = rising[-1]
    clock = stamps.clock if last.end_s is not None else "none"
    start_s = last.end_s - last.duration_s if last.end_s is not None else 0.0
    row = last.row
    is_whole = len(row.cells) >= len(row.where)
    loads = tuple(loads_of(rising, start_s, row, is_whole=is_whole))
    notes = []
    if number(row.get("energy_consumed")) is None:
        notes.append(
            Note("import-partial", f"line {row.line}: energy_consumed is blank; only {', '.join(last.parts)} is known, the rest is missing")
        )
    if why := disagreement(row, last):
        notes.append(Note("import-disagrees", f"line {row.line}: {why}"))
    if is_whole and last.parts.get("gpu") and (why := boards_of(row.get("gpu_model"), row.get("gpu_count"))[2]):
        notes.append(Note("import-disagrees", f"line {row.line}: {why}"))
    if (
        not last.parts.get("gpu")
        and number(row.get("gpu_count")) is None
        and "gpu_energy" in row.where
        and "tegra" in row.get("os").casefold()
    ):
        notes.append(Note("import-partial", f"line {row.line}: a GPU of a Jetson that CodeCarbon did not measure is missing"))
    facts = (
        {"cpu": row.get("cpu_model"), "python": row.get("python_version"), "codecarbon": row.get("codecarbon_version")} if is_whole else {}
    )
    name = row.get("task_name") or row.get("project_name")
    key = "" if not last.run_id else f"{last.run_id} {row.get('task_name')} {row.get('timestamp') if last.is_task else ''}"
    return Draft(key, name, loads, clock, start_s, start_s + last.duration_s, facts=facts, notes=tuple(notes))


def _told_of(file: LogFile, table: Table, entries: Sequence[Entry]) -> list[Note]:
    """What the rows of a file have in common that a reader must know."""
    notes = []
    pues = sorted({pue for e in entries if (pue := pue_of(e.row)) > 1})
    if pues:
        notes.append(
            Note(
                "import-pue-taken-out",
                f"{file.name}: CodeCarbon's energy holds a PUE of {', '.join(f'{p:g}' for p in pues)}; it was divided by it",
            )
        )
    countries = {(e.row.get("country_iso_code"), e.row.get("region")) for e in entries if len(e.row.cells) >= len(e.row.where)}
    if len(countries) > 1 or ("CAN", "quebec") in countries:
        seen = ", ".join(sorted("/".join(filter(None, pair)) or "unknown" for pair in countries))
        notes.append(
            Note(
                "import-place-ignored",
                f"{file.name}: CodeCarbon guessed the place as {seen} (Canada/quebec also after a failed look-up); neither it nor its CO2 is used",
            )
        )
    return notes


def _overlaps(file: LogFile, drafts: Sequence[Draft], entries: Sequence[Entry]) -> list[Note]:
    """Runs that counted one machine at the same time may have counted the same watts."""
    machines = defaultdict(list)
    for draft, run in zip(drafts, _by_run(entries).values(), strict=True):
        row = run[0].row
        if (
            row.get("tracking_mode") == "machine"
            and draft.start_s is not None
            and not run[0].is_task
            and draft.end_s is not None
            and draft.clock != "none"
        ):
            key = tuple(row.get(name) for name in ("cpu_model", "gpu_model", "gpu_count", "ram_total_size"))
            machines[key].append((draft.start_s, draft.end_s, sum(load.curve.total_joules for load in draft.loads)))
    notes = []
    for spans in machines.values():
        together = _together(sorted(spans))
        if together > 1:
            notes.append(
                Note(
                    "import-overlap",
                    f"{file.name}: {together} runs that count a whole machine overlap in time on equal hardware; if it was one machine, its energy is here up to {together} times",
                )
            )
    return notes


def _together(spans: Sequence[tuple[float, float, float]]) -> int:
    """The most runs at any one time, runs that only touch by a second aside."""
    edges = sorted(
        [(start + 1.0, 1) for start, end, _ in spans if end - start > 2] + [(end - 1.0, -1) for start, end, _ in spans if end - start > 2]
    )
    most = now = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most
