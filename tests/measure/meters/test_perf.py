"""RAPL by perf events: one counter a package, in joules, with the exact way out where it is refused."""

import errno

import pytest
from pytest import approx

from carbonreport.errors import MeterAbsent, MeterDenied
from carbonreport.measure.clock import RunClock
from carbonreport.measure.meters.perf import PerfMeter, available
from carbonreport.measure.perf_events import Kernel
from carbonreport.model.notes import Note
from carbonreport.testing.clock import FakeClock

JOULES_PER_COUNT = 2.3283064365386962890625e-10
PACKAGE, MEMORY = 0x02, 0x03


class Opener:
    """Counters whose joules the test sets, by (event, cpu)."""

    def __init__(self, refusal=None, steps=()):
        self.refusal, self.steps = refusal, dict(steps)
        self.joules, self.handles, self.asked, self.unreadable = {}, {}, [], set()

    def open(self, kind, config, cpu):
        self.asked.append((kind, config, cpu))
        if self.refusal and len(self.asked) == self.refusal[0]:
            raise OSError(self.refusal[1], "refused")
        handle = 100 + len(self.asked)
        self.handles[handle] = (config, cpu)
        return handle

    def read(self, handle):
        key = self.handles[handle]
        if key in self.unreadable:
            raise OSError(errno.EIO, "no")
        return round(self.joules.get(key, 0.0) / JOULES_PER_COUNT)

    def close(self, handle):
        del self.handles[handle]

    def wait(self, _seconds):
        for key, step in self.steps.items():
            self.joules[key] = self.joules.get(key, 0.0) + step


@pytest.fixture
def sysfs(tmp_path):
    """Makes a /sys with packages of one CPU each."""

    def make(cpumask="0,28", events=("energy-pkg", "energy-ram", "energy-psys", "energy-cores"), dies=None):
        power = tmp_path / "bus/event_source/devices/power"
        (power / "events").mkdir(parents=True)
        (power / "type").write_text("23\n")
        (power / "cpumask").write_text(f"{cpumask}\n")
        for event in events:
            code = {"energy-pkg": PACKAGE, "energy-ram": MEMORY}.get(event, 5)
            (power / "events" / event).write_text(f"event={code:#04x}\n")
            (power / "events" / f"{event}.scale").write_text("2.3283064365386962890625e-10\n")
            (power / "events" / f"{event}.unit").write_text("Joules\n")
        for cpu, (package, die) in (dies or {0: (0, 0), 28: (1, 0)}).items():
            topology = tmp_path / f"devices/system/cpu/cpu{cpu}/topology"
            topology.mkdir(parents=True)
            (topology / "physical_package_id").write_text(f"{package}\n")
            (topology / "die_id").write_text(f"{die}\n")
        return tmp_path

    return make


def opened(root, opener, share=None):
    clock = FakeClock()
    meter = PerfMeter(root, opener, share, opener.wait)
    return meter, meter.open(RunClock(clock)), clock


def totals(poll):
    return {reading.device: reading.joules for reading in poll.readings}


def test_packages_and_memories_are_added_and_nothing_that_lies_in_them_or_holds_them(sysfs):
    opener = Opener()
    meter, devices, clock = opened(sysfs(), opener)
    clock.advance(1)
    opener.joules = {(PACKAGE, 0): 50.0, (PACKAGE, 28): 60.0, (MEMORY, 0): 5.0, (MEMORY, 28): 6.0}

    assert totals(meter.poll(is_last=True)) == {
        "cpu-package-0": approx(50),
        "cpu-package-1": approx(60),
        "dram-package-0": approx(5),
        "dram-package-1": approx(6),
    }
    assert {(device.kind, device.method, device.gain_low, device.gain_high) for device in devices} == {
        ("cpu", "counter", 0.95, 1.05),
        ("dram", "counter", 0.85, 1.15),
    }
    assert opener.asked == [(23, PACKAGE, 0), (23, PACKAGE, 28), (23, MEMORY, 0), (23, MEMORY, 28)]
    assert meter.environment() == {"rapl": "2 package(s), 2 DRAM"}


def test_a_processor_without_a_counter_of_its_memory_says_so(sysfs):
    meter, devices, _ = opened(sysfs("0", ("energy-pkg",)), Opener())

    assert [device.id for device in devices] == ["cpu-package-0"]
    assert meter.environment() == {"rapl": "1 package(s), no counter of the memory"}


