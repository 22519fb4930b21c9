"""PUE by the weather: two numbers that a site knows of itself, and the curve between them. Stdlib only, like `pue.py`."""

import math
from dataclasses import dataclass

from carbonreport.errors import BadPue
from carbonreport.model.pue import PueProfile
from carbonreport.model.weather import BULBS, Bulb, Weather

# Where chillers begin to help the towers, read from the weekly medians of ORNL's Summit in 2020. [°C]
KNEE_CELSIUS = 16.0
# 90 % factors on a modelled PUE. How far such a model is off has not been measured; it is not trusted more than an annual value is
# (method, uncertainty budget "pue_site_annual_for_short_run").
MODEL_FACTORS = (0.96, 1.04)
LEAST_APART_CELSIUS = 5.0
_MOST_LOAD = 10.0


@dataclass(frozen=True, slots=True)
class PueModel:
    """Two numbers of a facility and how its PUE goes between them.

    Attributes:
        bulb: "dry-bulb" (a quadratic of the air's temperature) or "wet-bulb" (level up to a knee, then straight).
        cold: PUE of the cold half of the year, or at `cold_celsius`.
        warm: PUE of the warm half of the year, or at `warm_celsius`.
        cold_celsius: Temperature at which the first was read, or None for a half of the year.
        warm_celsius: The same of the second.
        is_south: Whether the warm half of the year is October to March.
        knee_celsius: Wet-bulb temperature above which the PUE rises. [°C]
        annual: PUE of the whole year, or None for the mean of the two.
        factors: 90 % factors on the PUE of an hour.
        load: IT load over that at which the two numbers were read.
        fixed_share: Part of the overhead that does not fall with the load, 0 to 1.
        spot: Where the facility stands, degrees north and east, or None; it stays in the site file.
        weather: Temperatures out of a file, or None.
        said_by: Where the numbers come from, or "".
    """

    bulb: Bulb
    cold: float
    warm: float
    cold_celsius: float | None = None
    warm_celsius: float | None = None
    is_south: bool = False
    knee_celsius: float = KNEE_CELSIUS
    annual: float | None = None
    factors: tuple[float, float] = MODEL_FACTORS
    load: float = 1.0
    fixed_share: float = 0.0
    spot: tuple[float, float] | None = None
    weather: Weather | None = None
    said_by: str = ""

    def __post_init__(self) -> None:
        if self.bulb not in BULBS:
            raise BadPue(f"PUE model {self.bulb!r} is none of {', '.join(BULBS)}")
        self._refuse_numbers()
        self._refuse_temperatures()
        if not (0 < self.load <= _MOST_LOAD and 0 <= self.fixed_share <= 1):
            raise BadPue(
                f"load {self.load:g} and fixed_share {self.fixed_share:g}: give the IT load over that of the two numbers (0.6), and a share from 0 to 1"
            )
        self._refuse_place()

    def _refuse_numbers(self) -> None:
        if not 1.0 <= self.cold < self.warm < 20.0:
            raise BadPue(f"a PUE model needs two numbers from 1 on, the warm one above the cold one, not {self.cold:g} and {self.warm:g}")
        if self.annual is not None and not self.cold <= self.annual <= self.warm:
            raise BadPue(f"value {self.annual:g} of the year does not lie between {self.cold:g} and {self.warm:g}")
        low, high = self.factors
        if not 0 < low <= 1 <= high:
            raise BadPue("low and high do not enclose the value")

    def _refuse_temperatures(self) -> None:
        if self.cold_celsius is None or self.warm_celsius is None:
            return
        if not -50 <= self.cold_celsius <= self.warm_celsius - LEAST_APART_CELSIUS <= 60:
            raise BadPue(
                f"at: temperatures {self.cold_celsius:g} and {self.warm_celsius:g} °C: give two that lie {LEAST_APART_CELSIUS:g} °C apart, the colder first"
            )
        if self.bulb == "wet-bulb" and self.warm_celsius <= self.knee_celsius:
            raise BadPue(
                f"at: {self.warm_celsius:g} °C is not above the knee of {self.knee_celsius:g} °C, below which a wet-bulb model is level; give knee_celsius"
            )

    def _refuse_place(self) -> None:
        if self.spot is None and self.weather is None:
            raise BadPue('a PUE model needs the weather: give latitude and longitude, or weather = "temperatures.csv"')
        if self.spot is not None and self.weather is not None:
            raise BadPue("the weather comes from latitude and longitude or from a file; give one of the two")
        if self.spot is not None and not (abs(self.spot[0]) <= 90 and abs(self.spot[1]) <= 180):
            raise BadPue(f"latitude {self.spot[0]:g} and longitude {self.spot[1]:g} are no degrees north and east")
        if self.weather is not None and self.weather.bulb != self.bulb:
            raise BadPue(f"the weather is of the {self.weather.bulb}, the model of the {self.bulb}")

    @property
    def by_season(self) -> bool:
        """Whether the two numbers are of halves of the year, so that a year's weather is needed to fit the curve."""
        return self.cold_celsius is None or self.warm_celsius is None

    def at_load(self, pue: float) -> float:
        """A PUE at the load of the two numbers, at the load that is: the fixed part of the overhead weighs more on less work."""
        return 1.0 + (pue - 1.0) * (self.fixed_share / self.load + 1.0 - self.fixed_share)

    def in_words(self) -> str:
        """The model with its two numbers, for the statement."""
        cold, warm = (
            ("in winter", "in summer") if self.by_season else (f"at {_degrees(self.cold_celsius)}", f"at {_degrees(self.warm_celsius)}")
        )
        knee = f", knee at {self.knee_celsius:g}\u00a0°C" if self.bulb == "wet-bulb" else ""
        load = (
            f", at {self.load * 100:.0f}\u00a0% of their load with {self.fixed_share * 100:.0f}\u00a0% of the overhead fixed"
            if self.load != 1.0
            else ""
        )
        said = f", {self.said_by}" if self.said_by else ""
        return f"{self.bulb} model fitted to {_ratio(self.cold)} {cold} and {_ratio(self.warm)} {warm}{knee}{load}{said}"

    def profile(self) -> PueProfile:
        """The annual value, which stands wherever the weather is not known; its range reaches over both numbers."""
        value = (self.cold + self.warm) / 2 if self.annual is None else self.annual
        low, high = min(self.cold, value * self.factors[0]), max(self.warm, value * self.factors[1])
        ends = (self.at_load(value), max(self.at_load(low), 1.0), self.at_load(high))
        return PueProfile(*ends, "estimated", self.in_words())


