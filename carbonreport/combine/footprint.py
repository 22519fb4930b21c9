"""Energy and emissions of charged runs: totals with intervals, by device, span, hour and zone."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from carbonreport.combine.charge import charge
from carbonreport.combine.embodied import embodied_emissions
from carbonreport.combine.hourly import by_hour, hour_of
from carbonreport.combine.intervals import EXACT, Factors, Part, device_factors, independent_sum, product
from carbonreport.combine.nested import counted_runs
from carbonreport.combine.origins import weakest
from carbonreport.combine.overlap import wall_seconds
from carbonreport.combine.spans import span_table
from carbonreport.combine.water import water_used
from carbonreport.combine.zone_grids import ZoneGrids
from carbonreport.errors import FamilyMix
from carbonreport.model.embodied import Contract, EmbodiedSource
from carbonreport.model.footprint import ChargedRun, DeviceEnergy, Footprint, Hours
from carbonreport.model.notes import Note
from carbonreport.model.origin import ORIGINS, Origin
from carbonreport.model.pue import PueProfile
from carbonreport.model.quantity import Quantity
from carbonreport.model.run import DEVICE_KINDS, DeviceKind, RunRecord
from carbonreport.model.series import IntensitySeries
from carbonreport.model.water import WaterUse
from carbonreport.units import JOULES_PER_KWH, kwh


def footprint(
    run: RunRecord,
    *,
    grid: IntensitySeries,
    pue: PueProfile,
    embodied: Sequence[EmbodiedSource] = (),
    contract: Contract | None = None,
    water: WaterUse | None = None,
) -> Footprint:
    """Footprint of one run on one grid at one PUE.

    Raises:
        GridGap: The series does not cover the run.
    """
    return total([charge(run, grid=grid, pue=pue)], embodied=embodied, contract=contract, water=water)


def total(
    charged: Sequence[ChargedRun],
    *,
    embodied: Sequence[EmbodiedSource] = (),
    contract: Contract | None = None,
    water: WaterUse | None = None,
) -> Footprint:
    """Footprint of many charged runs, each GPU-second once.

    Raises:
        FamilyMix: The runs were charged with intensities of two families.
        ValueError: There is no run.
    """
    if not charged:
        raise ValueError("a footprint needs at least one run")
    families = list(dict.fromkeys(c.grid.family for c in charged))
    if len(families) > 1:
        raise FamilyMix(str(families[0]), str(families[1]))
    counted, inner, notes = counted_runs(charged)
    sums = _Sums(counted)
    table = span_table(counted, inner, sums.it_joules, sums.grams, sums.it_factors)
    made, embodied_notes = embodied_emissions([c.run for c in counted], embodied)
    market, market_notes = sums.market(contract)
    it_joules = sums.quantity(sums.it_joules, "J", sums.it_factors, sums.energy_origin, sums.meters)
    return Footprint(
        it_joules=it_joules,
        facility_joules=sums.quantity(
            sums.facility_joules, "J", sums.facility_factors, sums.facility_origin, f"{sums.meters}; PUE {sums.pue_source}"
        ),
        grams=sums.quantity(sums.grams, sums.mass_unit, sums.gram_factors, sums.gram_origin, sums.grid_source, "location-based"),
        market_grams=market,
        embodied=made,
        water=water_used(it_joules, water),
        pue=sums.pue_quantity(),
        kinds=sums.kinds(),
        devices=sums.devices(),
        spans=table.spans,
        rest_joules=table.rest_joules,
        rest_grams=table.rest_grams,
        hours=sums.hours(),
        grids=sums.zones.uses(),
        covered=_covered([c.run for c in counted]),
        run_seconds=wall_seconds(c.run for c in counted),
        gpu_seconds=sum(c.run.duration_s * sum(d.count for d in c.run.devices if d.kind == "gpu") for c in counted),
        notes=_unique(
            [*(n for c in charged for n in c.notes), *notes, *embodied_notes, *market_notes, *_length_notes(counted), *table.notes]
        ),
        log_widths=sums.log_widths(),
        origins=sums.origin_shares(),
    )


def _unique(notes: Sequence[Note]) -> tuple[Note, ...]:
    return tuple(dict.fromkeys(notes))


def _length_notes(counted: Sequence[ChargedRun]) -> list[Note]:
    return [Note("zero-length", f"run {c.run.name!r} has no length") for c in counted if c.run.duration_s == 0 and c.run.is_complete]


def is_read(run: RunRecord, device: str) -> bool:
    """Whether a device of a run gave an energy at all: two readings, or a clean run without length, which needs none."""
    points = next((len(trace.offsets_s) for trace in run.traces if trace.device == device), 0)
    return points > 1 or (run.is_complete and run.duration_s == 0)


def _covered(runs: Sequence[RunRecord]) -> float:
    """Part of the devices' time with a reading; of a run that broke off before its first one nobody knows how long it was."""
    asked = sum(run.duration_s * len(run.devices) for run in runs)
    if asked == 0:
        return 1.0 if all(run.devices and run.is_complete for run in runs) else 0.0
    read = 0.0
    for run in runs:
        for trace in run.traces:
            if trace.offsets_s:
                gaps = sum(
                    min(b, trace.offsets_s[-1]) - max(a, trace.offsets_s[0])
                    for a, b in trace.gaps
                    if b > trace.offsets_s[0] and a < trace.offsets_s[-1]
                )
                read += trace.offsets_s[-1] - trace.offsets_s[0] - gaps
    return min(max(read / asked, 0.0), 1.0)


