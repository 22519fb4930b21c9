"""A run that nobody measured, on two grids: python examples/estimate.py [FOLDER]."""

import sys
from pathlib import Path

from carbonreport.model.run import Place
from carbonreport.render.digits import shown
from carbonreport.workflows.charge import charge_records, load_records
from carbonreport.workflows.estimate import Job, estimate
from carbonreport.workflows.place import PlaceOptions


def main(folder: str = "runs") -> None:
    """Write an estimated record, then charge it in Germany and in Sweden."""
    job = Job("A100-SXM4-80GB", count=4, hours=12.4, mean_watts=None, start="2026-01-14T18:20+01:00")
    record = estimate(job, name="fine-tuning", kind="training", place=Place(), folder=Path(folder), options=PlaceOptions(zone="DE"))
    for zone in ("DE", "SE"):
        grams = charge_records(load_records([record]), PlaceOptions(zone=zone, pue="1.2")).footprint.grams
        print(f"{zone}: {shown(grams).sentence}")


if __name__ == "__main__":
    main(*sys.argv[1:])
