"""How fast hours come back: a year of many zones from the disk, and a range that was fetched before through a provider.

    python benchmarks/grid_cache.py [--zones 123]

Zones are the product's own, those with hours of their own first; the hours are what the embedded profile makes of each, 2024 through, with
an error that the next hour mostly keeps, rounded as providers round. Nothing is fetched, and none of these hours is a measurement.
Goals: a year of 123 zones in under 2 s, a cached range of a day in under 5 ms. Exits with 1 where one is missed.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from carbonreport.combine.seasonal import expand
from carbonreport.grid.cache import GridCache, Key
from carbonreport.grid.readings import MEASURED, Readings
from carbonreport.grid.sources.embedded import EmbeddedGrid
from carbonreport.grid.sources.energycharts import create
from carbonreport.grid.zones import all_zones
from carbonreport.model.series import Family
from carbonreport.request import Request

HOUR = 3600.0
BEGIN_S, HOURS = 1_704_067_200.0, 8784  # 2024
NOW_S = BEGIN_S + 2 * HOURS * HOUR
YEAR_GOAL_S, DAY_GOAL_S = 2.0, 0.005


def main() -> int:
    """Print the figures; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zones", type=int, default=123)
    zones = parser.parse_args().zones
    with tempfile.TemporaryDirectory() as folder:
        are_met = [many_zones(GridCache(Path(folder) / "many"), zones), one_range(GridCache(Path(folder) / "one"))]
    return int(not all(are_met))


def zone_codes(count: int) -> list[str]:
    """Codes of the product's zones, those with a typical day curve first."""
    has_shape = {row.code: EmbeddedGrid().profile(row.code).shape is not None for row in all_zones()}
    return sorted(has_shape, key=lambda code: not has_shape[code])[:count]


def year(zone: str, family: Family, random: np.random.Generator) -> Readings:
    """A year of whole UTC hours of a zone. A zone of half hours has two typical values an hour, a zone without a day curve one a year: each hour takes the value of its middle."""
    starts = BEGIN_S + HOUR * np.arange(HOURS)
    series = expand(EmbeddedGrid().profile(zone), BEGIN_S, BEGIN_S + HOURS * HOUR)
    typical = series.grams_per_kwh[np.searchsorted(series.edges_s, starts + HOUR / 2, side="right") - 1]
    off = np.zeros(HOURS)
    for i, step in enumerate(random.normal(0, 0.05, HOURS)):
        off[i] = 0.95 * off[i - 1] + step
    grams = np.round(typical * np.exp(off), 2)
    return Readings(
        zone, "typical", family, "embedded profile with noise", starts, starts + HOUR, grams, np.full(HOURS, MEASURED, dtype=np.int8)
    )


def many_zones(cache: GridCache, count: int) -> bool:
    """Write and read a year of each zone; whether reading was in time."""
    random = np.random.default_rng(6)
    years = {zone: year(zone, Family(), random) for zone in zone_codes(count)}
    keys = [Key("typical", zone, Family()) for zone in years]
    begin = time.perf_counter()
    for key in keys:
        cache.write(key, years[key.zone], (BEGIN_S, BEGIN_S + HOURS * HOUR), NOW_S)
    written_s = time.perf_counter() - begin
    begin = time.perf_counter()
    found = {key.zone: cache.read(key, BEGIN_S, BEGIN_S + HOURS * HOUR, NOW_S) for key in keys}
    read_s = time.perf_counter() - begin
    if not all(np.array_equal(found[zone].values, readings.grams_per_kwh) for zone, readings in years.items()):
        raise SystemExit("what was read is not what was written")
    size = sum(entry.size_bytes for entry in cache.entries())
    print(
        f"{len(years)} zones, {', '.join([*years][:3])} … {[*years][-1]}, x {HOURS} h ({size / 1e6:.1f} MB): "
        f"written in {written_s:.2f} s, read in {read_s:.2f} s (goal {YEAR_GOAL_S:g} s)"
    )
    return read_s < YEAR_GOAL_S


def one_range(cache: GridCache) -> bool:
    """Take ranges of a year that was fetched before; whether a day was in time."""

    def never(request: Request) -> bytes:
        raise AssertionError(f"{request.host} was asked")

    source = create({}, fetch=never, cache=cache)
    family = source.provider.family
    hours = year("DE", family, np.random.default_rng(6))
    cache.write(Key("energycharts", "DE", family), hours, (BEGIN_S, BEGIN_S + HOURS * HOUR), NOW_S)
    medians = {}
    for name, length in (("a day", 24), ("a week", 168), ("a year", HOURS)):
        times = []
        for i in range(30):
            begin = time.perf_counter()
            source.series("DE", BEGIN_S + i * HOUR + 60, BEGIN_S + min(i + length, HOURS) * HOUR)
            times.append(time.perf_counter() - begin)
        medians[name] = float(np.median(times))
        print(f"{name} that was fetched before: {1e3 * medians[name]:.2f} ms (goal for a day {1e3 * DAY_GOAL_S:g} ms)")
    return medians["a day"] < DAY_GOAL_S


if __name__ == "__main__":
    sys.exit(main())
