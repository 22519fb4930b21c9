"""What a finished run says on standard error: three lines, and the next command to type."""

from pathlib import Path

from carbonreport.render.digits import duration, shown
from carbonreport.workflows.charge import charge_records, load_records
from carbonreport.workflows.place import PlaceOptions


def summary_lines(record: Path, options: PlaceOptions) -> list[str]:
    """Energy, emissions, record and next command of one run.

    Raises:
        CarbonreportError: The record or the place cannot be used.
    """
    charged = charge_records(load_records([record]), options)
    footprint = charged.footprint
    energy, grams = shown(footprint.facility_joules), shown(footprint.grams)
    run = charged.runs[0].run
    place = footprint.grids[0].zone
    notes = [note for note in footprint.notes if note.slug in _WORTH_A_LINE]
    return [
        f"carbonreport: {run.name}: {energy.sentence} at the facility ({footprint.it_joules.origin}), {grams.sentence} ({place}), {duration(run.duration_s)}",
        *[f"carbonreport: {note.slug}: {note.text}" for note in notes],
        f"carbonreport: record {record}",
        f"carbonreport: next: carbonreport statement {record} -o energy.tex",
    ]


_WORTH_A_LINE = {"zone-unknown", "zone-guessed", "pue-assumed", "tracer-degraded", "device-lost", "counter-reset"}
