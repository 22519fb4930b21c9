"""Hours on disk: what is remembered and for how long, several processes at once, and a sudden end."""

import multiprocessing
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from carbonreport.grid.cache import GridCache, Key, default_folder
from carbonreport.grid.readings import ESTIMATED, FORECAST, MEASURED, Readings
from carbonreport.model.series import Array, Family

FAMILY = Family()
KEY = Key("someone", "DE", FAMILY)
HOUR = 3600.0
START = datetime(2026, 1, 31, 22, tzinfo=UTC).timestamp()  # two hours before a month ends
LATER = START + 100 * 24 * HOUR


def readings(start_s: float, grams: list[float] | Array, quality: int = MEASURED, step_s: float = HOUR) -> Readings:
    starts = start_s + step_s * np.arange(len(grams))
    return Readings(
        "DE", "someone", FAMILY, "x", starts, starts + step_s, np.array(grams, dtype=float), np.full(len(grams), quality, dtype=np.int8)
    )


def span(count: int) -> tuple[float, float]:
    return START, START + count * HOUR


def test_what_was_written_is_read_also_across_the_turn_of_a_month(tmp_path):
    cache = GridCache(tmp_path)
    cache.write(KEY, readings(START, [1, 2, 3, 4]), span(4), LATER)
    found = cache.read(KEY, *span(4), LATER)
    assert list(found.values) == [1, 2, 3, 4]
    assert found.missing == ()
    assert sorted(path.name for path in tmp_path.rglob("*.crg")) == ["2026-01.crg", "2026-02.crg"]


def test_what_is_missing_is_named_to_the_second(tmp_path):
    cache = GridCache(tmp_path)
    cache.write(KEY, readings(START + HOUR, [2]), (START + HOUR, START + 2 * HOUR), LATER)
    found = cache.read(KEY, START + 60, START + 3 * HOUR, LATER)
    assert found.missing == ((START + 60, START + HOUR), (START + 2 * HOUR, START + 3 * HOUR))


def test_providers_zones_families_and_forecasts_are_apart(tmp_path):
    cache = GridCache(tmp_path)
    cache.write(KEY, readings(START, [1]), span(1), LATER)
    others = (
        Key("other", "DE", FAMILY),
        Key("someone", "FR", FAMILY),
        Key("someone", "DE", Family("direct")),
        Key("someone", "DE", Family(gas="CO2")),
        Key("someone", "DE", Family(signal="marginal")),
        Key("someone", "DE", FAMILY, "forecast"),
    )
    for key in others:
        assert cache.read(key, *span(1), LATER).missing == (span(1),)


def test_a_zone_cannot_leave_the_folder(tmp_path):
    cache = GridCache(tmp_path / "cache")
    cache.write(Key("someone", "../../etc", FAMILY), readings(START, [1]), span(1), LATER)
    assert all((tmp_path / "cache") in path.parents for path in tmp_path.rglob("*.crg"))


def test_an_hour_for_which_nothing_was_there_is_not_asked_again_for_a_day(tmp_path):
    cache = GridCache(tmp_path)
    cache.write(KEY, readings(START, [1]), span(3), LATER)
    assert cache.read(KEY, *span(3), LATER + 23 * HOUR).missing == ()
    assert list(cache.read(KEY, *span(3), LATER).values) == [1]
    assert cache.read(KEY, *span(3), LATER + 25 * HOUR).missing == ((START + HOUR, START + 3 * HOUR),)


@pytest.mark.parametrize(
    ("quality", "written_after_h", "read_after_h", "fresh"),
    [
        (MEASURED, 1.5, 1.9, True),  # within the half hour
        (MEASURED, 1.5, 3.0, False),  # it may have changed since
        (MEASURED, 50, 10_000, True),  # settled
        (ESTIMATED, 50, 60, True),
        (ESTIMATED, 50, 80, False),  # it may have been measured since
        (FORECAST, 50, 80, False),
    ],
)
def test_young_and_estimated_hours_are_believed_for_a_while_and_settled_ones_for_good(
    tmp_path, quality, written_after_h, read_after_h, fresh
):
    cache = GridCache(tmp_path)
    cache.write(KEY, readings(START, [1], quality), span(1), START + written_after_h * HOUR)
    found = cache.read(KEY, *span(1), START + read_after_h * HOUR)
    assert (found.missing == ()) is fresh
    assert cache.read(KEY, *span(1), START + read_after_h * HOUR, also_stale=True).missing == ()


def test_a_newer_value_replaces_an_older_one_and_an_observed_one_a_forecast(tmp_path):
    cache = GridCache(tmp_path)
    cache.write(KEY, readings(START, [1, 2], FORECAST), span(2), START)
    cache.write(KEY, readings(START, [10]), span(1), LATER)
    cache.write(KEY, readings(START, [99, 98], FORECAST), span(2), LATER)
    assert list(cache.read(KEY, *span(2), LATER).values) == [10, 98]


