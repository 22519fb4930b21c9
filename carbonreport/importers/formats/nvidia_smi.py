"""nvidia-smi --query-gpu … --format=csv: any query, any order of columns, units in the header or the cells or nowhere."""

from collections.abc import Mapping

from carbonreport.importers.drafts import imported
from carbonreport.importers.headers import heading
from carbonreport.importers.imported import Imported
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.power_table import read_power_table
from carbonreport.importers.tables import Cells, read_table
from carbonreport.importers.wishes import Wishes, wishes_of

FORMAT = "nvidia-smi"
# Names that only nvidia-smi gives; one of them is enough.
_OWN = {
    "power.draw",
    "power.draw.instant",
    "power.draw.average",
    "utilization.gpu",
    "utilization.memory",
    "memory.used",
    "memory.total",
    "memory.free",
    "temperature.gpu",
    "pci.bus_id",
    "driver_version",
    "clocks.sm",
    "clocks.gr",
    "clocks.mem",
    "clocks.current.sm",
    "pstate",
    "power.limit",
    "enforced.power.limit",
}


def create(options: Mapping[str, str]) -> "NvidiaSmi":
    """The importer of nvidia-smi's CSV."""
    return NvidiaSmi(wishes_of(options))


def available() -> str | None:
    """Always usable."""
    return None


class NvidiaSmi:
    """Reads a query log; each board is a device by its UUID, bus id or index."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    def recognises(self, file: LogFile) -> bool:
        """By the names of its queries."""
        return _is_picture(file) or read_table(file.head, _is_header) is not None or _is_header(self._wishes.columns)

    def read(self, file: LogFile) -> Imported:
        """One run of all boards."""
        if _is_picture(file):
            why = "the table that nvidia-smi prints for people shows one moment, from which no energy follows; log with --query-gpu=timestamp,uuid,power.draw --format=csv -l 1"
            return imported(FORMAT, file, (), rows=0, wishes=self._wishes, why_not=why)
        table = read_table(file.text, _is_header, columns=self._wishes.columns)
        if table is None:
            return Imported(FORMAT, (), 0, why_not="it has no header of nvidia-smi")
        return read_power_table(FORMAT, file, table, self._wishes, default_kind="gpu")


def _is_picture(file: LogFile) -> bool:
    """Whether it is the box that nvidia-smi prints for people."""
    return "| NVIDIA-SMI" in file.head


def _is_header(cells: Cells) -> bool:
    return any(heading(cell).name in _OWN for cell in cells)
