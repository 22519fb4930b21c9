"""The finished trials of a sweep, one line each, so that a sweep that was stopped goes on where it was."""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from carbonreport.errors import CarbonreportError
from carbonreport.model.notes import SLUGS, Note
from carbonreport.workflows.journal import JournalFile, opened_file

_VERSION = 2


@dataclass(frozen=True, slots=True)
class Tried:
    """One finished trial.

    Attributes:
        key: Which trial of the sweep it is.
        cap_watts: Power cap of each board, or None. [W]
        seconds: How long it took. [s]
        joules: Energy of the boards. [J]
        items: What the program counted, or None.
        items_path: Span that counted it.
        digest: Hash of the lines that must not change, or None.
        lines: How many lines that were.
        record: Name of its record.
        notes: What the record says that matters here.
    """

    key: str
    cap_watts: float | None
    seconds: float
    joules: float
    items: float | None = None
    items_path: str | None = None
    digest: str | None = None
    lines: int = 0
    record: str = ""
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes trials comparable; the command is kept as a hash, for a journal is shown around.

    Attributes:
        command: Hash of the command.
        caps: Caps that are tried, rising. [W]
        seed: Of the order.
        same_lines: Expression of the lines that must not change, or None.
        is_dry: Whether nothing is set.
        boards: UUID and power limit without a cap of each board, by UUID. [W]
        host: Salted id of the host.
        interval_s: How often the meters are polled. [s]
    """

    command: str
    caps: tuple[float, ...]
    seed: int
    same_lines: str | None
    is_dry: bool
    boards: tuple[tuple[str, float | None], ...] = ()
    host: str = ""
    interval_s: float = 1.0


def identity(
    command: Sequence[str],
    caps: Sequence[float],
    *,
    seed: int,
    same_lines: str | None,
    is_dry: bool,
    boards: Sequence[tuple[str, float | None]] = (),
    host: str = "",
    interval_s: float = 1.0,
) -> Identity:
    """The identity of a sweep."""
    words = json.dumps(list(command)).encode()
    by_uuid = tuple(sorted(boards, key=lambda board: board[0]))
    return Identity(hashlib.sha256(words).hexdigest()[:16], tuple(sorted(caps)), seed, same_lines, is_dry, by_uuid, host, interval_s)


class Journal:
    """Lines that are on the disk before the next trial begins.

    Args:
        file: Takes lines.
        tried: What it held.
    """

    def __init__(self, file: JournalFile, tried: Sequence[Tried]) -> None:
        self._file = file
        self._tried = {one.key: one for one in tried}

    def get(self, key: str) -> Tried | None:
        """A finished trial."""
        return self._tried.get(key)

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the finished trials."""
        return tuple(self._tried)

    def add(self, tried: Tried) -> None:
        """Keep a finished trial."""
        self._file.append(_line({"type": "trial", **asdict(tried), "notes": [[note.slug, note.text] for note in tried.notes]}))
        self._tried[tried.key] = tried


@contextlib.contextmanager
def opened_journal(path: Path, wanted: Identity) -> Iterator[Journal]:
    """The journal of a sweep, a new one or that of the same sweep before.

    Raises:
        OutputError: It cannot be written.
        CarbonreportError: It is of another sweep, or another process goes on with it now.
    """
    with opened_file(path, called=f"the sweep {path}") as file:
        yield Journal(file, _read(file, path, wanted))


def _read(file: JournalFile, path: Path, wanted: Identity) -> list[Tried]:
    """Its trials; a new one gets its first line."""
    first, *rest = file.lines or (b"",)
    if not first:
        file.append(_line({"type": "sweep", "version": _VERSION, **asdict(wanted)}))
        return []
    try:
        _compare(_identity(json.loads(first)), wanted, path)
        return [_tried(json.loads(line)) for line in rest]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CarbonreportError(f"{path} is no journal of a sweep that can be read ({error}); remove it, or give another --out") from error


def _identity(held: dict[str, Any]) -> Identity:
    if held.get("type") != "sweep" or held.get("version") != _VERSION:
        raise ValueError(f"its first line is not that of a sweep of version {_VERSION}")
    boards = tuple((str(uuid), watts) for uuid, watts in held["boards"])
    return Identity(
        held["command"], tuple(held["caps"]), held["seed"], held["same_lines"], held["is_dry"], boards, held["host"], held["interval_s"]
    )


def _compare(held: Identity, wanted: Identity, path: Path) -> None:
    if held == wanted:
        return
    reasons = {
        "command": "another command",
        "caps": f"other caps ({', '.join(f'{cap:g}' for cap in held.caps)} W)",
        "seed": f"another seed ({held.seed})",
        "same_lines": f"another --same-lines ({held.same_lines!r})",
        "is_dry": "another kind",
        "host": "another host",
        "boards": _other_boards(held, wanted),
        "interval_s": f"another --interval ({held.interval_s:g} s)",
    }
    name = next(name for name in reasons if getattr(held, name) != getattr(wanted, name))
    raise CarbonreportError(f"{path} holds trials of {reasons[name]}: give another --out, or remove it")


def _other_boards(held: Identity, wanted: Identity) -> str:
    """Which boards differ: others, or the same with other limits."""
    before, now = dict(held.boards), dict(wanted.boards)
    if before.keys() != now.keys():
        return f"other boards ({', '.join(before) or 'none'})"
    limits = [f"{uuid} had {_watts(before[uuid])}, and has {_watts(now[uuid])}" for uuid in before if before[uuid] != now[uuid]]
    return f"other power limits ({'; '.join(limits)})"


def _watts(watts: float | None) -> str:
    return "none" if watts is None else f"{watts:g} W"


def _tried(held: dict[str, Any]) -> Tried:
    kept = {name: held[name] for name in Tried.__slots__ if name != "notes"}
    notes = tuple(Note(slug, text) for slug, text in held["notes"] if slug in SLUGS)
    return replace(Tried(**kept), notes=notes)


def _line(held: dict[str, Any]) -> bytes:
    return json.dumps(held, ensure_ascii=False).encode()
