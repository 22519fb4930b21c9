"""experiment-impact-tracker's data.json: JSON lines of draws in watts; what is attributable to the experiment, without a PUE."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from carbonreport.importers.curves import Curve
from carbonreport.importers.drafts import Draft, Load, imported
from carbonreport.importers.imported import Imported, Rejected
from carbonreport.importers.json_lines import first_object, objects, real
from carbonreport.importers.limits import MOST_NODE_WATTS
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.wishes import Wishes, wishes_of
from carbonreport.model.notes import Note
from carbonreport.model.run import DeviceKind

FORMAT = "experiment-impact-tracker"
# Part, device kind, attributable draw, and the whole machine's draw where that is missing.
_DRAWS: tuple[tuple[str, DeviceKind, str, str], ...] = (
    ("cpu", "cpu", "rapl_estimated_attributable_power_draw", "rapl_power_draw_absolute"),
    ("gpu", "gpu", "nvidia_estimated_attributable_power_draw", "nvidia_draw_absolute"),
)

Sample = tuple[int, float, dict[str, Any]]


def create(options: Mapping[str, str]) -> "ImpactTracker":
    """The importer of experiment-impact-tracker."""
    return ImpactTracker(wishes_of(options))


def available() -> str | None:
    """Always usable."""
    return None


class ImpactTracker:
    """Reads its samples; info.pkl beside them is a pickle and is never opened."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    def recognises(self, file: LogFile) -> bool:
        """By its keys."""
        first = first_object(file.head)
        return "timestamp" in first and bool(
            {"process_ids", "disk_write_speed", "cpu_time_seconds", *(key for draw in _DRAWS for key in draw[2:])} & set(first)
        )

    def read(self, file: LogFile) -> Imported:
        """One run; each draw holds until the next sample."""
        rejected: list[Rejected] = []
        samples: list[Sample] = []
        for line, row in objects(file.text, rejected):
            at_s = real(row.get("timestamp"))
            if at_s is None or at_s < 1e8:
                rejected.append((line, "it has no timestamp"))
            else:
                samples.append((line, at_s, row))
        seen = len(samples) + len(rejected)
        samples = _once(sorted(samples, key=lambda s: s[1]))
        loads, absolute = [], []
        for part, kind, own, whole in _DRAWS:
            key = own if any(real(row.get(own)) is not None for _, _, row in samples) else whole
            curve = _curve(samples, key, rejected)
            if curve is not None:
                loads.append(Load(part, f"{part.upper()} as experiment-impact-tracker attributes it", kind, "reported", key, curve))
                absolute += [part] if key == whole else []
        notes = [Note("import-partial", f"{file.name}: what the last sample drew after it is not known")]
        if absolute:
            notes.append(
                Note(
                    "import-node-shared",
                    f"{file.name}: the draw of {', '.join(absolute)} is the whole machine's, not the experiment's alone",
                )
            )
        drafts = [Draft("", file.stem, tuple(loads), "utc", samples[0][1], samples[-1][1], kind="training")] if loads else []
        why_not = None if loads else "energy is not derivable: it has no power draw of RAPL or nvidia-smi at two times or more"
        return imported(
            FORMAT, file, drafts, rows=seen, rejected=rejected, notes=notes if loads else (), wishes=self._wishes, why_not=why_not
        )


def _once(samples: list[Sample]) -> list[Sample]:
    """Samples without those that repeat a moment."""
    return [s for i, s in enumerate(samples) if i == 0 or samples[i - 1][1] < s[1]]


def _curve(samples: list[Sample], key: str, rejected: list[Rejected]) -> Curve | None:
    """Cumulative energy of a draw that holds until the next sample, as the tool itself adds it up."""
    known = []
    for line, at_s, row in samples:
        watts = real(row.get(key))
        if watts is not None and 0 <= watts <= MOST_NODE_WATTS:
            known.append((at_s, watts))
        elif key in row:
            rejected.append((line, f"{key} is {str(row[key])[:40]}"))
    if len(known) < 2:
        return None
    joules = [0.0]
    for (a_s, watts), (b_s, _) in pairwise(known):
        joules.append(joules[-1] + watts * (b_s - a_s))
    return Curve(tuple(at_s for at_s, _ in known), tuple(joules))
