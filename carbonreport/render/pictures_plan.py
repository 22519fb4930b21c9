"""Numbers and words of the picture of a frontier: energy by allowed slowdown, one line a kind of plan. Pure."""

from dataclasses import dataclass

from carbonreport.model.series import Array

TITLE = "How much energy clocks save for how much time"


@dataclass(frozen=True, slots=True, eq=False)
class FrontierNumbers:
    """Energy of plans by the slowdown that is allowed.

    Attributes:
        allowed_percent: Slowdowns, rising. [%] Shape (n,).
        lines: Name, and change of energy with each slowdown; NaN where there is no such plan. [%] Shapes (n,).
        latency: What switches were planned with, in words.
    """

    allowed_percent: Array
    lines: tuple[tuple[str, Array], ...]
    latency: str

    def __post_init__(self) -> None:
        if self.allowed_percent.size < 2 or any(values.size != self.allowed_percent.size for _, values in self.lines):
            raise ValueError(f"{self.allowed_percent.size} slowdowns make no picture")


def frontier_caption(numbers: FrontierNumbers) -> str:
    """How to read it."""
    return (
        f"Change of the energy of an iteration against unlocked clocks, by how much longer it may take. Switches of clocks: {numbers.latency}. "
        "Plans are predictions of a table; measure the chosen one again."
    )


def frontier_in_words(numbers: FrontierNumbers) -> str:
    """What it shows, for those who cannot see it."""
    ends = "; ".join(f"{name}: {values[0]:+.1f} % to {values[-1]:+.1f} %" for name, values in numbers.lines)
    return f"From {numbers.allowed_percent[0]:g} to {numbers.allowed_percent[-1]:g} % of allowed slowdown, {ends}."
