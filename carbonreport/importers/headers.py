"""What the name of a column says: its quantity and its unit."""

import re
from dataclasses import dataclass

from carbonreport.importers.cells import JOULES, SECONDS, WATTS

_UNIT = re.compile(r"\s*[\[(]\s*([^\])]*?)\s*[\])]\s*$")
_LAST_WORD = re.compile(r"[_ .]([a-zµ]+)$")
_NO_POWER = re.compile(
    r"limit|cap\b|percent|pct|state|management|smoothing|brake|(?<![a-z])max(?![a-z])|(?<![a-z])min(?![a-z])|peak|factor|rate|mode|violation"
)
_POWER = re.compile(r"power|watt|draw")
_ENERGY = re.compile(r"energy|consum|joule|kwh")
_NO_ENERGY = re.compile(r"rate|/|co2|intensity|mix|type|star|efficien|cost|price|water")
_TIME = re.compile(
    r"timestamp(?:_?[mun]?s)?|datetime|date|time|epoch|unix|ts|elapsed\w*|time_?[mun]?s|time_?sec\w*|seconds|relative[ _]time|_timestamp|date[ _]time|wall[ _]time|time[ _]?stamp|.*[ _.]timestamp|created_at|recorded_at"
)
_DURATION = re.compile(r"duration|runtime|elapsed|total[ _]time|.*[ _]duration|time")


@dataclass(frozen=True, slots=True)
class Heading:
    """A column's name without its unit, and the unit in lower case ("" where there is none)."""

    name: str
    unit: str

    @property
    def is_power(self) -> bool:
        """Whether it holds power that was drawn, not a limit of it."""
        return (
            self.unit not in JOULES
            and self.unit != "%"
            and (self.unit in WATTS or bool(_POWER.search(self.name)))
            and not _NO_POWER.search(self.name)
        )

    @property
    def is_energy(self) -> bool:
        """Whether it holds energy."""
        return self.unit in JOULES or (self.unit not in WATTS and bool(_ENERGY.search(self.name)) and not _NO_ENERGY.search(self.name))

    @property
    def is_time(self) -> bool:
        """Whether it holds moments."""
        return bool(_TIME.fullmatch(self.name))

    @property
    def seconds_per_count(self) -> float:
        """Seconds of one unit of a column of times: of "timestamp_ns" 1e-9, of "time [ms]" 1e-3, of others 1."""
        return SECONDS.get(self.unit) or SECONDS.get(self.name.rpartition("_")[2], 1.0)

    @property
    def is_duration(self) -> bool:
        """Whether it holds a length of time in a unit."""
        return self.unit in SECONDS and bool(_DURATION.fullmatch(self.name))


def heading(name: str) -> Heading:
    """A name such as "power.draw [W]", "Power (mW)", "gpu_power_w" or "totalWatts", in lower case, taken apart."""
    text = name.strip().casefold()
    if found := _UNIT.search(text):
        inner = found.group(1).split(",")[-1].strip()
        return Heading(text[: found.start()].strip(), inner)
    if text.endswith("watts"):
        milli = {"milliwatts": "mw", "microwatts": "uw"}
        return Heading(text, next((unit for word, unit in milli.items() if text.endswith(word)), "w"))
    found = _LAST_WORD.search(text)
    if found and found.group(1) in {**WATTS, **JOULES} and len(found.group(1)) < 4:
        return Heading(text[: found.start()], found.group(1))
    return Heading(text, "")
