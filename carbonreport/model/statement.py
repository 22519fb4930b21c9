"""A statement as words and rows, before any format: templates choose layout, never compute."""

import math
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Facts:
    """What the author says of the project, that no record knows; None where nobody said it.

    Attributes:
        model: Name of the model.
        parameters: Number of parameters of the model.
        training_type: pre-training, fine-tuning, …
        flop: Floating-point operations of the training.
        memory_gb: Memory of one worker. [GB]
        storage: Storage in words: "2 TB NVMe".
        geographical_location: Place in words, for forms that ask for one.
        functional_unit: What one use is: "run", or the name of a span whose items are counted.
        uses_per_year: Expected uses, in functional units.
        runs: Runs of the whole project.
        project_gpu_hours: GPU-hours of the whole project.
    """

    model: str | None = None
    parameters: float | None = None
    training_type: str | None = None
    flop: float | None = None
    memory_gb: float | None = None
    storage: str | None = None
    geographical_location: str | None = None
    functional_unit: str | None = None
    uses_per_year: float | None = None
    runs: int | None = None
    project_gpu_hours: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, str) and not value.strip():
                raise ValueError(f"{field.name} is empty; leave it out where it is not known")
            if isinstance(value, int | float) and not (math.isfinite(value) and value > 0):
                raise ValueError(f"{field.name} is {value!r}; it must be above 0")


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
class CardData:
    """The fields of a model card's metadata; "" where nobody said it.

    Attributes:
        grams: Emissions as a plain number, in grams. [gCO2e]
        source: Tool, method and interval.
        training_type: pre-training, fine-tuning, …
        geographical_location: Place in words.
        hardware_used: Boards.
        gas: What the grams are of: "CO2e", or "CO2" alone.
    """

    grams: str
    source: str
    training_type: str
    geographical_location: str
    hardware_used: str
    gas: str = "CO2e"


@dataclass(frozen=True, slots=True)
class Details:
    """What forms ask for, each a text that stands alone; what nobody said is in it as "not given".

    Attributes:
        what_ran: Sentence: what ran, on what, for how long, when and where.
        workers: Sentence: kind and number of compute workers, and where they stand.
        memory: Sentence on memory and storage.
        each_run: Sentence: time and energy of each run, or of each name of runs.
        in_all: Sentence: time and GPU-hours of all runs together.
        project: Sentence: what the project used beyond the reported runs.
        energy: Sentence: IT energy, facility energy and emissions.
        left_out: Sentence: what is not in the numbers.
        parameters: Sentence: number of parameters.
        setup: Sentence: what the records hold of the set-up.
        search: Sentence: search runs and other preparation.
        statistics: Sentence: single runs, or mean, least and most over several.
        adoption: Sentence: energy of a year of use; "" where that cannot be said.
        card: The metadata of a model card.
        card_rows: Its section: label and text.
        gpai_rows: EU model documentation form: label and text.
        sci_rows: ISO/IEC 21031: label and text.
    """

    what_ran: str
    workers: str
    memory: str
    each_run: str
    in_all: str
    project: str
    energy: str
    left_out: str
    parameters: str
    setup: str
    search: str
    statistics: str
    adoption: str
    card: CardData
    card_rows: tuple[tuple[str, str], ...]
    gpai_rows: tuple[tuple[str, str], ...]
    sci_rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a statement was made of, so that anybody can make it again.

    Attributes:
        records: File name and SHA-256 of each record.
        list_sha256: SHA-256 of the sorted hashes, those of the hours included, one a line.
        asked: Option and text, as they were given.
        beside: File name and SHA-256 of the hours that were kept beside the records and used.
    """

    records: tuple[tuple[str, str], ...]
    list_sha256: str
    asked: tuple[tuple[str, str], ...]
    beside: tuple[tuple[str, str], ...] = ()


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
        details: The same in the pieces that forms ask for.
        is_anonymous: Whether names, places and dates were taken out for a blind review.
        rerun: When to run again, or that it is not worth it; empty where the place is not known.
        inputs: What it was made of; None where that would tell who made it.
    """

    paragraph: tuple[Sentence, ...]
    rows: tuple[Row, ...]
    runs: tuple[RunRow, ...]
    omissions: tuple[str, ...]
    notes: tuple[tuple[str, str], ...]
    figures: tuple[tuple[str, str], ...]
    works: tuple[Work, ...]
    made_by: str
    details: Details
    is_anonymous: bool = False
    rerun: tuple[Sentence, ...] = ()
    inputs: Inputs | None = None