class _Sums:
    """Arrays and totals over all counted runs, and their intervals."""

    def __init__(self, counted: Sequence[ChargedRun]) -> None:
        self.runs = counted
        self.mass_unit = f"g{counted[0].grid.family.gas}"  # CO2e, or CO2 alone
        self.slice_it = [c.it_joules.sum(axis=0) for c in counted]
        self.slice_facility = [it * c.pue for it, c in zip(self.slice_it, counted, strict=True)]
        self.slice_grams = [kwh(f) * c.grams_per_kwh for f, c in zip(self.slice_facility, counted, strict=True)]
        self.it_joules = float(sum(s.sum() for s in self.slice_it))
        self.facility_joules = float(sum(s.sum() for s in self.slice_facility))
        self.grams = float(sum(s.sum() for s in self.slice_grams))
        self._parts = self._device_parts()
        self.it_factors = device_factors([part for part, _, _ in self._parts])
        self.pue_factors = self._pue_interval()
        self.zones = ZoneGrids(counted, self.slice_facility, self.slice_grams)
        self.grid_factors = self.zones.interval()
        self.facility_factors = product(self.it_factors, self.pue_factors)
        self.gram_factors = product(device_factors([part for _, part, _ in self._parts]), self.pue_factors, self.grid_factors)
        self.energy_origin = weakest([(p.device.origin, p.amount) for p, _, _ in self._parts])
        pue_origin = weakest([(c.pue_origin, float(f.sum())) for c, f in zip(counted, self.slice_facility, strict=True)])
        self.facility_origin = max(self.energy_origin, pue_origin, key=ORIGINS.index)
        self.gram_origin = max(self.facility_origin, self.zones.origin(), key=ORIGINS.index)
        self.meters = _joined(p.device.source for p, _, _ in self._parts)
        self.pue_source = _joined(c.pue_source for c in counted)
        self.grid_source = _joined(c.grid.source for c in counted)

    def quantity(self, value: float, unit: str, factors: Factors, origin: Origin, source: str, family: str = "") -> Quantity:
        return Quantity(value, value * factors.low, value * factors.high, unit, origin, source, family)

    # Devices

    def _device_parts(self) -> list[tuple[Part, Part, ChargedRun]]:
        """For each run and device: its part of the joules, its part of the grams, and the run."""
        parts = []
        for c in self.runs:
            per_joule = c.pue * c.grams_per_kwh / JOULES_PER_KWH
            mean = float(per_joule.mean()) if per_joule.size else 0.0
            for device, joules in zip(c.devices, c.it_joules, strict=True):
                parts.append((Part(device, float(joules.sum()), 2), Part(device, float(joules @ per_joule), 2, mean), c))
        return parts

    def devices(self) -> tuple[DeviceEnergy, ...]:
        merged: dict[tuple[str, str, str], DeviceEnergy] = {}
        for joules, grams, c in self._parts:
            device = joules.device
            key = (device.id if device.kind == "gpu" else f"{c.run.host} {device.id}", device.kind, device.method)
            before = merged.get(key)
            energy, mass = joules.amount + (before.it_joules if before else 0.0), grams.amount + (before.grams if before else 0.0)
            share = energy / self.it_joules if self.it_joules else 0.0
            read = is_read(c.run, device.id) or (before is not None and before.is_read)
            merged[key] = DeviceEnergy(
                device.id, device.name, device.kind, device.method, device.source, energy, mass, share, device.count, c.run.host, read
            )
        return tuple(merged.values())

    def kinds(self) -> tuple[tuple[DeviceKind, Quantity], ...]:
        """Energy by kind, without those of which no device was ever read."""
        rows = []
        for kind in DEVICE_KINDS:
            parts = [p for p, _, _ in self._parts if p.device.kind == kind]
            if any(is_read(c.run, p.device.id) for p, _, c in self._parts if p.device.kind == kind):
                amount = sum(p.amount for p in parts)
                origin = weakest([(p.device.origin, p.amount) for p in parts])
                rows.append((kind, self.quantity(amount, "J", device_factors(parts), origin, _joined(p.device.source for p in parts))))
        return tuple(rows)

    def origin_shares(self) -> tuple[tuple[str, float], ...]:
        shares: dict[str, float] = defaultdict(float)
        for part, _, _ in self._parts:
            shares[part.device.origin] += part.amount / self.it_joules if self.it_joules else 0.0
        return tuple(shares.items())

    # PUE

    def _pue_interval(self) -> Factors:
        amounts: dict[tuple[str, float], float] = defaultdict(float)
        factors: dict[tuple[str, float], Factors] = {}
        for c, facility in zip(self.runs, self.slice_facility, strict=True):
            # The hours of one model share its error; numbers that somebody gave are apart by their value.
            key = (c.pue_source, 0.0 if c.pue_origin == "estimated" or not c.pue.size else float(c.pue[0]))
            amounts[key] += float(facility.sum())
            low, high = c.pue_factors
            before = factors.get(key, EXACT)
            factors[key] = Factors(min(low, before.low), max(high, before.high))
        return independent_sum((amount, factors[key]) for key, amount in amounts.items())

    def pue_quantity(self) -> Quantity:
        value = (
            self.facility_joules / self.it_joules
            if self.it_joules
            else float(np.mean([c.pue[0] if c.pue.size else 1.0 for c in self.runs]))
        )
        origin = weakest([(c.pue_origin, float(f.sum())) for c, f in zip(self.runs, self.slice_facility, strict=True)])
        low = max(value * self.pue_factors.low, min(1.0, value))
        return Quantity(value, low, value * self.pue_factors.high, "1", origin, self.pue_source)

    # Market, hours, widths

    def market(self, contract: Contract | None) -> tuple[Quantity | None, list[Note]]:
        """Market-based emissions: the contract's share at its factor, the rest at the location-based intensity."""
        if contract is None:
            return None, []
        covered = kwh(self.facility_joules) * contract.share * contract.grams_per_kwh
        rest = self.grams * (1 - contract.share)
        factors = independent_sum([(covered, self.facility_factors), (rest, self.gram_factors)])
        notes = (
            [Note("contract-partial", f"the contract covers {contract.share * 100:.0f} %; the rest is at the location-based intensity")]
            if contract.share < 1
            else []
        )
        return self.quantity(
            covered + rest, self.mass_unit, factors, self.gram_origin if rest else self.facility_origin, contract.instrument, "market-based"
        ), notes

    def hours(self) -> Hours:
        starts = np.concatenate([hour_of(c) for c in self.runs])
        columns = [by_hour(starts, np.concatenate(rows)) for rows in (self.slice_it, self.slice_facility, self.slice_grams)]
        hours = np.unique(starts)
        quality = np.zeros(hours.size, dtype=np.int8)
        np.maximum.at(quality, np.searchsorted(hours, starts), np.concatenate([c.quality for c in self.runs]))
        return Hours(hours, columns[0][1], columns[1][1], columns[2][1], quality)

    def log_widths(self) -> tuple[tuple[str, float], ...]:
        """Half widths of ln of the emissions by kind: what would narrow the interval most."""
        whole = [grams for _, grams, _ in self._parts]
        gpu = [p for p in whole if p.device.kind == "gpu"]
        host = [p for p in whole if p.device.kind != "gpu"]
        rows = {"gpu": gpu, "host": host}
        widths = [(name, _width_of(parts, self.grams)) for name, parts in rows.items() if parts]
        return (*widths, ("pue", self.pue_factors.log_half_width), ("grid", self.grid_factors.log_half_width))


def _width_of(parts: Sequence[Part], grams: float) -> float:
    factors = device_factors(parts)
    amount = sum(p.amount for p in parts)
    return independent_sum([(amount, factors), (max(grams - amount, 0.0), EXACT)]).log_half_width


def _joined(sources: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(sources))
