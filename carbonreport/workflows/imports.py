"""Foreign logs: which importer knows a file, and its runs."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from carbonreport.errors import BadTime, CarbonreportError, RecordError
from carbonreport.grid.zones import time_zone_of
from carbonreport.importers.imported import Imported, Importer, kind_in_words
from carbonreport.importers.log_file import LogFile, UnknownLog, open_log
from carbonreport.importers.moments import moments
from carbonreport.importers.wishes import zone_named
from carbonreport.model.run import RunRecord
from carbonreport.plugins import load as load_plugin
from carbonreport.plugins import names
from carbonreport.store import load
from carbonreport.store.writer import new_record_path, save
from carbonreport.workflows.place import PlaceOptions, recording_place, site_of

_LAST = "csv"  # takes any table, so it is asked when nobody else knows a file
_RECORD_FIELD = b'"carbonreport"'


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody says of the files.

    Attributes:
        format: Name of the importer, or None to tell it from the content.
        options: For the importer: time_zone and the keys of --mapping.
        start: When runs without a date began, ISO 8601, or None.
    """

    format: str | None = None
    options: Mapping[str, str] | None = None
    start: str | None = None


def import_file(path: Path, asked: Asked = Asked()) -> Imported:
    """What a file holds.

    Raises:
        RecordError: It cannot be read, or no importer knows it.
        CarbonreportError: An unknown format, time zone or mapping.
    """
    options = dict(asked.options or {})
    file = open_log(path)
    if _RECORD_FIELD in file.content[:4096].split(b"\n", 1)[0]:
        raise RecordError(f"{path} is a record of carbonreport already; show, statement and when --like take it as it is")
    found = _importer(file, path, asked.format, options).read(file)
    return found if asked.start is None else _dated(found, _start_s(asked.start, options.get("time_zone")))


def _importer(file: LogFile, path: Path, format_name: str | None, options: Mapping[str, str]) -> Importer:
    if format_name is not None:
        chosen: Importer = load_plugin("importer", format_name.replace("-", "_"), options)
        return chosen
    for name in (*(n for n in names("importer") if n != _LAST), _LAST):
        importer: Importer = load_plugin("importer", name, options)
        if importer.recognises(file):
            return importer
    raise UnknownLog(f"{path} is of no format that is known here: it is {_first_words(file)}; there are {', '.join(names('importer'))}")


def _first_words(file: LogFile) -> str:
    first = next((line for line in file.head.splitlines() if line.strip()), "")
    return f"text that begins with {first.strip()[:40]!r}" if first else "empty"


def _start_s(text: str, time_zone: str | None) -> float:
    """POSIX seconds of a start as somebody typed it.

    Raises:
        BadTime: It cannot be read, has no zone, or does not exist or comes twice there.
    """
    read = moments([text], zone=zone_named(time_zone) if time_zone else None)
    start_s = read.seconds[0]
    if start_s is None or read.clock != "utc":
        why = read.reasons[0] or "it has no time zone"
        raise BadTime(f"--start {text!r}: {why}; write it like 2026-01-14T18:20+01:00")
    return start_s


def _dated(found: Imported, start_s: float) -> Imported:
    """Runs without a date, the first of them at a start. What a counter has shown since boot has no length and stays without one."""
    lasting = [run for run in found.undated if run.duration_s > 0]
    if not lasting:
        return found
    shift_s = start_s - min(run.started_s for run in lasting)
    notes = tuple(note for note in found.notes if note.slug != "import-undated")
    dated = tuple(replace(run, started_s=run.started_s + shift_s) for run in lasting)
    return replace(
        found, runs=(*found.runs, *dated), undated=tuple(r for r in found.undated if r.duration_s <= 0), notes=notes, is_local=False
    )


def save_runs(found: Imported, folder: Path) -> list[Path]:
    """Write the runs as records; those without a date cannot be.

    Raises:
        OutputError: The folder cannot be written.
    """
    return [save(run, new_record_path(folder, run.name, run.started_s, run.id.rpartition("-")[2])) for run in found.runs]


def runs_of(path: str | Path, options: PlaceOptions | None = None, environ: Mapping[str, str] = os.environ) -> Sequence[RunRecord]:
    """The runs of a record, or of any log that an importer knows.

    Args:
        path: A record, or a foreign log.
        options: The place, whose zone or site file dates local times.
        environ: Environment variables.

    Raises:
        RecordError: It cannot be read, or holds no energy, or does not say when it was.
    """
    path = Path(path)
    try:
        return [load(path)]
    except RecordError as error:
        if _is_own_or_none(path):
            raise
        try:
            file = open_log(path)
            importer = _importer(file, path, None, {})
        except UnknownLog as unknown:
            raise error from unknown
        zone = _time_zone(options or PlaceOptions(), environ)
        if zone is not None:
            importer = _importer(file, path, None, {"time_zone": zone})
        return _charged_runs(path, importer.read(file))


def _charged_runs(path: Path, found: Imported) -> Sequence[RunRecord]:
    """Runs that can be charged: refused where there is none, with the way out."""
    if found.runs:
        return found.runs
    if found.why_not is not None:
        raise RecordError(f"{path}, {kind_in_words(found.format)}: {found.why_not}")
    if found.is_local:
        raise RecordError(f"{path}: its times are local and name no time zone; give --zone of the place where it ran, such as --zone DE")
    raise RecordError(f"{path}: it does not say when it was; carbonreport import {path} --start … --out runs makes a record of it")


def _is_own_or_none(path: Path) -> bool:
    """Whether a file is a record, though a damaged one, or nothing that could be a log."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError:
        return True
    return not head.strip() or _RECORD_FIELD in head.split(b"\n", 1)[0]


def _time_zone(options: PlaceOptions, environ: Mapping[str, str]) -> str | None:
    """The time zone of the place that somebody named: of its site file, or of its grid zone."""
    site = site_of(options, environ, Path.cwd())
    said = recording_place(options, site, environ, None)
    return (site.time_zone if site is not None else None) or (time_zone_of(said.zone) if said.zone else None)


def mapping_of(pairs: Sequence[str]) -> dict[str, str]:
    """Options out of KEY=VALUE.

    Raises:
        CarbonreportError: One is not of that form.
    """
    options = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key.strip():
            raise CarbonreportError(f"--mapping {pair}: write KEY=VALUE, such as unit=mW or time=timestamp")
        options[key.strip().casefold()] = value
    return options
