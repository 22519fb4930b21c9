"""Plain words for counts, lists, methods and qualities."""

from collections.abc import Sequence

from carbonreport.model.run import DeviceKind, Method
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


_GPU_METHODS: dict[Method, str] = {
    "anchored": "boards' power sensors scaled to their energy counters, not calibrated",
    "counter": "boards' energy counters, not calibrated",
    "instant": "boards' power sensors, not calibrated",
    "averaged": "one-second means of the boards' power, not calibrated",
    "reported": "as reported",
    "model": "power times hours, nothing measured",
}
_HOST_METHODS: dict[Method, str] = {"counter": "RAPL", "reported": "as reported", "model": "a model of busy time"}


def method_in_words(method: Method, kind: DeviceKind) -> str:
    """How a device's energy is known."""
    return _GPU_METHODS[method] if kind == "gpu" else _HOST_METHODS.get(method, "power sensors")


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
