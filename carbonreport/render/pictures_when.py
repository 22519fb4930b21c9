"""Numbers and words of the picture of starts: what each would cost, and what a delay saves at most. Pure."""

from dataclasses import dataclass

import numpy as np

from carbonreport.model.series import Array
from carbonreport.units import hours

TITLE = "What each start would cost, and what a delay saves"


@dataclass(frozen=True, slots=True, eq=False)
class StartNumbers:
    """Emissions of a job by its start, the first being now.

    Attributes:
        at_s: POSIX seconds, rising. Shape (n,).
        grams: Emissions. [g] Shape (n,).
        source: Where the hours are from.
        mass_unit: Of what: "gCO2e"; None to show shares of the first start, of whatever kind the run's own figure is.
    """

    at_s: Array
    grams: Array
    source: str
    mass_unit: str | None = "gCO2e"

    def __post_init__(self) -> None:
        if self.at_s.size < 2 or self.at_s.size != self.grams.size or np.any(np.diff(self.at_s) <= 0):
            raise ValueError(f"{self.at_s.size} starts with {self.grams.size} costs make no picture")

    @property
    def best(self) -> int:
        """The cheapest start, the earliest of several."""
        return int(np.argmin(self.grams))

    @property
    def delays_h(self) -> Array:
        """How much later than now each is. [h] Shape (n,)."""
        return np.asarray(hours(self.at_s - self.at_s[0]), dtype=np.float64)

    @property
    def savings_percent(self) -> Array:
        """Most that can be saved by a delay of at most so long, of the cost of now. Shape (n,)."""
        return np.asarray(100 * (1 - np.minimum.accumulate(self.grams) / self.grams[0]), dtype=np.float64)


def starts_caption(numbers: StartNumbers) -> str:
    """How to read it."""
    return (
        f"Above, the location-based emissions of the whole job by its start; the dashed line is the cost of starting at the first one. "
        f"Below, the most that a delay of up to so many hours lowers them, before it is shrunk to what can be expected. Hours: {numbers.source}."
    )


def starts_in_words(numbers: StartNumbers) -> str:
    """What it shows, for those who cannot see it."""
    delay_h, most = float(numbers.delays_h[numbers.best]), float(numbers.savings_percent[-1])
    worst = 100 * (float(numbers.grams.max()) / float(numbers.grams[0]) - 1)
    return f"The cheapest start is {delay_h:.1f} hours after the first one, {most:.0f} % lower; the dearest is {worst:.0f} % higher."
