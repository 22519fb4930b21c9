"""Plain words for counts, lists, places, methods and qualities."""

from collections.abc import Sequence
from datetime import datetime

from carbonreport.model.run import Method
from carbonreport.model.series import Family, Quality

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def count_in_words(n: int) -> str:
    """One to ten in words, the rest in figures."""
    return _NUMBERS[n] if 0 <= n < len(_NUMBERS) else f"{n:,}"


_SCALES = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))


def in_scale(number: float) -> str:
    """A number that somebody gave, as he would say it: 1.3 billion, 7,000, 49.6."""
    for size, name in _SCALES:
        if number >= size:
            return f"{number / size:,.6g}\u00a0{name}"
    return f"{number:,.6g}" if number < 1e6 and number != int(number) else f"{number:,.0f}"


def listed(parts: Sequence[str]) -> str:
    """A, B and C."""
    if len(parts) <= 1:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def capital(text: str) -> str:
    """The same sentence with a capital first letter."""
    return text[:1].upper() + text[1:]


def clock_name(moment: datetime) -> str:
    """CET; or UTC+03:00 where the zone's time has no name."""
    name = f"{moment:%Z}"
    return f"UTC{moment.isoformat()[-6:]}" if name.startswith(("+", "-")) else name


def shortened(text: str, longest: int = 60) -> str:
    """A name on one line and of a length that a table bears."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def unbracketed(text: str) -> str:
    """A text that will stand in brackets: inner ones become commas."""
    return text.replace(" (", ", ").replace("(", "").replace(")", "")


_WITH_ARTICLE = ("United ", "Netherlands", "Philippines", "Bahamas", "Maldives", "Gambia", "Comoros", "Democratic Republic", "State of ")
_ENDS_WITH_ARTICLE = (" Islands", " Republic", " Territory", " Territories")


def placed(zone: str, name: str) -> str:
    """A grid zone in a sentence, after "in": Germany, the Netherlands, the area of PJM Interconnection."""
    has_article = name.startswith(_WITH_ARTICLE) or name.endswith(_ENDS_WITH_ARTICLE)
    if zone.startswith("US-") and zone.count("-") > 1:  # balancing areas go by the names of companies
        return f"the area of {name}"
    return f"the {name}" if has_article else name


# Method -> of one board, of several boards.
_SENSORS: dict[Method, tuple[str, str]] = {
    "anchored": ("power sensor scaled to its energy counter", "power sensors scaled to their energy counters"),
    "counter": ("energy counter", "energy counters"),
    "instant": ("power sensor", "power sensors"),
    "averaged": ("one-second mean of power", "one-second means of power"),
}


def sensors_in_words(methods: Sequence[Method], boards: int) -> str:
    """How the energy of GPUs is known: "the boards' energy counters, not calibrated"."""
    read = [_SENSORS[method][boards > 1] for method in methods if method in _SENSORS]
    whose = "the boards’" if boards > 1 else "the board’s"
    parts = [f"{whose} {listed(read)}, not calibrated"] if read else []
    return "; ".join([*parts, *(["as reported"] if "reported" in methods else [])])


def counters_in_words(kind: str, method: Method) -> str:
    """How the energy of anything but a GPU is known."""
    if method == "model":
        return "a model of busy time"
    if method == "reported":
        return "as reported"
    return "RAPL" if kind in ("cpu", "dram") else "their own meters"


def charged_by(quality: Quality, month: str, is_one: bool) -> tuple[str, str]:
    """What the hours of grids were charged by, before and after the brackets with the mean."""
    typical = f"a typical {month} profile" if month else "typical profiles by month and hour"
    its, mean = ("its", "yearly mean") if is_one else ("their", "yearly means")
    return {
        "measured": (f"{its} hours as they were", ""),
        "estimated": (f"{its} hours as the provider estimated them", ""),
        "typical": (typical, f", not by {its} hours as they were"),
        "annual": (f"{its} {mean}", ", every hour alike"),
        "forecast": ("a forecast", f", not by {its} hours as they were"),
    }[quality]


def quality_in_words(quality: Quality, month: str) -> str:
    """What the hours were charged by, for a cell."""
    return {
        "measured": "observed hours",
        "estimated": "hours estimated by the provider",
        "typical": f"typical {month} profile" if month else "typical profile by month and hour",
        "annual": "yearly mean",
        "forecast": "forecast",
    }[quality]


def family_in_words(family: Family) -> str:
    """What kind of intensity it is; what the data do not say is said to be missing."""
    factor = {"lifecycle": "life-cycle", "direct": "direct"}.get(family.factor, "life-cycle or direct is not stated")
    accounting = "" if family.accounting == "not stated" else f", {family.accounting}-based"
    return f"{family.signal}, {factor}{accounting}"
