"""How fast hours come back: a year of many zones from the disk, and a range that was fetched before through a provider.

    python benchmarks/grid_cache.py [--zones 123]

Goals: a year of 123 zones in under 2 s, a cached range of a day in under 5 ms. Hours are made up; nothing is fetched.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from carbonreport.grid.cache import GridCache, Key
from carbonreport.grid.readings import MEASURED, Readings
from carbonreport.grid.sources.energycharts import create
from carbonreport.model.series import Family
from carbonreport.request import Request

HOUR = 3600.0
BEGIN_S, HOURS = 1_704_067_200.0, 8784  # 2024
NOW_S = BEGIN_S + 2 * HOURS * HOUR


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zones", type=int, default=123)
    zones = parser.parse_args().zones
    with tempfile.TemporaryDirectory() as folder:
        many_zones(GridCache(Path(folder) / "many"), zones)
        one_range(GridCache(Path(folder) / "one"))


def year(zone: str, family: Family) -> Readings:
    starts = BEGIN_S + HOUR * np.arange(HOURS)
    grams = 300 + 100 * np.sin(np.arange(HOURS) / 24)
    return Readings(zone, "made up", family, "made up", starts, starts + HOUR, grams, np.full(HOURS, MEASURED, dtype=np.int8))


def many_zones(cache: GridCache, count: int) -> None:
    keys = [Key("made-up", f"Z{i}", Family()) for i in range(count)]
    begin = time.perf_counter()
    for key in keys:
        cache.write(key, year(key.zone, key.family), (BEGIN_S, BEGIN_S + HOURS * HOUR), NOW_S)
    written_s = time.perf_counter() - begin
    begin = time.perf_counter()
    rows = sum(cache.read(key, BEGIN_S, BEGIN_S + HOURS * HOUR, NOW_S).starts_s.size for key in keys)
    read_s = time.perf_counter() - begin
    size = sum(entry.size_bytes for entry in cache.entries())
    print(f"{count} zones x {HOURS} h ({rows} rows, {size / 1e6:.1f} MB): written in {written_s:.2f} s, read in {read_s:.2f} s (goal 2 s)")


def one_range(cache: GridCache) -> None:
    def never(request: Request) -> bytes:
        raise AssertionError(f"{request.host} was asked")

    source = create({}, fetch=never, cache=cache)
    cache.write(
        Key("energycharts", "DE", source.provider.family), year("DE", source.provider.family), (BEGIN_S, BEGIN_S + HOURS * HOUR), NOW_S
    )
    for name, length in (("a day", 24), ("a week", 168), ("a year", HOURS)):
        times = []
        for i in range(30):
            begin = time.perf_counter()
            source.series("DE", BEGIN_S + i * HOUR + 60, BEGIN_S + min(i + length, HOURS) * HOUR)
            times.append(time.perf_counter() - begin)
        print(f"{name} that was fetched before: {1e3 * float(np.median(times)):.2f} ms (goal for a day 5 ms)")


if __name__ == "__main__":
    main()
