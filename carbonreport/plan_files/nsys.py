"""Kernels out of Nsight Systems: `nsys stats -r cuda_gpu_trace --format csv`. Columns are found by their titles, which change between versions."""

import csv
import io
import re
from collections import Counter
from pathlib import Path

from carbonreport.plan.launches import Launch
from carbonreport.plan.table import PlanError

_UNITS = {"ns": 1e-9, "us": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0}
_BYTES = {"b": 1.0, "bytes": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9}
_WAY_OUT = "give the output of: nsys stats -r cuda_gpu_trace --format csv REPORT.nsys-rep"


def is_nsys(text: str) -> bool:
    """Whether a text has the header of that report."""
    return _header(text.splitlines()) is not None


def read_nsys(path: Path) -> list[Launch]:
    """Kernels of the device that ran most of them, in the order of their begins.

    Raises:
        PlanError: It is no such report, or has no kernels.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise PlanError(f"cannot read {path}: {error.strerror}; {_WAY_OUT}") from error
    except UnicodeDecodeError as error:
        raise PlanError(f"{path.name} is no UTF-8 text; {_WAY_OUT}") from error
    lines = text.splitlines()
    top = _header(lines)
    if top is None:
        raise PlanError(f"{path.name} has no line with the titles Start, Duration and Name; {_WAY_OUT}")
    rows = list(csv.reader(io.StringIO("\n".join(lines[top:]))))
    columns = _Columns(rows[0])
    found = []
    for number, cells in enumerate(rows[1:], top + 2):
        if len(cells) == len(rows[0]) and columns.text(cells, "GrdX"):
            try:
                found.append((columns.text(cells, "Device"), columns.launch(cells)))
            except ValueError as error:
                raise PlanError(f"{path.name}:{number}: {error}; {_WAY_OUT}") from error
    if not found:
        raise PlanError(f"{path.name} has no kernels; {_WAY_OUT}")
    device = Counter(name for name, _ in found).most_common(1)[0][0]
    return sorted((launch for name, launch in found if name == device), key=lambda launch: launch.start_s)


def _header(lines: list[str]) -> int | None:
    return next((i for i, line in enumerate(lines[:200]) if re.match(r'"?Start\b.*\bDuration\b.*\bName\b', line)), None)


class _Columns:
    """Titles with their units: Start (ns)."""

    def __init__(self, titles: list[str]) -> None:
        found = [re.fullmatch(r"\s*([^(]+?)\s*(?:\(([^)]*)\))?\s*", title) for title in titles]
        self._at = {match.group(1): i for i, match in enumerate(found) if match is not None}
        self._units = {match.group(1): (match.group(2) or "").lower() for match in found if match is not None}

    def text(self, cells: list[str], name: str) -> str:
        return cells[self._at[name]].strip() if name in self._at else ""

    def launch(self, cells: list[str]) -> Launch:
        grid, block = (tuple(self._whole(cells, f"{what}{axis}") for axis in "XYZ") for what in ("Grd", "Blk"))
        shared = round(sum(self._scaled(cells, name, _BYTES, 1e6) for name in ("StcSMem", "DymSMem")))
        start_s, seconds = (self._scaled(cells, name, _UNITS, 1e-9) for name in ("Start", "Duration"))
        return Launch(self.text(cells, "Name"), grid, block, shared, self._whole(cells, "Strm"), start_s, seconds)

    def _whole(self, cells: list[str], name: str) -> int:
        text = self.text(cells, name)
        return int(text.replace(",", "")) if text else 0

    def _scaled(self, cells: list[str], name: str, units: dict[str, float], usual: float) -> float:
        text = self.text(cells, name)
        return float(text.replace(",", "")) * units.get(self._units.get(name, ""), usual) if text else 0.0
