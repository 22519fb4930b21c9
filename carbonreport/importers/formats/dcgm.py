"""Text of dcgm-exporter and of other GPU exporters: one scrape, or scrapes one after another with their stamps."""

import re
from collections import defaultdict
from collections.abc import Mapping

from carbonreport.importers.cells import joules_from_kwh, number
from carbonreport.importers.curves import Curve, Reading
from carbonreport.importers.drafts import Draft, Load, imported
from carbonreport.importers.imported import Imported, Rejected
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.metrics import METRICS, Series, device_of, drafts_of
from carbonreport.importers.wishes import Wishes, wishes_of
from carbonreport.model.audit import agreed
from carbonreport.model.notes import Note

FORMAT = "dcgm"
_SAMPLE = re.compile(r"\s*([a-zA-Z_:][\w:]*)\s*\{(.*)\}\s*(\S+)(?:\s+(\d{10,16}))?\s*$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_OWN = ("DCGM_FI_", "nvidia_smi_", "nvidia_gpu_")
_MILLIS_PER_SECOND = 1000.0
_MOST_LIFETIME_JOULES = joules_from_kwh(100_000.0)  # a 1.4 kW board for eight years


def create(options: Mapping[str, str]) -> "Dcgm":
    """The importer of exporters' text."""
    return Dcgm(wishes_of(options))


def available() -> str | None:
    """Always usable."""
    return None


class Dcgm:
    """Reads lines such as DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-…"} 68.2."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    def recognises(self, file: LogFile) -> bool:
        """By a sample of a GPU exporter."""
        return any(line.lstrip().startswith(_OWN) and _SAMPLE.match(line) for line in file.head.splitlines())

    def read(self, file: LogFile) -> Imported:
        """Runs between stamped scrapes; of one scrape what the counters show since the driver was loaded."""
        rejected: list[Rejected] = []
        series, rows = _read(file.text, rejected)
        if not any(s.metric in METRICS for s in series):
            return self._refused(
                file, rows, rejected, "energy is not derivable: it has neither DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION nor a power"
            )
        stamped = [s for s in series if s.metric in METRICS and len({at_s for _, at_s, _ in s.samples} - {0.0}) > 1]
        if stamped:
            notes: list[Note] = []
            drafts, why_not = drafts_of(stamped, rejected, notes, named=file.stem)
            return imported(FORMAT, file, drafts, rows=rows, rejected=rejected, notes=notes, wishes=self._wishes, why_not=why_not or None)
        return self._lifetime(file, series, rows, rejected)

    def _lifetime(self, file: LogFile, series: list[Series], rows: int, rejected: list[Rejected]) -> Imported:
        """What each board's counter shows, once a board."""
        boards: dict[tuple[str, str], Load] = {}
        repeats = 0
        for s in series:
            metric = METRICS.get(s.metric)
            if metric is None or metric.quantity != "counter":
                continue
            line, _, value = max(s.samples, key=lambda sample: sample[2])
            joules = value * metric.factor
            key = device_of(s.labels)
            if not 0 < joules <= _MOST_LIFETIME_JOULES:
                rejected.append((line, f"counter of {joules:g} J: no board has used that"))
                continue
            repeats += (key in boards) + len(s.samples) - 1
            if key not in boards or boards[key].curve.total_joules < joules:
                boards[key] = Load(
                    " ".join(filter(None, key)) or "gpu",
                    s.labels.get("modelName", "GPU"),
                    "gpu",
                    "counter",
                    s.metric,
                    Curve((0.0, 0.0), (0.0, joules)),
                )
        if not boards:
            return self._refused(
                file,
                rows,
                rejected,
                "one scrape of power is one instant, from which no energy follows; scrape DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, or give a range query",
            )
        notes = [
            Note(
                "import-lifetime",
                f"{file.name}: one scrape; this is what the counters have shown since the driver was loaded, not the energy of a run",
            )
        ]
        if repeats:
            notes.append(
                Note(
                    "import-repeats",
                    f"{file.name}: {repeats} {agreed('[line repeats the counter of its board|lines repeat the counter of their board]', repeats)} (MIG slices, a second print): counted once",
                )
            )
        return imported(
            FORMAT,
            file,
            [Draft("", f"{file.stem} since the driver was loaded", tuple(boards.values()), "none")],
            rows=rows,
            rejected=rejected,
            notes=notes,
            wishes=self._wishes,
        )

    def _refused(self, file: LogFile, rows: int, rejected: list[Rejected], why: str) -> Imported:
        return imported(FORMAT, file, (), rows=rows, rejected=rejected, wishes=self._wishes, why_not=why)


def _read(text: str, rejected: list[Rejected]) -> tuple[list[Series], int]:
    """Series by metric and labels, and how many samples there were. Stamps are milliseconds, 0 where there are none."""
    samples: dict[tuple[str, str], list[Reading]] = defaultdict(list)
    labels: dict[tuple[str, str], dict[str, str]] = {}
    rows = 0
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip() or content.lstrip().startswith("#"):
            continue
        found = _SAMPLE.match(content)
        if found is None:
            continue
        rows += 1
        name, inner, value, stamp = found.groups()
        reading = number(value)
        if reading is None or reading < 0:
            if name in METRICS:
                rejected.append((line, f"{name} is {value}"))
            continue
        key = (name, inner)
        labels.setdefault(key, dict(_LABEL.findall(inner)))
        samples[key].append((line, float(stamp) / _MILLIS_PER_SECOND if stamp else 0.0, reading))
    return [Series(name, labels[name, inner], tuple(found)) for (name, inner), found in samples.items()], rows
