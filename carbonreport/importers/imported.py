"""What an importer hands out: runs, and aloud what it could not use."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from carbonreport.importers.log_file import LogFile
from carbonreport.model.notes import Note
from carbonreport.model.run import METHODS, Method, RunRecord

Rejected = tuple[int, str]  # line or row number, and why

_SHARE_THAT_COUNTS = 0.01  # a weaker part below this share does not label the sum


class Importer(Protocol):
    """Reads the logs of one format."""

    def recognises(self, file: LogFile) -> bool:
        """Whether the content is of this format; the file's name says nothing."""

    def read(self, file: LogFile) -> "Imported":
        """The runs in it. What cannot be used is in `rejected` and `why_not`; nothing raises for bad content."""


def kind_in_words(format_name: str) -> str:
    """What a file of a format is: "a log of codecarbon", or "a table" where it is of no tool that is known."""
    return "a table" if format_name == "csv" else f"a log of {format_name}"


@dataclass(frozen=True, slots=True)
class Imported:
    """The content of a foreign log.

    Attributes:
        format: Name of the importer.
        runs: Runs with real start and end, ready to be charged.
        rows: Data rows, or samples, or jobs that the file holds.
        rejected: (line or row number, reason) of what was not used.
        notes: What a reader must know of how it was read.
        undated: Runs whose energy is known but not when they were: `started_s` is a local time read as UTC, or 0.
        why_not: Why there is no energy, and the way out; None where there is some.
        is_local: Whether the undated runs have local times, which a time zone would date.
        hosts: Names of hosts by device, where the log says them.
    """

    format: str
    runs: tuple[RunRecord, ...]
    rows: int
    rejected: tuple[Rejected, ...] = ()
    notes: tuple[Note, ...] = ()
    undated: tuple[RunRecord, ...] = ()
    why_not: str | None = None
    is_local: bool = False
    hosts: Mapping[str, str] = field(default_factory=dict)

    @property
    def it_joules(self) -> float | None:
        """IT energy of all runs, or None where nothing is known. [J]"""
        energies = [joules for _, joules in self._energies()]
        return math.fsum(energies) if energies else None

    @property
    def method(self) -> Method | None:
        """How the energy is known: the weakest method that carries over 1 % of it; None without energy."""
        by_method: dict[Method, float] = {}
        for method, joules in self._energies():
            by_method[method] = by_method.get(method, 0.0) + joules
        whole = math.fsum(by_method.values())
        weighty = [method for method, joules in by_method.items() if joules >= whole * _SHARE_THAT_COUNTS]
        return max(weighty, key=METHODS.index, default=None)

    def _energies(self) -> Iterable[tuple[Method, float]]:
        for run in (*self.runs, *self.undated):
            methods = {device.id: device.method for device in run.devices}
            for trace in run.traces:
                if trace.joules:
                    yield methods[trace.device], trace.joules[-1]
