"""A statement as words and rows, before any format: templates choose layout, never compute."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence in plain characters, with the works it leans on.

    Attributes:
        text: The sentence, with its full stop.
        cites: Keys of works; formats without references leave them out.
    """

    text: str
    cites: tuple[str, ...] = ()

    @property
    def body(self) -> str:
        """The sentence without its full stop, for formats that cite before it."""
        return self.text.removesuffix(".")


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table.

    Attributes:
        label: What it is.
        value: Rounded value with unit, or what stands in its place.
        interval: Rounded 90 % interval, or "".
        known: measured, reported, estimated, assumed or omitted.
        source: Where it comes from, or why it is missing.
        is_main: Whether it is the line that people look for.
    """

    label: str
    value: str
    interval: str = ""
    known: str = ""
    source: str = ""
    is_main: bool = False


@dataclass(frozen=True, slots=True)
class RunRow:
    """All runs of one name and kind.

    Attributes:
        name: As the author called them.
        kind: training, inference, …
        runs: How many.
        time: Wall-clock time of all of them.
        energy: IT energy of all of them, with interval.
        each: Mean IT energy of one of several, with the least and the most; "" for a single run.
        emissions: Location-based emissions of all of them.
        per_item: Energy per item where items were counted, else "".
    """

    name: str
    kind: str
    runs: str
    time: str
    energy: str
    each: str
    emissions: str
    per_item: str


@dataclass(frozen=True, slots=True)
class Work:
    """Something to cite.

    Attributes:
        key: BibTeX key.
        kind: BibTeX entry type.
        fields: BibTeX fields, unescaped.
    """

    key: str
    kind: str
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """Everything that a style may print.

    Attributes:
        paragraph: The statement proper.
        rows: The table.
        runs: By name and kind; empty for a single run.
        omissions: What is not in the numbers.
        notes: Slug and text of everything that was guessed, lost or limited.
        figures: Macro name and rounded text of the main numbers.
        works: Works that the paragraph cites.
        made_by: Name and version of the tool.
    """

    paragraph: tuple[Sentence, ...]
    rows: tuple[Row, ...]
    runs: tuple[RunRow, ...]
    omissions: tuple[str, ...]
    notes: tuple[tuple[str, str], ...]
    figures: tuple[tuple[str, str], ...]
    works: tuple[Work, ...]
    made_by: str
