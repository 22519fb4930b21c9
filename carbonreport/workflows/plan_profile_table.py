"""A profile as the table that `carbonreport plan solve` reads."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from carbonreport.control.hooks.follow import TOGETHER
from carbonreport.errors import OutputError
from carbonreport.plan_files.table_csv import WHOLE
from carbonreport.workflows.plan_profile import Profiled

_TITLES = ("kernel", "pass", "position", "count", "sm_mhz", "mem_mhz", "seconds", "joules", "joules_sd")


def table_text(profiled: Profiled, facts: Mapping[str, str]) -> str:
    """The table that `plan solve` reads: one row a phase and stage, and one of the whole step."""
    out = io.StringIO()
    for name, value in facts.items():
        out.write(f"# {name}: {' '.join(value.split())}\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_TITLES)
    groups = profiled.groups
    for pair, stage in profiled.stages:
        clocks = ["auto" if mhz is None else mhz for mhz in (pair.sm_mhz, pair.mem_mhz)]
        for group in groups:
            seconds, joules, joules_sd = group.cost(stage)
            at = " ".join(str(position) for position in group.positions)
            cells = [f"{seconds:.9g}", f"{joules:.9g}", f"{joules_sd:.3g}"]
            first = group.name.partition(TOGETHER)[0]
            writer.writerow([group.name, first.partition("/")[0], at, len(group.positions), *clocks, *cells])
        writer.writerow([WHOLE, "", 0, 1, *clocks, f"{stage.seconds:.9g}", f"{stage.joules:.9g}", ""])
    return out.getvalue()


def write_table(profiled: Profiled, path: Path, facts: Mapping[str, str]) -> None:
    """Write the table. Raises OutputError."""
    try:
        path.write_text(table_text(profiled, facts), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