def test_dies_of_one_package_are_named_as_powercap_names_them(sysfs):
    _, devices, _ = opened(sysfs("0-1", ("energy-pkg",), {0: (0, 0), 1: (0, 1)}), Opener())

    assert [device.id for device in devices] == ["cpu-package-0-die-0", "cpu-package-0-die-1"]


def test_dies_that_mirror_each_other_are_counted_once_and_the_second_is_closed(sysfs):
    opener = Opener(steps={(PACKAGE, 0): 1.25, (PACKAGE, 1): 1.25})
    meter, devices, _ = opened(sysfs("0-1", ("energy-pkg",), {0: (0, 0), 1: (0, 1)}), opener)

    assert [device.id for device in devices] == ["cpu-package-0-die-0"]
    assert [note.slug for note in meter.poll(is_last=False).notes] == ["mirrored-counter"]
    assert list(opener.handles.values()) == [(PACKAGE, 0)]


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM])
def test_a_refusal_names_every_least_privilege_way_out_and_leaves_nothing_open(sysfs, code):
    opener = Opener(refusal=(2, code))

    with pytest.raises(MeterDenied, match=r"sudo sysctl kernel\.perf_event_paranoid=0.*sudo setcap cap_perfmon"):
        opened(sysfs(), opener)
    assert opener.handles == {}


def test_a_kernel_that_does_not_know_the_event_is_no_counter(sysfs):
    with pytest.raises(MeterAbsent, match="does not open them"):
        opened(sysfs(), Opener(refusal=(1, errno.ENOENT)))


def test_a_machine_without_energy_events_is_no_counter(tmp_path):
    with pytest.raises(MeterAbsent, match="virtual machines and ARM"):
        opened(tmp_path, Opener())


def test_a_counter_that_cannot_be_read_for_a_moment_loses_nothing(sysfs):
    opener = Opener()
    meter, _, clock = opened(sysfs("0", ("energy-pkg",)), opener)
    meter.poll(is_last=False)
    clock.advance(1)
    opener.unreadable.add((PACKAGE, 0))
    assert meter.poll(is_last=False).readings == ()
    opener.unreadable.clear()
    opener.joules[PACKAGE, 0] = 7.0

    assert totals(meter.poll(is_last=True)) == {"cpu-package-0": approx(7)}


def test_a_counter_that_falls_is_a_gap_and_never_negative(sysfs):
    opener = Opener()
    opener.joules[PACKAGE, 0] = 90.0
    meter, _, clock = opened(sysfs("0", ("energy-pkg",)), opener)
    clock.advance(1)
    opener.joules[PACKAGE, 0] = 3.0
    poll = meter.poll(is_last=True)

    assert totals(poll) == {"cpu-package-0": 0.0}
    assert [(gap.from_s, gap.to_s) for gap in poll.gaps] == [(0.0, approx(1.0))]
    assert [note.slug for note in poll.notes] == ["reading-gap"]


def test_its_share_of_the_machine_is_told_at_the_end(sysfs):
    class Share:
        def look(self, now_s, *, is_last=False):
            pass

        def notes(self):
            return [Note("shared-host", "20 %")]

    meter, _, _ = opened(sysfs("0", ("energy-pkg",)), Opener(), Share())

    assert meter.poll(is_last=False).notes == ()
    assert [note.slug for note in meter.poll(is_last=True).notes] == ["shared-host"]


def test_closing_gives_every_counter_back(sysfs):
    opener = Opener()
    meter, _, _ = opened(sysfs(), opener)
    meter.close()
    meter.close()

    assert opener.handles == {}


def test_available_answers_in_one_line():
    assert "\n" not in (available() or "")


SOFTWARE, CPU_CLOCK = 1, 0


def test_the_kernel_counts_on_one_cpu_for_the_whole_system():
    """The software clock stands in for the energy of a machine that has none."""
    kernel = Kernel()
    try:
        handle = kernel.open(SOFTWARE, CPU_CLOCK, 0)
    except OSError as error:
        pytest.skip(f"perf events are shut here: {error}")
    first = kernel.read(handle)

    assert kernel.read(handle) >= first > 0
    kernel.close(handle)


def test_the_kernel_refuses_what_it_does_not_know_with_its_own_error():
    with pytest.raises(OSError):
        Kernel().open(2**31, 0, 0)
