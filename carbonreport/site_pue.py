"""`place.pue` of a site file: one value with or without a range, months, hours, seasons, a measured series, or a model by the weather."""

from pathlib import Path

import msgspec

from carbonreport.cloud import is_region, pue_of_region
from carbonreport.combine.pue_fit import fit, refuse_implausible
from carbonreport.errors import BadPue
from carbonreport.model.pue import PueProfile, day_and_night, pue_from_text, pue_profile, two_seasons
from carbonreport.model.pue_model import KNEE_CELSIUS, MODEL_FACTORS, PueModel
from carbonreport.model.weather import BULBS, Bulb
from carbonreport.pue_file import read_pue
from carbonreport.weather_file import read_weather

_NO_SOURCE = "site file"
_TWO_NUMBERS = "summer and winter, value and summer, or PUE at two temperatures: at = [[5, 1.1], [30, 1.3]]"


class PueTable(msgspec.Struct, forbid_unknown_fields=True):
    """The table as it is written."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    months: tuple[float, ...] = ()
    hours: tuple[float, ...] = ()
    summer: float | None = None
    winter: float | None = None
    day: float | None = None
    night: float | None = None
    southern: bool = False
    series: str | None = None
    model: str | None = None
    at: tuple[tuple[float, float], ...] = ()
    knee_celsius: float | None = None
    latitude: float | None = None
    longitude: float | None = None
    weather: str | None = None
    load: float | None = None
    fixed_share: float | None = None
    source: str = _NO_SOURCE


_OF_A_MODEL = ("at", "knee_celsius", "latitude", "longitude", "weather", "load", "fixed_share")
_NOT_OF_A_MODEL = ("months", "hours", "day", "night", "series")


def site_pue(given: PueTable | float | str | None, path: Path) -> tuple[PueProfile | None, PueModel | None]:
    """PUE of a site file, and the model behind it where there is one.

    Raises:
        BadPue: It cannot be read, or no facility has it.
        BadSeries: A file that it names cannot be read.
        BadTime: A time in it has no zone.
    """
    if given is None:
        return None, None
    if not isinstance(given, PueTable):
        text = str(given)
        return (pue_of_region(text) if is_region(text) else pue_from_text(text.strip().lower(), f"site file {path.name}")), None
    if given.model is None:
        return _table(given, path), None
    model = _model(given, path)
    return model.profile(), model


def _table(given: PueTable, path: Path) -> PueProfile:
    """A table without a model; files stand beside the site file."""
    if alone := [name for name in _OF_A_MODEL if getattr(given, name) not in (None, ())]:
        raise BadPue(f"place.pue: {alone[0]} belongs to a model; add model = {' or '.join(repr(bulb) for bulb in BULBS)}")
    if given.series is not None:
        return read_pue(path.parent / given.series)
    months, hours = given.months, given.hours
    if given.summer is not None and given.winter is not None:
        months = two_seasons(given.summer, given.winter, is_south=given.southern)
    if given.day is not None and given.night is not None:
        hours = day_and_night(given.day, given.night)
    if months or hours:
        return pue_profile(months, hours, source=given.source, low=given.low, high=given.high)
    if given.value is None:
        raise BadPue("place.pue needs value, months, hours, summer and winter, day and night, series, or model")
    value, low, high = given.value, given.low, given.high
    if low is None and high is None:
        return PueProfile(value, value, value, "reported", given.source, has_range=False)
    return PueProfile(value, value if low is None else low, value if high is None else high, "reported", given.source)


def _model(given: PueTable, path: Path) -> PueModel:
    """A model, fitted once where its weather is a file, so that nothing is left to go wrong after the first step."""
    if other := [name for name in _NOT_OF_A_MODEL if getattr(given, name) not in (None, ())]:
        raise BadPue(f"place.pue: {other[0]} and model exclude each other; give one of the two")
    bulb = next((bulb for bulb in BULBS if bulb == given.model), None)
    if bulb is None:
        raise BadPue(f"place.pue: model {given.model!r} is none of {', '.join(BULBS)}")
    if given.knee_celsius is not None and bulb == "dry-bulb":
        raise BadPue("place.pue: knee_celsius belongs to the wet-bulb model")
    try:
        return _checked(given, bulb, path)
    except BadPue as error:
        raise BadPue(f"place.pue: {error}") from error


def _checked(given: PueTable, bulb: Bulb, path: Path) -> PueModel:
    if (given.load is None) != (given.fixed_share is None):
        raise BadPue("load and fixed_share belong together; give both")
    if (given.latitude is None) != (given.longitude is None):
        raise BadPue("latitude and longitude belong together; give both")
    cold, warm, celsius, annual = _two_numbers(given)
    weather = None if given.weather is None else read_weather(path.parent / given.weather, bulb)
    model = PueModel(
        bulb=bulb,
        cold=cold,
        warm=warm,
        cold_celsius=None if celsius is None else celsius[0],
        warm_celsius=None if celsius is None else celsius[1],
        is_south=given.southern,
        knee_celsius=KNEE_CELSIUS if given.knee_celsius is None else given.knee_celsius,
        annual=annual,
        factors=_factors(given),
        load=1.0 if given.load is None else given.load,
        fixed_share=0.0 if given.fixed_share is None else given.fixed_share,
        spot=None if given.latitude is None or given.longitude is None else (given.latitude, given.longitude),
        weather=weather,
        said_by="" if given.source == _NO_SOURCE else given.source,
    )
    if not model.by_season:
        fit(model)
    if weather is not None:
        refuse_implausible(fit(model, weather), weather)
    return model


def _two_numbers(given: PueTable) -> tuple[float, float, tuple[float, float] | None, float | None]:
    """The cold and the warm number, the two temperatures or None, and the annual value or None."""
    has_seasons = given.summer is not None or given.winter is not None
    if given.at and has_seasons:
        raise BadPue(f"two numbers are enough: {_TWO_NUMBERS}")
    if given.at:
        if len(given.at) != 2:
            raise BadPue(f"at needs two pairs of °C and PUE, not {len(given.at)}: at = [[5, 1.1], [30, 1.3]]")
        (cold_celsius, cold), (warm_celsius, warm) = sorted(given.at)
        return cold, warm, (cold_celsius, warm_celsius), given.value
    numbers = (given.winter, given.value, given.summer)
    if sum(number is not None for number in numbers) != 2:
        raise BadPue(f"a model takes two numbers: {_TWO_NUMBERS}")
    if given.value is None:
        return given.winter or 0.0, given.summer or 0.0, None, None
    # The two halves of the year make up its mean.
    winter = 2 * given.value - given.summer if given.summer is not None else given.winter or 0.0
    summer = 2 * given.value - given.winter if given.winter is not None else given.summer or 0.0
    if winter < 1.0:
        raise BadPue(f"value {given.value:g} and summer {summer:g} leave {winter:.3g} for the other half of the year, which is below 1")
    return winter, summer, None, given.value


def _factors(given: PueTable) -> tuple[float, float]:
    """The range of the value as factors, where somebody gave one."""
    if given.low is None and given.high is None:
        return MODEL_FACTORS
    if given.value is None:
        raise BadPue("low and high are the range of value; give value too")
    return ((given.low or given.value) / given.value, (given.high or given.value) / given.value)
