"""The lines of carbontracker's logs, taken apart: version, PUE, components, epochs, consumption blocks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from carbonreport.importers.imported import Rejected

_STAMPED = re.compile(r"(\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}) - (?:CarbonTracker: )?(.*)")
_VERSION = re.compile(r"carbontracker version (\S+)")
_PUE = re.compile(r"PUE coefficient of (\d+(?:\.\d+)?)")
_COMPONENTS = re.compile(r"(\w+) with device\(s\) (.*?)(?=\.(?: \w+ with device\(s\)|$))")
_EPOCH = re.compile(r"Epoch (\d+):")
_DURATION = re.compile(r"Duration: (-?)(\d+):(\d{2}):(\d{2}(?:\.\d+)?)")
_POWER = re.compile(r"Average power usage \(W\) for (\w+): (.*)")
_BLOCK = re.compile(r"(Actual|Predicted) consumption for (\d+) epoch\(s\):")
_TIME = re.compile(r"\s*Time:\s+(-?)(\d+):(\d{2}):(\d{2}(?:\.\d+)?)")
_ENERGY = re.compile(r"\s*Energy:\s+(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?) kWh")
_LEVEL = re.compile(r"(?:of|intensity during training was) (\d+(?:\.\d+)?) gCO2(?:eq)?/kWh")


@dataclass(slots=True)
class Epoch:
    """One epoch of a standard log.

    Attributes:
        line: Where it begins.
        stamp: When it ended, local.
        duration_s: How long it took, or None. [s]
        watts: Mean power by component, one value a device as far as the version writes them; None where it had no sample.
    """

    line: int
    stamp: str
    duration_s: float | None = None
    watts: dict[str, list[float] | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of consumption: actual or predicted."""

    line: int
    stamp: str
    is_actual: bool
    epochs: int
    seconds: float | None
    kwh: float | None


@dataclass(slots=True)
class Words:
    """Everything that a log says."""

    version: str = ""
    pue: float | None = None
    devices: dict[str, int] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    levels: list[float] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    is_interrupted: bool = False
    has_traceback: bool = False

    @property
    def major(self) -> int | None:
        """First number of the version, or None."""
        first = self.version.partition(".")[0]
        return int(first) if first.isdecimal() else None


def words_of(text: str) -> Words:
    """Read a log, standard or output, or what a notebook printed."""
    words = Words()
    lines = _joined(text.split("\n"))
    stamp = ""
    for i, (number, line) in enumerate(lines):
        found = _STAMPED.match(line)
        stamp, said = (found.group(1), found.group(2)) if found else (stamp, line)
        _take(words, number, stamp, said, [after for _, after in lines[i + 1 : i + 4]])
    return words


def _take(words: Words, number: int, stamp: str, said: str, after: Sequence[str]) -> None:
    if found := _VERSION.search(said):
        words.version = found.group(1)
    elif found := _PUE.search(said):
        words.pue = _pue(found.group(1))
    elif "components were found" in said:
        for kind, names in _COMPONENTS.findall(said.partition(":")[2].strip()):
            words.devices[kind.lower()] = names.count(",") + 1
            words.names[kind.lower()] = names
    elif found := _EPOCH.match(said):
        words.epochs.append(Epoch(number, stamp))
    elif (found := _DURATION.match(said)) and words.epochs:
        words.epochs[-1].duration_s = None if found.group(1) else _seconds(found.group(2, 3, 4))
    elif (found := _POWER.match(said)) and words.epochs:
        words.epochs[-1].watts[found.group(1).lower()] = _powers(found.group(2))
    elif found := _BLOCK.search(said):
        words.blocks.append(_block(number, stamp, found.group(1) == "Actual", int(found.group(2)), after))
    elif "interrupted before all" in said:
        words.is_interrupted = True
    elif "Traceback (most recent call last)" in said:
        words.has_traceback = True
    words.levels += [float(level) for level in _LEVEL.findall(said)]


def _pue(text: str) -> float | None:
    """A PUE that a facility can have, else None."""
    value = float(text)
    return value if 1 <= value < 10 else None


def _joined(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Numbered lines; a power list that wraps is put on one line."""
    whole: list[tuple[int, str]] = []
    for number, line in enumerate(lines, start=1):
        if whole and "Average power usage" in whole[-1][1] and "[" in whole[-1][1] and "]" not in whole[-1][1] and not _STAMPED.match(line):
            whole[-1] = (whole[-1][0], f"{whole[-1][1]} {line.strip()}")
        else:
            whole.append((number, line))
    return whole


def _block(number: int, stamp: str, is_actual: bool, epochs: int, after: Sequence[str]) -> Block:
    seconds = kwh = None
    for line in after:
        if found := _TIME.match(line):
            seconds = None if found.group(1) else _seconds(found.group(2, 3, 4))
        elif found := _ENERGY.match(line):
            kwh = float(found.group(1))
    return Block(number, stamp, is_actual, epochs, seconds, kwh)


def _seconds(parts: Sequence[str]) -> float:
    hours, minutes, seconds = parts
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _powers(text: str) -> list[float] | None:
    try:
        values = [float(word) for word in text.strip().strip("[]").replace(",", " ").split()]
    except ValueError:
        return None
    return values if values and all(0 <= v < 1e7 for v in values) else None