def _ratio(pue: float) -> str:
    """With two decimals, or more where somebody gave more."""
    return f"{pue:.2f}" if math.isclose(pue, round(pue, 2)) else f"{pue:g}"


def _degrees(celsius: float | None) -> str:
    return f"{celsius:g}\u00a0°C".replace("-", "−")


def is_modelled(profile: PueProfile) -> bool:
    """Whether a PUE is the annual value of a model, whose hours the weather decides; nothing else is an estimate."""
    return profile.origin == "estimated" and not profile.varies


@dataclass(frozen=True, slots=True)
class PueHours:
    """What a model says of hours whose weather is known; the others are absent.

    Attributes:
        model: The model in words, as the annual profile has it.
        weather: Source of the weather, with the licence.
        basis: What else was taken to fit the curve, or "".
        retrieved_on: Date on which the weather was fetched, ISO, or "".
        factors: 90 % factors on each.
        starts_s: Begin of each interval, POSIX seconds, rising.
        ends_s: End of each.
        celsius: Temperature in each. [°C]
        values: PUE in each.
    """

    model: str
    weather: str
    basis: str
    retrieved_on: str
    factors: tuple[float, float]
    starts_s: tuple[float, ...]
    ends_s: tuple[float, ...]
    celsius: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not len(self.starts_s) == len(self.ends_s) == len(self.celsius) == len(self.values):
            raise ValueError("times, temperatures and PUE are of unequal number")
        if any(end <= start for start, end in zip(self.starts_s, self.ends_s, strict=True)) or any(
            later < end for end, later in zip(self.ends_s, self.starts_s[1:], strict=False)
        ):
            raise ValueError("times of the PUE do not rise")
        if not all(1.0 <= value < 20.0 for value in self.values):
            raise ValueError("a PUE of it is below 1 or not plausible")
        if not 0 < self.factors[0] <= 1 <= self.factors[1]:
            raise ValueError("the factors of its range do not enclose 1")
