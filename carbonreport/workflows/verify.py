"""Recompute a statement from its records and find what differs, down to a digit."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from carbonreport.errors import OutputError
from carbonreport.render.engine import BLIND, OWN_STYLE, PLAIN
from carbonreport.workflows.charge import charge_records, load_records
from carbonreport.workflows.facts import facts_for
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.statement import asked, statement_text
from carbonreport.workflows.statement_words import Telling

_SUFFIXES = (".tex", ".md", ".html", ".json", ".yaml")
_VERSION = re.compile(r"carbonreport \d+\.\d[\w.]*")
_MADE_AS = re.compile(rf"written by carbonreport [\w.]+(?:(?P<own>{OWN_STYLE})| in style (?P<style>\w+))?(?P<blind>{BLIND})?;")
_AROUND = 30  # characters on each side of a difference
_LONGEST = 300  # characters that are shown of a line
_MOST, _FEWEST = 10, 3  # lines that are worth reading, where the records are those of the statement and where they are not
_HINT = "{name}: no JSON beside it says how it was made; give the records and the options of then (--zone, --pue, --grid, --site, --facts, --style ./FOLDER)"


@dataclass(frozen=True, slots=True)
class Asked:
    """How the statement was made; None where the caller leaves it to the JSON beside it.

    Attributes:
        place: Zone, PUE, grid, site file.
        style: Style.
        facts: File of facts.
        is_anonymous: Whether it was written for a blind review.
    """

    place: PlaceOptions = field(default_factory=PlaceOptions)
    style: str | None = None
    facts: str | None = None
    is_anonymous: bool = False


def verify(path: Path, records: Sequence[str | Path], given: Asked) -> list[str]:
    """Differences between a statement and what its records give now; none where every figure agrees.

    Style and blindness come from the call, else from the file's own head; the other options from the call, else from the JSON that was
    written beside the statement (or is it). A long list ends with the number of the lines left out.

    Raises:
        OutputError: Not a statement that can be read back.
        CarbonreportError: A record or the place cannot be used.
    """
    text = _read(path)
    beside = _beside(path)
    head = _head(text, beside)
    options, style, facts = _options(given, beside.get("options", {}), head.style)
    charged = charge_records(load_records(records, options), options)
    telling = Telling(facts_for(charged, facts), given.is_anonymous or head.is_anonymous, asked(options, style, facts))
    name = path.suffix.removeprefix(".").lower()
    again = statement_text(charged, name, style=style, telling=telling, has_bib="\\cite{" in text)
    changed = _changed_records(charged.runs, beside.get("records", []))
    changed += _changed_hours(charged.beside, beside.get("hours", [])) if beside.get("records") else []
    found = _differences(path.name, text, again)
    hint = [_HINT.format(name=path.name)] if found and not changed and not beside.get("options") else []
    return [*changed, *_first(found, _FEWEST if changed else _MOST, f"{path.name}: {{}} more lines differ"), *hint]


@dataclass(frozen=True, slots=True)
class _Head:
    """What a file says itself of its making.

    Attributes:
        style: Its style; None where it has one of its own, or does not say.
        is_anonymous: Whether it was written for a blind review.
    """

    style: str | None
    is_anonymous: bool


def _head(text: str, beside: dict[str, Any]) -> _Head:
    """The comment at the head of a text; of a JSON, what it holds of its inputs: an anonymous one has none."""
    if text.startswith("{"):
        return _Head(beside.get("options", {}).get("style"), '"sections": {' in text and '"inputs": {' not in text)
    found = _MADE_AS.search("\n".join(text.splitlines()[:2]))
    if found is None:
        return _Head(None, False)
    style = None if found["own"] else found["style"] or PLAIN
    return _Head(style, found["blind"] is not None)


def _first(lines: Sequence[str], most: int, rest: str) -> list[str]:
    """The first few lines, and how many there are more."""
    return [*lines[:most], *([rest.format(len(lines) - most)] if len(lines) > most else [])]


def _read(path: Path) -> str:
    if path.suffix.lower() not in _SUFFIXES:
        raise OutputError(f"cannot verify {path}: its suffix must be one of {', '.join(_SUFFIXES)}")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OutputError(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is not text'}") from error


def _beside(path: Path) -> dict[str, Any]:
    """What the JSON of the same name says that the statement was made of; nothing where there is none."""
    source = path.with_suffix(".json")
    if not source.is_file():
        return {}
    try:
        inputs = json.loads(source.read_text(encoding="utf-8")).get("inputs", {})
    except (ValueError, AttributeError) as error:
        raise OutputError(f"{source} is not the JSON of a statement: {error}") from error
    return inputs if isinstance(inputs, dict) else {}


def _options(given: Asked, kept: dict[str, Any], style: str | None) -> tuple[PlaceOptions, str, str | None]:
    place = given.place
    if place == PlaceOptions():
        place = replace(place, **{name: kept[name] for name in ("zone", "pue", "grid", "site") if name in kept})
    return place, given.style or style or kept.get("style", PLAIN), given.facts or kept.get("facts")


def _changed_records(runs: Sequence[Any], kept: Sequence[dict[str, str]]) -> list[str]:
    """Records that are not those of the JSON, either way."""
    if not kept:
        return []
    now, then = {c.run.sha256: c.run.source for c in runs}, {r["sha256"]: r["file"] for r in kept}
    gone = [f"record {name} of the statement was not given, or has changed" for sha256, name in then.items() if sha256 not in now]
    new = [f"record {name} is not one of the statement's, or has changed" for sha256, name in now.items() if sha256 not in then]
    return [
        *_first(gone, _FEWEST, "{} more records of the statement were not given"),
        *_first(new, _FEWEST, "{} more records are not its own"),
    ]


def _changed_hours(now: Sequence[tuple[str, str]], kept: Sequence[dict[str, str]]) -> list[str]:
    """Hours kept beside the records that are not those of the JSON, either way."""
    known, then = {sha256 for _, sha256 in now}, {r["sha256"] for r in kept}
    gone = [f"{r['file']} of the statement is not beside its record, or has changed" for r in kept if r["sha256"] not in known]
    new = [f"{name} beside its record is not the statement’s" for name, sha256 in now if sha256 not in then]
    return [*_first(gone, _FEWEST, "{} more files of hours differ"), *_first(new, _FEWEST, "{} more files of hours are new")]


def _differences(name: str, text: str, again: str) -> list[str]:
    """One line for each line that differs, around its first difference; the version of the tool may differ."""
    found = []
    pairs = zip_longest(*(_VERSION.sub("carbonreport", t).splitlines() for t in (text, again)), fillvalue="")
    for number, (has, computed) in enumerate(pairs, start=1):
        if has != computed:
            at = next((i for i, (a, b) in enumerate(zip(has, computed, strict=False)) if a != b), min(len(has), len(computed)))
            seen, wanted = _whole_words(has, at), _whole_words(computed, at)
            what = f"has {seen}, recomputed {wanted}" if seen != wanted else f"other spaces in {seen}"
            found.append(f"{name}:{number}: {what}")
    return found


def _whole_words(line: str, at: int) -> str:
    """What stands around a place of a line, as a reader sees it: no word is cut, and dots say where the line goes on."""
    words = [(match.start(), match.end()) for match in re.finditer(r"\S+", line)]
    near = [(begin, end) for begin, end in words if begin <= at + _AROUND and end >= at - _AROUND]
    if not near:
        return "nothing"
    text = "".join(c if c.isprintable() else " " for c in line[near[0][0] : near[-1][1]])
    if len(text) > _LONGEST:  # no words, but an image or the like
        begin = max(at - near[0][0] - _AROUND, 0)
        return f"“… {text[begin : begin + 2 * _AROUND]} …”"
    before, after = ("… " if near[0] != words[0] else ""), (" …" if near[-1] != words[-1] else "")
    return f"“{before}{text}{after}”"
