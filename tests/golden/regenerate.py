"""Write the golden files anew: python tests/golden/regenerate.py. Then look at them with your own eyes."""

import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from carbonreport.model.notes import Note
from carbonreport.model.run import RunRecord
from carbonreport.testing import make_record
from carbonreport.workflows.charge import charge_records
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.statement import write_statement

HERE = Path(__file__).parent
SUFFIXES = (".tex", ".md", ".json")


def paper() -> list[RunRecord]:
    """Two searches and the final training on one board with its host, and inference with items."""
    options = {"kinds": {"host": "cpu"}, "time_zone": "Europe/Berlin"}
    search = [
        make_record({"NVIDIA H200": 450.0, "host": 60.0}, 2, start=f"2026-01-1{d}T08:00Z", name="search", kind="search", **options)
        for d in (1, 2)
    ]
    final = make_record(
        {"NVIDIA H200": 610.0, "host": 80.0},
        9.5,
        start="2026-01-14T17:20Z",
        name="final",
        spans={"train": 0.9},
        items={"train": 3e6},
        **options,
    )
    served = make_record(
        {"NVIDIA H200": 320.0, "host": 50.0},
        1,
        start="2026-01-16T09:00Z",
        name="served",
        kind="inference",
        spans={"answer": 0.8},
        items={"answer": 12_500.0},
        **options,
    )
    return [*search, final, served]


def modest() -> list[RunRecord]:
    """A run on the processors alone, killed, under a hostile name."""
    run = make_record(
        {"host": 65.0},
        0.4,
        start="2026-07-01T12:00Z",
        name="100% _$&{}<script>\\input{x} \N{GRINNING FACE} ₂",
        method="model",
        gain=(0.5, 2.0),
        kinds={"host": "cpu"},
        time_zone="Asia/Kolkata",
    )
    return [replace(run, is_complete=False, notes=(Note("interrupted", "the run has no clean end"), Note("no-gpu", "no NVIDIA driver")))]


CASES = {"paper": paper, "modest": modest}


def rendered(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and text of every golden file, without the version."""
    rows = [
        f"2026-{month:02}-{day:02}T{hour:02}:00Z,{300 + 20 * (hour % 12)}" for month in (1, 7) for day in range(1, 29) for hour in range(24)
    ]
    for month, name in ((1, "january"), (7, "july")):
        (folder / f"{name}.csv").write_text("time,g_per_kwh\n" + "\n".join(row for row in rows if f"2026-{month:02}" in row) + "\n")
    for name, case in CASES.items():
        grid = folder / ("january.csv" if name == "paper" else "july.csv")
        charged = charge_records(case(), PlaceOptions(grid=str(grid), pue="1.30:1.35:1.40"), {})
        for path in write_statement(charged, [folder / f"{name}{suffix}" for suffix in SUFFIXES], style="plain", bib=None, force=True):
            yield path.name, re.sub(r"carbonreport \d+(?:\.\w+)*", "carbonreport VERSION", path.read_text(encoding="utf-8"))


def main() -> None:
    """Write them."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in rendered(Path(folder)):
            (HERE / name).write_text(text, encoding="utf-8")
            print(f"wrote {HERE / name}")


if __name__ == "__main__":
    main()
