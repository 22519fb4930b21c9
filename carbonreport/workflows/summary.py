"""What a finished run says on standard error: three lines, and the next command to type."""

from pathlib import Path

from carbonreport.model.footprint import Footprint
from carbonreport.render.digits import duration, shown
from carbonreport.render.setting import is_unread
from carbonreport.render.words import shortened
from carbonreport.workflows.charge import charge_records, load_records
from carbonreport.workflows.place import PlaceOptions


def summary_lines(record: Path, options: PlaceOptions, code: int = 0) -> list[str]:
    """Energy, emissions, record and next command of one run.

    Args:
        record: Its file.
        options: Where to charge it.
        code: Exit code of its command; another than 0 is said, for the record counts all the same.

    Raises:
        CarbonreportError: The record or the place cannot be used.
    """
    charged = charge_records(load_records([record]), options)
    footprint, run = charged.footprint, charged.runs[0].run
    notes = [note for note in footprint.notes if note.slug in _WORTH_A_LINE]
    return [
        f"carbonreport: {shortened(run.name)}: {_numbers(footprint)}, {duration(run.duration_s)}",
        *(
            [f"carbonreport: the command ended with exit code {code}; its record counts as {run.kind}, --kind failed would say more"]
            if code
            else []
        ),
        *[f"carbonreport: {note.slug}: {note.text}{_WORTH_A_LINE[note.slug]}" for note in notes],
        f"carbonreport: record {record}",
        f"carbonreport: next: carbonreport statement {record} -o energy.tex",
    ]


def _numbers(footprint: Footprint) -> str:
    if is_unread(footprint):
        return "no energy could be read"
    energy, grams = shown(footprint.facility_joules), shown(footprint.grams)
    return f"{energy.with_aside(footprint.it_joules.origin)} at the facility, {grams.with_aside(footprint.grids[0].zone)}"


# Slug -> what its author can do about it.
_WORTH_A_LINE = {
    "boards-unused": "",
    "shared-board": "",
    "split-refused": "",
    "zone-unknown": "; give --zone to settle it",
    "zone-guessed": "; give --zone to settle it",
    "pue-assumed": "; give --pue, or --pue desktop where there is no facility",
    "cap-refused": "",
    "cap-not-held": "",
    "cap-lower-elsewhere": "",
    "cap-unproven": "",
    "cap-without-effect": "",
    "knobs-changed-by-others": "",
    "knobs-journal-lost": "",
    "knobs-not-restored": "",
    "tracer-degraded": "",
    "device-lost": "",
    "counter-reset": "",
    "interrupted": "",
    "no-gpu": "",
    "host-unreadable": "",
}
