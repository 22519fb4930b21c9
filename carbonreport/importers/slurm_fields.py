"""What single fields of sacct say: pure functions and tables, for one row or for columns of a million.

Facts from Slurm's own source (SchedMD/slurm 284c3b95): ConsumedEnergy has decimal suffixes (print.c, divisor 1000), memory binary ones;
unset numbers are NO_VAL64 or INFINITE64; AllocTRES has no fixed order and may name GPUs untyped, typed, or both for the same boards.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from carbonreport.importers.cells import is_missing
from carbonreport.importers.moments import local_to_utc, moment

NO_VALUES = frozenset({18446744073709551614, 18446744073709551615, 18446744073709551613, 4294967294, 4294967295})
MOST_JOULES = 1e15  # 280 GWh: above, the number is a marker or a counter that fell below zero
NOTHING = frozenset({"", "0", "unknown", "none", "n/a", "na", "null", "(null)", "invalid", "-", "--"})
SUFFIXES: Mapping[str, float] = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}

STATES: Mapping[str, str] = {
    "BF": "BOOT_FAIL",
    "CA": "CANCELLED",
    "CD": "COMPLETED",
    "CG": "COMPLETING",
    "DL": "DEADLINE",
    "F": "FAILED",
    "NF": "NODE_FAIL",
    "OOM": "OUT_OF_MEMORY",
    "PD": "PENDING",
    "PR": "PREEMPTED",
    "R": "RUNNING",
    "RQ": "REQUEUED",
    "RS": "RESIZING",
    "RV": "REVOKED",
    "S": "SUSPENDED",
    "TO": "TIMEOUT",
}
KNOWN_STATES = frozenset(STATES.values())
NOT_STARTED = frozenset({"PENDING", "REVOKED"})
STILL_THERE = frozenset({"RUNNING", "SUSPENDED", "COMPLETING", "RESIZING"})
LOST = frozenset({"BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REQUEUED", "TIMEOUT"})

# Integer ids in raw dumps; those from 1001 on are given by the site.
TRES_IDS: Mapping[str, str] = {
    "1": "cpu",
    "2": "mem",
    "3": "energy",
    "4": "node",
    "5": "billing",
    "6": "fs/disk",
    "7": "vmem",
    "8": "pages",
}

_MOST_DIGITS = 40
_ELAPSED = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)")
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)", re.IGNORECASE)
_ROUNDED = re.compile(r"[\d.]+[eE][+-]?\d+")  # as a spreadsheet shows POSIX seconds, hours of them gone
_CUT = re.compile(r"\+$")


def elapsed_seconds(text: str) -> float | None:
    """Seconds of Elapsed ("3-00:00:00", "02:19:48", "00:47.734") or ElapsedRaw ("2102"); None where there are none."""
    text = text.strip()[:_MOST_DIGITS]
    if text.isdecimal():
        value = int(text)
        return None if value in NO_VALUES else float(value)
    found = _ELAPSED.fullmatch(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (float(part) if part else 0.0 for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def joules(text: str) -> float | None:
    """Joules of ConsumedEnergyRaw ("20543125") or ConsumedEnergy ("4.58M"); None where nothing was measured: blank, 0, NO_VAL64."""
    text = text.strip()[:_MOST_DIGITS]
    if text.casefold() in NOTHING:
        return None
    found = _NUMBER.fullmatch(text)
    if found is None or (text.isdecimal() and int(text) in NO_VALUES):
        return None
    value = float(found.group(1)) * SUFFIXES[found.group(2).upper()]
    return value if 0 < value <= MOST_JOULES else None


def tres(text: str) -> dict[str, str]:
    """Values by name of "billing=32,cpu=32,energy=2442,gres/gpu:a100=4,node=1"; integer ids are named."""
    pairs = (part.partition("=") for part in text.split(","))
    return {TRES_IDS.get(name.strip(), name.strip()): value.strip() for name, sign, value in pairs if sign}


def count(text: str) -> int | None:
    """A whole number such as NNodes; None where there is none."""
    text = text.strip()[:_MOST_DIGITS]
    if not text.isdecimal() or int(text) in NO_VALUES:
        return None
    return int(text)


def gpus(resources: Mapping[str, str]) -> dict[str, int]:
    """Allocated GPUs by type, "" where only their number is said. Typed and untyped entries are the same boards and never added."""
    untyped = count(resources.get("gres/gpu", ""))
    typed = {name.removeprefix("gres/gpu:"): n for name, text in resources.items() if name.startswith("gres/gpu:") and (n := count(text))}
    if untyped is None or sum(typed.values()) == untyped:
        return typed
    return {"": untyped} if untyped else {}


def state(text: str) -> str:
    """A state in full: "CANCELLED by 1000", "CANCELLED+" and "CA" are CANCELLED; what Slurm does not know stays as it is."""
    word = text.strip().partition(" ")[0].rstrip("+").upper()
    if word in STATES:
        return STATES[word]
    if word in KNOWN_STATES or not text.strip().endswith("+"):
        return word
    return next((known for known in sorted(KNOWN_STATES) if known.startswith(word)), word)


def is_step(job_id: str) -> bool:
    """Whether an id is of a step, "123.0", "123.batch", "123.ex+", not of a job."""
    return "." in job_id


def is_unexpanded(job_id: str) -> bool:
    """Whether an id stands for several tasks of an array that have not begun: "123_[1-3,7]"."""
    return "_[" in job_id


def is_cut(job_id: str) -> bool:
    """Whether a fixed width has cut an id before its step: "16290213_1+"; "123+0" is a part of a heterogeneous job."""
    return bool(_CUT.search(job_id.partition(".")[0])) and "." not in job_id


@dataclass(frozen=True, slots=True)
class Stamp:
    """Submit, Start or End.

    Attributes:
        seconds: POSIX, or of a local clock as if it were UTC; None where there is none. [s]
        is_local: Whether it names no zone.
        why: Why it cannot be read, "" where it can or there is none.
    """

    seconds: float | None
    is_local: bool = False
    why: str = ""

    def utc(self, zone: ZoneInfo | None) -> float | None:
        """POSIX seconds; of a local clock without a zone its own. [s]"""
        if self.seconds is None or not self.is_local or zone is None:
            return self.seconds
        return local_to_utc(self.seconds, zone)[0]


def stamp(text: str, date_order: str = "") -> Stamp:
    """One of sacct's times; "Unknown", "None" and "NA" are none.

    Args:
        text: As written.
        date_order: "dmy" or "mdy" for dates that a spreadsheet wrote.
    """
    if text.strip().casefold() in NOTHING or is_missing(text):
        return Stamp(None)
    if _ROUNDED.fullmatch(text.strip()):
        return Stamp(None, why=f"its time {text.strip()[:40]!r} cannot be read")
    seconds, clock, why = moment(text, date_order)
    return Stamp(seconds, clock == "local", why)


def period(start_s: float, end_s: float, length_s: float, zone: ZoneInfo) -> tuple[float, float] | None:
    """POSIX start and end of local stamps; in the hour that comes twice, those that fit the length. None where several do, or a stamp never was."""
    pairs = [(a, b) for a in _either(start_s, zone) for b in _either(end_s, zone) if b >= a]
    fits = sorted(pairs, key=lambda pair: abs(pair[1] - pair[0] - length_s))
    if not fits or (len(fits) > 1 and abs(_misfit(fits[0], length_s) - _misfit(fits[1], length_s)) < 1.0):
        return None
    return fits[0]


def _misfit(pair: tuple[float, float], length_s: float) -> float:
    return abs(pair[1] - pair[0] - length_s)


def _either(local_s: float, zone: ZoneInfo) -> list[float]:
    """The one or two POSIX seconds of a local stamp; none where the clocks skipped it."""
    at_s, _ = local_to_utc(local_s, zone)
    if at_s is not None:
        return [at_s]
    first = [local_s - offset for offset in _offsets_around(local_s, zone)]
    return [s for s in first if _local(s, zone) == round(local_s)]


def _offsets_around(local_s: float, zone: ZoneInfo) -> set[float]:
    return {_local(local_s + shift, zone) - round(local_s + shift) for shift in (-86400.0, 86400.0)}


def _local(posix_s: float, zone: ZoneInfo) -> int:
    there = datetime.fromtimestamp(posix_s, zone)
    offset = there.utcoffset()
    return round(posix_s) + (round(offset.total_seconds()) if offset is not None else 0)
