"""Emissions of making the hardware, spread over the hours in which it is used: M = TE x hours / (lifetime x use)."""

import math
from collections.abc import Sequence

from carbonreport.combine.intervals import Factors, independent_sum, product
from carbonreport.model.embodied import EmbodiedSource
from carbonreport.model.footprint import Embodied
from carbonreport.model.notes import Note
from carbonreport.model.quantity import Quantity
from carbonreport.model.run import RunRecord
from carbonreport.units import SECONDS_PER_YEAR, grams_from_kilograms

# Spread of published figures, lifetimes and uses (method, uncertainty budget: 164-575 kg for one H100; 3-6 years; 0.5-1).
_SPREAD = product(Factors(0.53, 1.87), Factors(0.72, 1.39), Factors(0.72, 1.39))
SERVER = "server"


def grams_per_second(source: EmbodiedSource) -> float:
    """Embodied emissions of one device's second. [gCO2e/s] (ISO/IEC 21031: M = TE x time share x resource share)."""
    return grams_from_kilograms(source.kg) / (source.lifetime_years * SECONDS_PER_YEAR * source.utilisation)


def embodied_emissions(runs: Sequence[RunRecord], sources: Sequence[EmbodiedSource]) -> tuple[Embodied | None, list[Note]]:
    """Embodied emissions of the devices that the site file names, for the time of the runs."""
    rows = [(source, grams_per_second(source) * _device_seconds(runs, source)) for source in sources]
    rows = [(source, grams) for source, grams in rows if grams > 0]
    if not rows:
        return None, []
    value = math.fsum(grams for _, grams in rows)
    factors = independent_sum((grams, _SPREAD) for _, grams in rows)
    basis = tuple(
        f"{s.device} {s.kg:,.6g} kg over {s.lifetime_years:g} years, {s.utilisation * 100:.0f} % used{_shared(s)} ({s.source})"
        for s, _ in rows
    )
    names = "; ".join(source.source for source, _ in rows)
    return Embodied(Quantity(value, value * factors.low, value * factors.high, "gCO2e", "assumed", names, "embodied"), basis), []


def _shared(source: EmbodiedSource) -> str:
    return "" if source.per_gpus == 1 else f", shared by {source.per_gpus:g} GPUs"


def _device_seconds(runs: Sequence[RunRecord], source: EmbodiedSource) -> float:
    """Seconds of the devices of that name; a server counts by its GPUs where no device is called so."""
    total = 0.0
    for run in runs:
        named = sum(device.count for device in run.devices if device.name.casefold() == source.device.casefold())
        if not named and source.device.casefold() == SERVER:
            named = sum(device.count for device in run.devices if device.kind == "gpu")
        total += run.duration_s * named / source.per_gpus
    return total
