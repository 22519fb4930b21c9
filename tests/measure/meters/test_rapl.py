"""RAPL: packages and DRAM once each, wraps undone, nothing invented."""

from pathlib import Path

import pytest
from pytest import approx

from carbonreport.errors import MeterAbsent, MeterDenied, MeterError
from carbonreport.measure.clock import RunClock
from carbonreport.measure.meters.rapl import RaplMeter, available
from carbonreport.model.notes import Note
from carbonreport.testing.clock import FakeClock

RANGE = 65_712_999_613


class Tree:
    """A powercap folder."""

    def __init__(self, root: Path):
        self.root, self.paths = root, {}

    def zone(self, path, name, microjoules, range_microjoules=RANGE):
        folder = self.root / path
        folder.mkdir(parents=True)
        (folder / "name").write_text(f"{name}\n")
        if range_microjoules is not None:
            (folder / "max_energy_range_uj").write_text(f"{range_microjoules}\n")
        self.paths[path] = folder / "energy_uj"
        return self.set(path, microjoules)

    def set(self, path, microjoules):
        self.paths[path].write_text(f"{microjoules}\n")
        return self


class Denied(type(Path())):
    """A path whose energy may be read by root only (tests may run as root)."""

    def read_text(self, *args, **kwargs):
        if self.name == "energy_uj" and "intel-rapl:1" in str(self):
            raise PermissionError(13, "Permission denied", str(self))
        return super().read_text(*args, **kwargs)


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


@pytest.fixture
def clock():
    return FakeClock()


def opened(root, clock, wait=lambda seconds: None, share=None):
    meter = RaplMeter(root, share, wait)
    return meter, meter.open(RunClock(clock))


def totals(poll):
    return {reading.device: reading.joules for reading in poll.readings}


def test_packages_and_dram_are_read_and_psys_core_and_uncore_never_added(tree, clock):
    tree.zone("intel-rapl:0", "package-0", 0).zone("intel-rapl:1", "package-1", 0).zone("intel-rapl:2", "psys", 0)
    tree.zone("intel-rapl:0/intel-rapl:0:0", "core", 0).zone("intel-rapl:0/intel-rapl:0:1", "uncore", 0).zone(
        "intel-rapl:0/intel-rapl:0:2", "dram", 0
    )
    tree.zone("intel-rapl-mmio:0", "package-0", 0)

    meter, devices = opened(tree.root, clock)
    clock.advance(1)
    for path in tree.paths:
        tree.set(path, 50_000_000)

    assert totals(meter.poll(is_last=True)) == {"cpu-package-0": approx(50), "dram-package-0": approx(50), "cpu-package-1": approx(50)}
    assert [(device.kind, device.method, device.gain_low, device.gain_high) for device in devices] == [
        ("cpu", "counter", 0.95, 1.05),
        ("dram", "counter", 0.85, 1.15),
        ("cpu", "counter", 0.95, 1.05),
    ]
    assert meter.environment() == {"rapl": "2 package(s), 1 DRAM"}


def test_a_dram_zone_that_lies_in_its_parent_and_beside_it_counts_once(tree, clock):
    tree.zone("intel-rapl:0", "package-0", 0).zone("intel-rapl:0/intel-rapl:0:2", "dram", 0).zone("intel-rapl:0:2", "dram", 0)

    assert [device.id for device in opened(tree.root, clock)[1]] == ["cpu-package-0", "dram-package-0"]


def test_a_wrap_with_a_known_range_is_undone(tree, clock):
    tree.zone("intel-rapl:0", "package-0", RANGE - 100)
    meter, _ = opened(tree.root, clock)
    clock.advance(1)
    tree.set("intel-rapl:0", 50)

    poll = meter.poll(is_last=False)

    assert totals(poll) == {"cpu-package-0": approx(151e-6)}
    assert not poll.gaps


def test_a_fall_without_a_range_is_a_gap_and_never_negative(tree, clock):
    tree.zone("intel-rapl:0", "package-0", 4_000_000_000, range_microjoules=None)
    meter, _ = opened(tree.root, clock)
    clock.advance(1)
    tree.set("intel-rapl:0", 10_000)
    poll = meter.poll(is_last=False)
    clock.advance(1)
    tree.set("intel-rapl:0", 2_010_000)

    assert totals(poll) == {"cpu-package-0": 0.0}
    assert [(gap.from_s, gap.to_s) for gap in poll.gaps] == [(0.0, approx(1.0))]
    assert [note.slug for note in poll.notes] == ["reading-gap"]
    assert totals(meter.poll(is_last=True)) == {"cpu-package-0": approx(2.0)}


def test_a_pause_in_which_the_counter_may_have_turned_twice_is_a_gap(tree, clock):
    tree.zone("intel-rapl:0", "package-0", 0)
    meter, _ = opened(tree.root, clock)
    clock.advance(100)
    tree.set("intel-rapl:0", 5_000_000)

    poll = meter.poll(is_last=False)

    assert len(poll.gaps) == 1 and totals(poll) == {"cpu-package-0": 0.0}


def test_a_wrap_within_two_seconds_of_the_start_is_never_negative(tree, clock):
    tree.zone("intel-rapl:0", "package-0", RANGE - 1_000_000)
    meter, _ = opened(tree.root, clock)
    joules = []
    for second, microjoules in enumerate((RANGE - 500_000, 99_999_999, 199_999_999), start=1):
        clock.advance(second)
        tree.set("intel-rapl:0", microjoules)
        joules.append(totals(meter.poll(is_last=False))["cpu-package-0"])

    assert joules == [approx(0.5), approx(101.0), approx(201.0)]


