"""Notes: what was guessed, lost or limited, said aloud. One table of slugs; unknown slugs are refused."""

from dataclasses import dataclass

# slug -> what it means to a reader of the statement. The README's table is generated from this one.
SLUGS: dict[str, str] = {
    "annual-level": "the zone has no hourly data; every hour is charged at the yearly mean",
    "anchor-short": "the energy counter was compared with the power samples for under 30 s; the samples stand alone",
    "averaged-power": "only a one-second average of power could be read; the ends of the run are blurred",
    "board-split": "a board's energy was split among its users by the use of its cores, an estimate with a wide interval",
    "boards-unused": "on some visible boards no process of the run was seen; they were measured and are not counted",
    "cap-lower-elsewhere": "another owner caps a board lower than the run asked for; the lower cap was in force",
    "cap-not-held": "a board did not keep its power cap to the end of the run",
    "cap-refused": "a power cap that was asked for where it is allowed was not allowed; the run went on without it",
    "cap-unproven": "a board did not say at the end whether it kept what was set",
    "cap-without-effect": "a board hardly ever reached its power cap: the cap changed nothing",
    "clocks-not-held": "a board ran faster than the clocks that were asked for; the driver ignored them",
    "clock-stepped": "the wall clock was set during the run; hours count from its reading at the start",
    "contract-partial": "the contract covers a part of the energy; the rest is charged at the location-based intensity",
    "counter-doubted": "the energy counter and the power samples differ by over 10 %; the note says which is used and why",
    "counter-reset": "an energy counter restarted; the energy of that moment is missing",
    "device-lost": "a device stopped answering; its energy after that is missing",
    "dies-together": "two dies of one board report their energy together; it is counted once",
    "estimated-run": "nothing was measured: energy is power times hours, as the author gave them",
    "grid-constant": "the zone's hourly data hardly change; its day curve is not trusted",
    "grid-estimated": "the provider estimated the zone's hours; they were not measured",
    "grid-corrected": "typical hours were corrected by the last observed one",
    "grid-dropped": "the provider sent values that no grid can have; they were left out",
    "grid-forecast": "hours of the intensity were forecast, not observed",
    "grid-gap-filled": "hours missing from the series were taken from the zone's typical profile",
    "grid-refreshed": "the hours as they were have been fetched after the run and are kept beside its record",
    "grid-unusual": "the intensity is far from what the zone usually has; the source may be wrong",
    "grid-yearly-fallback": "built without hourly profiles; every hour is charged at Ember's yearly mean",
    "host-edges": "spans were stamped on the host: GPU work launched in one span may run in the next",
    "host-modelled": "the processors were not measured; their energy is a model of busy time with a wide interval",
    "host-unreadable": "the processors' energy counters exist but may not be read",
    "interrupted": "the run ended without a clean end; at most its last two seconds are missing",
    "items-dropped": "a span counted items that are no usable number; they were left out",
    "knobs-changed-by-others": "somebody else set a board's power limit during the run; it was left as they set it",
    "knobs-journal-lost": "the journal of what was set on a board was lost during the run; the board was put back from memory",
    "knobs-not-restored": "a board could not be put back as it was before the run",
    "limiter-active": "a board was at its power limit; what a span draws then depends on the spans around it",
    "marginal-unknown": "a marginal signal was given that does not reach over the place and the whole time of an option; it was not compared",
    "mean-watts-given": "the mean power was typed in; nobody knows here how it was measured",
    "mirrored-counter": "two energy counters of the processors show the same energy; it is counted once",
    "nested-run": "this run lies inside another one of the statement and is counted once",
    "no-gpu": "no GPU was visible to the run",
    "node-meter": "the node's own meter was counted; the devices inside it were not added to it",
    "pauses-coarse": "the schedule with pauses was searched in longer steps than asked for; a finer one may be better",
    "plan-late": "phases of a plan that changes clocks inside a step were over before their clocks could be asked for",
    "plan-not-followed": "a plan that changes clocks inside a step was not followed, and why; its best way without changes was held instead",
    "plan-sets-nothing": "the plan says to leave the clocks alone; nothing was set",
    "plan-stopped": "a plan that changes clocks inside a step was not followed to the end, and why",
    "pue-annual": "an annual PUE was used for a run of under a month",
    "pue-assumed": "nobody gave a PUE; the default of an unknown data centre was used",
    "pue-modelled": "the PUE of each hour is that of a model of the facility, by the temperature outdoors",
    "pue-no-weather": "the PUE follows a model by the weather, which is not known for some hours; the annual value was used there",
    "rated-power": "the power is the board's rated power: an upper bound, not a measurement",
    "rated-power-scaled": "the power is a typical share of the board's rated power",
    "reading-gap": "a device could not be read for a while; that energy is missing",
    "record-torn": "the record's last line was cut off and was left out",
    "run-not-counted": "a second meter of the same run and device was left out",
    "sensor-aliasing": "a span comes at a multiple of the power sensor's own period; samples may always meet the same part of it",
    "shared-board": "others used a board during the run; its energy holds their work too",
    "shared-host": "others used the machine during the run; its processors' energy holds their work too",
    "spans-by-time": "a device's energy was shared among spans by time; its meter is too slow for them",
    "spans-dropped": "more spans came than could be kept; some are missing",
    "spans-folded": "more than 64 span paths were used; later ones were added to their parents",
    "spans-told-together": "the energy of some spans cannot be told apart; it is given with the span that the note names",
    "split-refused": "a board could not be split among its users as asked; the whole board counts",
    "suspended": "the machine slept during the run; that time has no reading",
    "sweep-dry-run": "a sweep of power caps set nothing and ran without a cap alone",
    "sweep-one-repeat": "each power cap ran once; how far its figures can be trusted is not known",
    "sweep-results-differ": "the program's results differ between power caps, or between runs without one",
    "sweep-stages-lost": "stages of a sweep of power caps inside a loop were left out, because a cap was not held or no energy was read",
    "sweep-stages-short": "stages of a sweep of power caps inside a loop were too short for the power sensor or the limiter",
    "sweep-unconfirmed": "a power cap was promised something that its new measurement did not show, or was not measured again",
    "tracer-degraded": "a part of the tracer failed and was switched off; the program went on",
    "typical-profile": "the hours were not observed; a typical month and hour of the zone was used",
    "work-assumed-equal": "a program does not count its items; all its runs are taken to have done the same work",
    "zero-length": "the run has no length; there is nothing to charge",
    "zone-guessed": "nobody gave a grid zone; the country of the host's time zone was taken",
    "zone-retired": "the grid zone is no longer published under this name",
    "zone-unknown": "nobody gave a grid zone; the world average was used",
    "import-columns-shifted": "rows of a foreign log have fewer cells than its header; only what stands before the shift was read",
    "import-disagrees": "a row of a foreign log contradicts itself; its energy was kept",
    "import-lifetime": "the energy is what a counter has shown since the driver was loaded, not that of a run",
    "import-mean-made-sum": "the foreign tool wrote a mean over devices; it was multiplied by their number",
    "import-nested": "windows of a foreign log lie inside others and are counted once",
    "import-no-energy": "no energy follows from the foreign log",
    "import-node-shared": "a scheduler's energy is that of whole nodes; work of others on them may be inside",
    "import-overlap": "runs of a foreign log count a whole machine at the same time; its energy may be in them several times",
    "import-oversampled": "the log has more rows than the sensor has readings",
    "import-partial": "the foreign log lacks the energy of some parts or some time",
    "import-place-ignored": "the place and the CO2 of the foreign tool are not used",
    "import-power-times-time": "the scheduler's figure is a mean power; it was multiplied by the time",
    "import-predicted-left-out": "the foreign tool's predictions were left out",
    "import-pue-taken-out": "the foreign energy held a PUE; it was divided by it",
    "import-pue-unknown": "the foreign energy may hold a PUE that the log does not name",
    "import-rejected": "rows of a foreign log were not used; each is listed with its reason",
    "import-repeats": "rows or columns of a foreign log repeat others and are counted once",
    "import-stray": "cells of a foreign log hold more than a value; the rest was left out",
    "import-undated": "the foreign log does not say when it was",
    "import-unit-assumed": "the foreign log does not say the unit of its power; watts were assumed",
    "import-warning": "the foreign tool warned of its own data",
    "imported-log": "the run was read from a log of another tool",
}


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that the reader of a number must know.

    Attributes:
        slug: Key of SLUGS.
        text: What happened here, one sentence without a full stop.
    """

    slug: str
    text: str

    def __post_init__(self) -> None:
        if self.slug not in SLUGS:
            raise ValueError(f"unknown note slug {self.slug!r}")
