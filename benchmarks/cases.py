"""Every real file of a folder of cases with its right value: what the importers make of it, or why they refuse.

    python benchmarks/cases.py RAW

RAW holds cases/INDEX.csv with the columns file, right_value, right_unit and right_what. Files whose meaning nobody can read out of them
(no header, a wrong unit in the header, no times) are refused first, and read again with what their author would say by --mapping.
"""

import csv
import sys
from collections import Counter
from pathlib import Path

from carbonreport.errors import CarbonreportError
from carbonreport.units import kwh
from carbonreport.workflows.imports import Asked, import_file

GOAL = 1e-3

# What the authors of these files would say; without it each of them is refused.
SAID = {
    "nvidia_smi_csv/autoscientists_headerless_epoch5s.log": {"columns": "time,util,power,used,total"},
    "eco2ai/dbjoules_kwh_header_is_J.csv": {"unit": "J"},
    "power_other/jetson_gpu_power_w_is_mW.csv": {"unit": "mW"},
    "sacct/reportseff_custom_delimiter_energy.txt": {
        "columns": "AdminComment,AllocCPUS,Elapsed,JobID,JobIDRaw,MaxRSS,NNodes,NTasks,ReqMem,State,TRESUsageOutAve,Timelimit,TotalCPU"
    },
}


def outcome(path, options):
    """kWh or None, and the reason where there is none."""
    try:
        found = import_file(path, Asked(options=options))
    except CarbonreportError as error:
        return None, str(error), "-"
    joules = found.it_joules
    return (None if joules is None else kwh(joules)), found.why_not or "", found.format


def judged(ours, why, right):
    """ "right", "refused" or "wrong" and what to print."""
    if ours is None:
        return ("refused" if why else "wrong"), why
    if right is None:
        return "wrong", f"{ours:.9g} kWh, where no energy is derivable"
    deviation = ours / right - 1 if right else float("inf")
    return ("right" if abs(deviation) <= GOAL else "wrong"), f"{ours:.9g} kWh, right {right:.9g}, {deviation * 100:+.4f} %"


def main(raw):
    folder = Path(raw) / "cases"
    with (folder / "INDEX.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    counts = Counter()
    for row in rows:
        is_energy = row["right_unit"] == "kWh" and row["right_value"] not in ("", "0")
        right = float(row["right_value"]) if is_energy else None
        tries = [{}] + ([SAID[row["file"]]] if row["file"] in SAID else [])
        for options in tries:
            ours, why, format_name = outcome(folder / row["file"], options)
            verdict, words = judged(ours, why, right)
            counts[verdict] += options is tries[0] or verdict == "wrong"
            said = f" with {options}" if options else ""
            print(f"{verdict:8} {row['file']:62} {format_name:14} {words}{said}")
    print(f"{len(rows)} files: " + ", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items())))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
