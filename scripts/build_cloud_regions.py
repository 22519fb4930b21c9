"""Write carbonreport/data/cloud_regions.csv from a table of cloud regions: python scripts/build_cloud_regions.py TABLE.csv.

The table is that of the Green Software Foundation's Real Time Cloud project (columns year, cloud-provider, cloud-region, em-zone-id,
location, power-usage-effectiveness); the PUE values in it are the operators' own. Facts only: provider, region, place, PUE and year.
"""

import csv
import sys
from pathlib import Path

OUT = Path(__file__).parents[1] / "carbonreport" / "data" / "cloud_regions.csv"
SHORT = {"Amazon Web Services": "aws", "Google Cloud": "gcp", "Microsoft Azure": "azure"}


def main(table: str) -> None:
    """Read the table, keep the regions with a PUE, write them in order."""
    with Path(table).open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["power-usage-effectiveness"]]
    kept = sorted(
        (SHORT[r["cloud-provider"]], r["cloud-region"], r["em-zone-id"], r["power-usage-effectiveness"], r["year"], r["location"].strip())
        for r in rows
    )
    with OUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("provider", "region", "zone", "pue", "year", "location"))
        writer.writerows(kept)
    print(f"{len(kept)} regions in {OUT}")


if __name__ == "__main__":
    main(*sys.argv[1:])
