"""A measured series of PUE out of a CSV file with the columns time and pue."""

from itertools import pairwise
from pathlib import Path

from carbonreport.errors import BadPue
from carbonreport.model.pue import PueProfile
from carbonreport.series_file import first_column, normalised, read_lines, time_s

_WAY_OUT = "give the columns time,pue, with times like 2026-01-14T18:00Z"


def read_pue(path: Path) -> PueProfile:
    """The series of a file; each row lasts until the next one, the last as long as the one before. Its value is the mean over time.

    Raises:
        BadPue: A wrong header, or a value below 1, with file and line.
        BadSeries: The file cannot be read or has no rows.
        BadTime: A time without a zone.
    """
    delimiter, lines = read_lines(path, _WAY_OUT)
    words = normalised(lines[0][1])
    time, pue = first_column(words, "datetime", r"^(time|timestamp|start|date)\b"), first_column(words, r"\bpue\b")
    if time is None or pue is None:
        raise BadPue(f"{path.name}:1: no columns of time and PUE among {', '.join(lines[0][1])}; {_WAY_OUT}")
    rows = sorted(
        (time_s(cells[time], "utc" in words[time], f"{path.name}:{n}"), _ratio(cells[pue], delimiter, f"{path.name}:{n}"))
        for n, cells in lines[1:]
    )
    if len(rows) < 2:
        raise BadPue(f"{path.name} has one time only, so that nobody knows how long it lasts; give two rows or more")
    starts = [t for t, _ in rows]
    if any(b <= a for a, b in pairwise(starts)):
        raise BadPue(f"{path.name} has one time twice; keep one of the two")
    edges = (*starts, starts[-1] + starts[-1] - starts[-2])
    values = tuple(value for _, value in rows)
    lengths = [b - a for a, b in pairwise(edges)]
    mean = sum(v * s for v, s in zip(values, lengths, strict=True)) / sum(lengths)
    return PueProfile(mean, mean, mean, "reported", f"series {path.name}", True, edges_s=edges, values=values)


def _ratio(text: str, delimiter: str, where: str) -> float:
    number = text.replace(",", ".") if delimiter != "," else text
    try:
        value = float(number)
    except ValueError as error:
        raise BadPue(f"{where}: {text!r} is no PUE; {_WAY_OUT}") from error
    if not 1.0 <= value < 20.0:
        raise BadPue(f"{where}: PUE {value:g} is below 1 or not plausible; facility energy / IT energy")
    return value