def test_every_die_of_a_package_with_a_counter_of_its_own_is_counted(tree, clock):
    tree.zone("intel-rapl:0", "package-0-die-0", 0).zone("intel-rapl:1", "package-0-die-1", 0)
    steps = iter(range(1, 100))

    def wait(_seconds):
        tree.set("intel-rapl:0", 10_000 * (i := next(steps))).set("intel-rapl:1", 10_061 * i)

    meter, devices = opened(tree.root, clock, wait)
    clock.advance(1)
    tree.set("intel-rapl:0", 40_000_000).set("intel-rapl:1", 30_000_000)

    assert [device.id for device in devices] == ["cpu-package-0-die-0", "cpu-package-0-die-1"]
    assert sum(totals(meter.poll(is_last=True)).values()) == approx(70)


def test_counters_that_mirror_each_other_are_counted_once_and_said(tree, clock):
    tree.zone("intel-rapl:0", "package-0-die-0", 0).zone("intel-rapl:1", "package-0-die-1", 5)
    steps = iter(range(1, 100))

    def wait(_seconds):
        i = next(steps)
        late = 61 if i == 3 else 0  # a tick fell between the two reads
        tree.set("intel-rapl:0", 68_000 * i).set("intel-rapl:1", 68_000 * i + 5 + late)

    meter, devices = opened(tree.root, clock, wait)
    clock.advance(1)
    tree.set("intel-rapl:0", 68_000_000).set("intel-rapl:1", 68_000_005)
    poll = meter.poll(is_last=True)

    assert [device.id for device in devices] == ["cpu-package-0-die-0"]
    assert totals(poll) == {"cpu-package-0-die-0": approx(68)}
    assert [(note.slug, note.text) for note in poll.notes] == [
        ("mirrored-counter", "cpu-package-0-die-1 repeats the counter of cpu-package-0-die-0; it is counted once")
    ]


def test_counters_that_stand_still_are_no_mirrors(tree, clock):
    tree.zone("intel-rapl:0", "package-0", 7).zone("intel-rapl:1", "package-1", 7)

    assert len(opened(tree.root, clock)[1]) == 2


def test_a_processor_without_a_counter_of_its_memory_says_so(tree, clock):
    tree.zone("intel-rapl:0", "package-0", 0)
    meter, devices = opened(tree.root, clock)

    assert [device.kind for device in devices] == ["cpu"]
    assert meter.environment() == {"rapl": "1 package(s), no counter of the memory"}


def test_counters_that_a_container_hides_are_denied_with_the_mount_that_shows_them(tmp_path, clock):
    (tmp_path / "intel-rapl:0").symlink_to("../../devices/virtual/powercap/intel-rapl/intel-rapl:0")

    with pytest.raises(MeterDenied, match="hidden.*docker run -v /sys/devices/virtual/powercap/intel-rapl:/sys/class/powercap:ro"):
        RaplMeter(tmp_path).open(RunClock(clock))


def test_an_empty_folder_is_no_counter_and_names_the_mount_too(tmp_path, clock):
    with pytest.raises(MeterAbsent, match="which is empty.*docker run -v"):
        RaplMeter(tmp_path).open(RunClock(clock))


def test_a_mount_of_the_zones_themselves_is_read_with_their_memories(tree, clock):
    tree.zone("intel-rapl:0", "package-0", 0).zone("intel-rapl:0/intel-rapl:0:0", "dram", 0)
    (tree.root / "uevent").write_text("")

    assert [device.id for device in opened(tree.root, clock)[1]] == ["cpu-package-0", "dram-package-0"]


def test_a_share_of_the_machine_is_told_with_the_last_poll(tree, clock):
    looks = []

    class Share:
        def look(self, now_s, *, is_last=False):
            looks.append((now_s, is_last))

        def notes(self):
            return [Note("shared-host", "20 %")]

    tree.zone("intel-rapl:0", "package-0", 0)
    meter, _ = opened(tree.root, clock, share=Share())
    clock.advance(1)

    assert meter.poll(is_last=False).notes == ()
    assert [note.slug for note in meter.poll(is_last=True).notes] == ["shared-host"]
    assert looks == [(0.0, False), (approx(1.0), False), (approx(1.0), True)]


def test_a_file_that_may_not_be_read_is_an_error_with_the_command_that_opens_it(tree, clock):
    tree.zone("intel-rapl:1", "package-1", 0)

    with pytest.raises(MeterError, match=r"intel-rapl:1/energy_uj may be read by root only.*sudo chmod a\+r .*/intel-rapl:\*/energy_uj"):
        RaplMeter(Denied(tree.root)).open(RunClock(clock))


def test_what_can_be_read_is_read_and_the_rest_is_noted(tree, clock):
    tree.zone("intel-rapl:0", "package-0", 0).zone("intel-rapl:1", "package-1", 0)

    meter, devices = opened(Denied(tree.root), clock)
    poll = meter.poll(is_last=False)

    assert [device.id for device in devices] == ["cpu-package-0"]
    assert [note.slug for note in poll.notes] == ["host-unreadable"]


def test_a_counter_that_cannot_be_read_for_a_moment_loses_nothing(tree, clock):
    tree.zone("intel-rapl:0", "package-0", 0)
    meter, _ = opened(tree.root, clock)
    meter.poll(is_last=False)
    clock.advance(1)
    tree.paths["intel-rapl:0"].unlink()
    assert meter.poll(is_last=False).readings == ()

    clock.advance(1)
    tree.set("intel-rapl:0", 7_000_000)
    assert totals(meter.poll(is_last=True)) == {"cpu-package-0": approx(7.0)}


def test_a_machine_without_zones_is_an_error(tmp_path, clock):
    with pytest.raises(MeterError, match="no processor energy counter"):
        RaplMeter(tmp_path / "powercap").open(RunClock(clock))


def test_available_answers_in_one_line():
    assert "\n" not in (available() or "")
