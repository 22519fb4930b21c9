"""Plain words for counts, lists, methods and qualities."""

from collections.abc import Sequence

from carbonreport.model.run import Method
from carbonreport.model.series import Quality

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def count_in_words(n: int) -> str:
    """One to ten in words, the rest in figures."""
    return _NUMBERS[n] if 0 <= n < len(_NUMBERS) else f"{n:,}"


def listed(parts: Sequence[str]) -> str:
    """A, B and C."""
    if len(parts) <= 1:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def method_in_words(method: Method, source: str) -> str:
    """How a device's energy is known."""
    label = {
        "anchored": "measured",
        "counter": "measured",
        "instant": "measured",
        "averaged": "measured, one-second averages",
        "reported": "reported",
        "model": "estimated",
    }[method]
    return f"{label}: {source}"


def quality_in_words(quality: Quality, month: str) -> str:
    """What the hours of a grid were charged by."""
    typical = f"a typical {month} profile" if month else "typical profiles by month and hour"
    return {
        "measured": "its hours as they were",
        "estimated": "hours that the provider estimated",
        "typical": f"{typical}, not by the hours as they were",
        "annual": "its yearly mean, every hour alike",
        "forecast": "a forecast",
    }[quality]
