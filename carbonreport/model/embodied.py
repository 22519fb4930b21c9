"""What a site says of its hardware's manufacture and of its electricity contract."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EmbodiedSource:
    """Manufacture of one kind of device, spread over the hours of its life in which it is used.

    Attributes:
        device: Device name as the record has it ("NVIDIA H200"), or "server".
        kg: Emissions of making one. [kgCO2e]
        lifetime_years: Years until it is retired.
        utilisation: Share of that time in which it is used, above 0 to 1.
        source: Where the figure comes from.
        per_gpus: GPUs that share one of it: 8 for a server of eight; 1 for the GPU itself.
    """

    device: str
    kg: float
    lifetime_years: float
    utilisation: float
    source: str
    per_gpus: float = 1.0

    def __post_init__(self) -> None:
        for name in ("kg", "lifetime_years", "per_gpus"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"embodied {name} of {self.device} is {value!r}; it must be above 0")
        if not 0 < self.utilisation <= 1:
            raise ValueError(f"utilisation of {self.device} is {self.utilisation!r}; it is a share above 0, up to 1")


@dataclass(frozen=True, slots=True)
class Contract:
    """An electricity contract, for the market-based figure beside the location-based one.

    Attributes:
        grams_per_kwh: Intensity that the contract states. [gCO2e/kWh]
        share: Share of the energy that it covers, 0 to 1.
        instrument: What it is: "power purchase agreement, wind, 2026".
    """

    grams_per_kwh: float
    share: float
    instrument: str

    def __post_init__(self) -> None:
        if not (math.isfinite(self.grams_per_kwh) and self.grams_per_kwh >= 0):
            raise ValueError(f"contract grams_per_kwh is {self.grams_per_kwh!r}; it must be 0 or more")
        if not 0 <= self.share <= 1:
            raise ValueError(f"contract share is {self.share!r}; it is a share from 0 to 1")