def test_hours_and_quarter_hours_never_overlap(tmp_path):
    cache = GridCache(tmp_path)
    cache.write(KEY, readings(START, [1, 2]), span(2), LATER)
    cache.write(KEY, readings(START, [5, 6, 7, 8], step_s=900), span(1), LATER)
    found = cache.read(KEY, *span(2), LATER)
    assert list(found.values) == [5, 6, 7, 8, 2]
    assert np.all(found.ends_s[:-1] <= found.starts_s[1:])


@pytest.mark.parametrize("harm", ["cut", "flipped", "empty", "foreign"])
def test_a_torn_file_counts_as_absent_and_is_written_anew(tmp_path, harm):
    cache = GridCache(tmp_path)
    cache.write(KEY, readings(START, [1]), span(1), LATER)
    (path,) = tmp_path.rglob("*.crg")
    raw = path.read_bytes()
    harmed = {"cut": raw[:-7], "flipped": raw[:-1] + bytes([raw[-1] ^ 1]), "empty": b"", "foreign": b"hello" * 20}
    path.write_bytes(harmed[harm])
    assert cache.read(KEY, *span(1), LATER).missing == (span(1),)
    cache.write(KEY, readings(START, [2]), span(1), LATER)
    assert list(cache.read(KEY, *span(1), LATER).values) == [2]


def test_a_folder_that_cannot_be_written_is_a_cache_without_memory(tmp_path):
    (tmp_path / "file").write_text("in the way")
    cache = GridCache(tmp_path / "file")
    cache.write(KEY, readings(START, [1]), span(1), LATER)
    assert cache.read(KEY, *span(1), LATER).missing == (span(1),)
    assert cache.entries() == []


def test_the_size_is_bounded_and_the_oldest_files_go(tmp_path):
    cache = GridCache(tmp_path, limit_bytes=50_000)
    for month in range(8):
        start = START + month * 31 * 24 * HOUR
        cache.write(KEY, readings(start, np.full(400, month)), (start, start + 400 * HOUR), LATER * 2)
        for path in tmp_path.rglob("*.crg"):
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 10))
    files = sorted(path.name for path in tmp_path.rglob("*.crg"))
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.crg")) <= 50_000
    assert "2026-01.crg" not in files and "2026-09.crg" in files


def test_the_cache_can_be_looked_at_and_emptied(tmp_path):
    cache = GridCache(tmp_path)
    cache.write(KEY, readings(START, [1, 2, 3]), span(3), LATER)
    (entry,) = cache.entries()
    assert (entry.provider, entry.zone, entry.files, entry.first, entry.last) == ("someone", "DE", 2, "2026-01", "2026-02")
    assert cache.clear() == 2
    assert cache.entries() == []


def test_the_folder_is_the_one_of_the_environment():
    assert default_folder({"CARBONREPORT_CACHE": "/a", "XDG_CACHE_HOME": "/b"}) == Path("/a")
    assert default_folder({"XDG_CACHE_HOME": "/b"}) == Path("/b/carbonreport/grid")
    assert default_folder({"HOME": "/c"}) == Path("/c/.cache/carbonreport/grid")


def _write_hours(root: Path, first: int, count: int) -> None:
    for hour in range(first, first + count):
        begin = START + 10 * 24 * HOUR + hour * HOUR
        GridCache(root).write(KEY, readings(begin, [hour]), (begin, begin + HOUR), LATER)


def test_hours_that_several_processes_write_at_once_are_all_there(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_write_hours, args=(tmp_path, 40 * i, 40)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    begin = START + 10 * 24 * HOUR
    found = GridCache(tmp_path).read(KEY, begin, begin + 160 * HOUR, LATER)
    assert list(found.values) == list(range(160))


def test_a_writer_that_is_killed_leaves_nothing_torn_and_no_lock(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    cache = GridCache(tmp_path)
    for pause_s in (0.0, 0.01, 0.03):
        worker = spawn.Process(target=_write_hours, args=(tmp_path, 0, 100_000))
        worker.start()
        while not list(tmp_path.rglob("*.crg")):
            time.sleep(0.01)
        time.sleep(pause_s)
        os.kill(worker.pid or 0, signal.SIGKILL)
        worker.join()
        begin = START + 10 * 24 * HOUR
        assert cache.read(KEY, begin, begin + HOUR, LATER).missing == ()
        cache.write(KEY, readings(begin, [7]), (begin, begin + HOUR), LATER)  # no lock is held
        assert list(cache.read(KEY, begin, begin + HOUR, LATER).values) == [7]


def test_what_a_killed_writer_left_is_swept_up_by_the_next(tmp_path):
    cache = GridCache(tmp_path)
    cache.write(KEY, readings(START, [1]), span(1), LATER)
    stray = next(tmp_path.rglob("*.crg")).with_suffix(".123.tmp")
    stray.write_bytes(b"half")
    os.utime(stray, (time.time() - 100, time.time() - 100))
    cache.write(KEY, readings(START, [1]), span(1), LATER)
    assert not stray.exists()
