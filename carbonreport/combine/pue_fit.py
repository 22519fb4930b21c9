"""A PUE by the weather: the curve through two numbers of a site, and the PUE of each hour. Stdlib only: a site file is checked by it.

`PUE = base + slope * shape(T)`, never below 1. The shape of the dry bulb is the quadratic of an economiser system (Xu, Feng and Li,
ICAC 2013: 7.1705e-5 T^2 + 0.0041 T, outdoor air held to -20..45 °C), that of the wet bulb a hinge, max(0, T - knee). Base and slope are
those that give the site's two numbers: at two temperatures, or as means over the two halves of a year of weather.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from carbonreport.errors import BadPue
from carbonreport.model.pue import SUMMER_MONTHS, SUMMER_MONTHS_SOUTH, PueProfile
from carbonreport.model.pue_model import PueHours, PueModel
from carbonreport.model.weather import Weather
from carbonreport.units import days

XU_SQUARE, XU_LINEAR = 7.1705e-5, 0.0041
XU_COLDEST, XU_HOTTEST = -20.0, 45.0
# A year of weather lacks no more than these days.
LEAST_DAYS = 350.0
# Halves of a year whose shapes differ by less say nothing of the temperature: 2 °C of the dry bulb, 0.2 °C above the knee.
LEAST_APART = {"dry-bulb": 2 * XU_LINEAR, "wet-bulb": 0.2}
_MOST_PUE = 5.0


@dataclass(frozen=True, slots=True)
class PueFit:
    """A model with its curve.

    Attributes:
        model: Its two numbers.
        base: PUE where the shape is 0.
        slope: PUE for one unit of the shape.
        basis: The weather that was taken to fit it, or "".
    """

    model: PueModel
    base: float
    slope: float
    basis: str = ""

    def pue(self, celsius: float) -> float:
        """PUE at a temperature, at the load that is."""
        return self.model.at_load(max(self.base + self.slope * shape(self.model, celsius), 1.0))

    def hours(self, weather: Weather) -> PueHours:
        """PUE of the hours whose weather is known."""
        return PueHours(
            model=self.model.in_words(),
            weather=weather.source,
            basis=self.basis,
            retrieved_on=weather.retrieved_on,
            factors=self.model.factors,
            starts_s=weather.starts_s,
            ends_s=weather.ends_s,
            celsius=weather.celsius,
            values=tuple(self.pue(celsius) for celsius in weather.celsius),
        )


def shape(model: PueModel, celsius: float) -> float:
    """How the overhead goes with the temperature, before it is fitted."""
    if model.bulb == "wet-bulb":
        return max(celsius - model.knee_celsius, 0.0)
    held = min(max(celsius, XU_COLDEST), XU_HOTTEST)
    return XU_SQUARE * held**2 + XU_LINEAR * held


def fit(model: PueModel, year: Weather | None = None) -> PueFit:
    """The curve through a model's two numbers.

    Args:
        model: The two numbers.
        year: A year of the place's weather; needed where they are of halves of the year.

    Raises:
        BadPue: The weather is too short, or its halves are too alike for such a model.
    """
    if model.cold_celsius is not None and model.warm_celsius is not None:
        return _through(model, shape(model, model.cold_celsius), shape(model, model.warm_celsius), "")
    if year is None or not _is_a_year(year):
        known = 0.0 if year is None else _days(year)
        raise BadPue(
            f"numbers of summer and winter need a year of weather, not {known:.0f} days; give PUE at two temperatures: at = [[5, 1.1], [30, 1.3]]"
        )
    first, last = (datetime.fromtimestamp(s, UTC) for s in (year.starts_s[0], year.ends_s[-1] - 1))
    basis = f"weather of {first:%Y}" if first.year == last.year else f"weather from {first:%Y-%m} to {last:%Y-%m}"
    return _through(model, *_halves(model, year), basis)


def _through(model: PueModel, cold: float, warm: float, basis: str) -> PueFit:
    if warm - cold < (0.0 if not model.by_season else LEAST_APART[model.bulb]) or warm == cold:
        raise BadPue(
            f"the {model.bulb} temperature at the place differs too little between the halves of the year to explain a PUE of {model.cold:g} and {model.warm:g}; "
            + ("give knee_celsius, or model = “dry-bulb”" if model.bulb == "wet-bulb" else "give months, or one value")
        )
    slope = (model.warm - model.cold) / (warm - cold)
    return PueFit(model, model.cold - slope * cold, slope, basis)


def _halves(model: PueModel, year: Weather) -> tuple[float, float]:
    """Mean of the shape over the cold and the warm half of a year."""
    warm_months = SUMMER_MONTHS_SOUTH if model.is_south else SUMMER_MONTHS
    sums, lengths = [0.0, 0.0], [0.0, 0.0]
    for start_s, end_s, celsius in zip(year.starts_s, year.ends_s, year.celsius, strict=True):
        half = datetime.fromtimestamp(start_s, UTC).month in warm_months
        sums[half] += shape(model, celsius) * (end_s - start_s)
        lengths[half] += end_s - start_s
    return sums[0] / lengths[0], sums[1] / lengths[1]


def _is_a_year(year: Weather) -> bool:
    """Whether all months are in it, and hardly a day is missing."""
    months = {datetime.fromtimestamp(s, UTC).month for s in year.starts_s}
    return len(months) == 12 and _days(year) >= LEAST_DAYS


def _days(year: Weather) -> float:
    return days(sum(end - start for start, end in zip(year.starts_s, year.ends_s, strict=True)))


def refuse_implausible(found: PueFit, year: Weather) -> None:
    """Refuse a curve that no facility has at the temperatures of its own year.

    Raises:
        BadPue: Its highest PUE is not plausible.
    """
    hottest = max(year.celsius)
    if found.pue(hottest) > _MOST_PUE:
        raise BadPue(f"the PUE model gives {found.pue(hottest):.2f} at {hottest:g} °C; check its two numbers")


def by_hours(annual: PueProfile, known: PueHours, start_s: float, end_s: float) -> tuple[PueProfile, float]:
    """A PUE that covers a period: of its own hours where they are known, else the annual value; and how long that is. [s]"""
    end_s = max(end_s, start_s + 1.0)
    slices = _slices(known, start_s, end_s)
    missing_s = sum(until - begin for begin, until, value in slices if value is None)
    low, mean, high = (
        sum((until - begin) * (other if value is None else value * factor) for begin, until, value in slices) / (end_s - start_s)
        for factor, other in ((known.factors[0], annual.low), (1.0, annual.value), (known.factors[1], annual.high))
    )
    mean = max(mean, 1.0)  # a sum of ones may lack the last digit
    profile = PueProfile(
        value=mean,
        low=min(max(low, 1.0), mean),
        high=max(high, mean),
        origin="estimated",
        source=known.model if missing_s == end_s - start_s else f"{known.model}; weather of {known.weather}",
        edges_s=(start_s, *(until for _, until, _ in slices)),
        values=tuple(annual.value if value is None else value for _, _, value in slices),
    )
    return profile, missing_s


def _slices(known: PueHours, start_s: float, end_s: float) -> list[tuple[float, float, float | None]]:
    """Begin, end and PUE of the pieces of a period; None where it is not known."""
    slices: list[tuple[float, float, float | None]] = []
    at_s = start_s
    for begin, until, value in zip(known.starts_s, known.ends_s, known.values, strict=True):
        begin, until = max(begin, start_s), min(until, end_s)
        if until <= begin:
            continue
        if begin > at_s:
            slices.append((at_s, begin, None))
        slices.append((begin, until, value))
        at_s = until
    return [*slices, *([(at_s, end_s, None)] if at_s < end_s else [])]
