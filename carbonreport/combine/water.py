"""Water that the facility used: IT energy times its litres for each kWh. A figure of its own, in no sum of carbon."""

from carbonreport.combine.intervals import Factors, product
from carbonreport.model.origin import weakest
from carbonreport.model.quantity import Quantity
from carbonreport.model.water import WaterUse
from carbonreport.units import kwh


def water_used(it_joules: Quantity, use: WaterUse | None) -> Quantity | None:
    """Litres of a run's IT energy, or None where nobody gave the site's use. [L]"""
    if use is None:
        return None
    value = kwh(it_joules.value) * use.litres_per_kwh
    low, high = use.ends
    if it_joules.value <= 0 or use.litres_per_kwh <= 0:
        top = kwh(it_joules.high) * high
        return Quantity(value, 0.0, max(top, value), "L", weakest(it_joules.origin, "reported"), _source(use), "water")
    energy = Factors(max(it_joules.low / it_joules.value, 1e-3), it_joules.high / it_joules.value)
    both = product(energy, Factors(max(low / use.litres_per_kwh, 1e-3), high / use.litres_per_kwh))
    return Quantity(value, value * both.low, value * both.high, "L", weakest(it_joules.origin, "reported"), _source(use), "water")


def _source(use: WaterUse) -> str:
    range_ = "" if use.low is not None or use.high is not None else ", no range given"
    return f"IT energy × {use.litres_per_kwh:g}\u00a0L/kWh ({use.source}{range_})"
