"""A year of the ledger with its prices: charged as any run is, each moment at its own PUE and intensity."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import hypot
from typing import Any

from carbonreport.audit.engine import Engine
from carbonreport.audit.window import Window, board_names
from carbonreport.boards import find_board
from carbonreport.errors import CarbonreportError
from carbonreport.importers.drafts import GAINS
from carbonreport.model.audit import Priced
from carbonreport.model.quantity import Quantity
from carbonreport.model.run import ORIGIN_OF_METHOD, Device, EnergyTrace, Method, RunRecord
from carbonreport.model.series import Array
from carbonreport.site import Price, Site
from carbonreport.units import SECONDS_PER_HOUR, US_PER_S, kwh
from carbonreport.workflows.audit_boards import made_of, rated_powers, typical_watts
from carbonreport.workflows.charge import Charged, charge_records
from carbonreport.workflows.estimate import SHARE_HIGH, SHARE_LOW, TYPICAL_SHARE
from carbonreport.workflows.place import PlaceOptions

_METERED: tuple[Method, ...] = ("anchored", "counter", "instant", "averaged")


def priced_year(
    con: Any,
    window: Window,
    options: PlaceOptions,
    site: Site,
    price: Price | None,
    environ: Mapping[str, str],
    show: Callable[[str, bool], str],
    gpu: str,
) -> tuple[Priced, Charged, Engine] | None:
    """A year's figures; None where the ledger has nothing of it."""
    engine = Engine(con, window)
    engine.reconcile(typical_watts, gpu)
    hourly = engine.hourly()
    if not hourly and not engine.has_jobs():
        return None
    charged = charge_records([_as_run(hourly, window, engine.spreads())], options, environ)
    one = charged.runs[0]
    engine.price(one.edges_s, one.pue, one.grams_per_kwh)
    year = engine.year(show)
    found, whole = charged.footprint, year.whole
    made = made_of(year, site.embodied)
    return (
        Priced(
            year=year,
            it_joules=_at(found.it_joules, whole.it_joules),
            facility_joules=_at(found.facility_joules, whole.facility_joules),
            location_grams=_at(found.grams, whole.grams),
            pue=found.pue,
            market_grams=found.market_grams,
            embodied_grams=made.embodied.grams if made.embodied else None,
            embodied_basis=made.embodied.basis if made.embodied else (),
            embodied_for=made.boards,
            embodied_missing=made.missing,
            embodied_unused=made.unused,
            rated=rated_powers(engine.rated_energy()),
            cost=None if price is None else (kwh(whole.facility_joules) * price.per_kwh, price.currency),
        ),
        charged,
        engine,
    )


def check_board(con: Any, board: str) -> None:
    """Refuse a board of which neither the table nor the ledger's meters know anything.

    Raises:
        CarbonreportError: Nobody knows it; the message names the nearest.
    """
    if not board or typical_watts(board) is not None:
        return
    metered = [model for (model,) in con.execute("SELECT DISTINCT gpu_model FROM meters WHERE gpu_model <> ''").fetchall()]
    if board in metered or board_names([board, *metered])[board] in metered:
        return
    near = (*find_board(board).nearest, *metered)[:4]
    raise CarbonreportError(f"unknown board --gpu {board}" + (f"; nearest: {', '.join(near)}" if near else "; such as H200-SXM"))


def _as_run(hourly: Mapping[tuple[str, str], Array], window: Window, spreads: Mapping[str, tuple[float, float]]) -> RunRecord:
    """The year's energy as one run, by how it is known, so that the place charges it as it charges any run."""
    devices, traces = [], []
    meter = _gain_of_meters(hourly)
    begin_s, end_s = window.from_us / US_PER_S, window.until_us / US_PER_S
    for (known, method), joules in sorted(hourly.items()):
        name = f"{known} ({method})"
        edges_s = [begin_s, *((begin_s // SECONDS_PER_HOUR + i) * SECONDS_PER_HOUR for i in range(1, joules.size)), end_s]
        own: Method = method if method in _METERED else "reported" if known == "reported" else "model"
        low, high = _gain(own, method, spreads, meter)
        upto = [0.0, *joules.cumsum().tolist()]
        devices.append(Device(name, name, "other", own, low, high, _SOURCES.get(method, name), origin=ORIGIN_OF_METHOD[own]))
        traces.append(EnergyTrace(name, tuple(s - begin_s for s in edges_s), tuple(upto)))
    return RunRecord(f"year-{window.year}", f"the year {window.year}", "other", "", begin_s, end_s - begin_s, tuple(devices), tuple(traces))


_SOURCES = {
    "counter": "energy counters of the boards",
    "averaged": "power samples of the boards",
    "instant": "power samples of the boards",
    "anchored": "records of carbonreport",
    "reported": "Slurm's energy of whole nodes",
    "mean of the lab": "GPU time at the mean power that this lab measured of the board",
    "rated power": f"GPU time at {TYPICAL_SHARE * 100:.0f} % of the board's rated power",
    "idle power": "the idle power that this lab measured of the board",
}


_RATED_GAIN = (SHARE_LOW / TYPICAL_SHARE, SHARE_HIGH / TYPICAL_SHARE)


def _gain(own: Method, method: str, spreads: Mapping[str, tuple[float, float]], meter: tuple[float, float]) -> tuple[float, float]:
    """Lower and upper end of an energy over its value. What stands on the lab's own readings has their error and the spread, in quadrature."""
    if method == "rated power":
        return _RATED_GAIN
    if method not in ("mean of the lab", "idle power"):
        return GAINS[own]
    low, high = spreads.get(method, _RATED_GAIN if method == "mean of the lab" else GAINS[own])
    return 1 - hypot(1 - low, 1 - meter[0]), 1 + hypot(high - 1, meter[1] - 1)


def _gain_of_meters(hourly: Mapping[tuple[str, str], Array]) -> tuple[float, float]:
    """That of the method with the most measured energy."""
    measured = {method: float(joules.sum()) for (known, method), joules in hourly.items() if known == "measured" and method in _METERED}
    method = max(measured, key=lambda name: measured[name], default="averaged")
    return GAINS[next((one for one in _METERED if one == method), "averaged")]


def _at(quantity: Quantity, value: float) -> Quantity:
    """A quantity at a value summed another way, with the same factors."""
    if not quantity.value:
        return quantity
    return replace(quantity, value=value, low=value * quantity.low / quantity.value, high=value * quantity.high / quantity.value)
