"""The host model charges idle watts always and the rest by the busy share of the allowed CPUs."""

import pytest
from pytest import approx

from carbonreport.errors import MeterError
from carbonreport.measure.clock import RunClock
from carbonreport.measure.meters.hostmodel import HostModel, create
from carbonreport.testing.clock import FakeClock


class Host:
    """Four CPUs whose times are set by hand; 100 jiffies a second."""

    def __init__(self, folder, **more):
        self.stat, cpuinfo = folder / "stat", folder / "cpuinfo"
        cpuinfo.write_text("processor\t: 0\nmodel name\t: AMD EPYC 7763 64-Core Processor\n")
        self.times = {cpu: [0] * 10 for cpu in range(4)}
        self.clock = FakeClock()
        self.write()
        self.meter = HostModel(self.stat, cpuinfo=cpuinfo, **more)
        self.run_clock = RunClock(self.clock)

    def write(self):
        rows = "".join(f"cpu{cpu} {' '.join(map(str, columns))}\n" for cpu, columns in self.times.items())
        self.stat.write_text(f"cpu  1 2 3 4 5 6 7 8 0 0\n{rows}intr 1 2 3\nctxt 5\n")

    def advance(self, seconds, busy, *, column=0):
        """Let each CPU be busy for its share."""
        self.clock.advance(seconds)
        for cpu, share in busy.items():
            self.times[cpu][column] += round(100 * seconds * share)
            self.times[cpu][3] += round(100 * seconds * (1 - share))
        self.write()

    def joules(self):
        return self.meter.poll(is_last=False).readings[-1].joules


ALL = frozenset(range(4))
IDLE = dict.fromkeys(range(4), 0.0)
BUSY = dict.fromkeys(range(4), 1.0)


def test_idle_and_busy_hosts_draw_the_published_means_per_cpu(tmp_path):
    host = Host(tmp_path, cpus=ALL)
    host.meter.open(host.run_clock)
    host.advance(10, IDLE)
    assert host.joules() == approx(10 * 4 * 0.74)

    host.advance(10, BUSY)
    assert host.joules() == approx(10 * 4 * 0.74 + 10 * 4 * 3.5)


def test_power_is_a_straight_line_in_the_busy_share(tmp_path):
    host = Host(tmp_path, cpus=ALL, idle_watts=100.0, busy_watts=300.0)
    host.meter.open(host.run_clock)
    host.advance(10, {0: 1.0, 1: 0.0, 2: 0.0, 3: 0.0})

    assert host.joules() == approx(10 * 150)


def test_only_the_allowed_cpus_count_and_take_their_share_of_the_site_figures(tmp_path):
    host = Host(tmp_path, cpus=frozenset({1, 2}), idle_watts=100.0, busy_watts=300.0)
    (device,) = host.meter.open(host.run_clock)
    host.advance(10, {0: 1.0, 1: 0.0, 2: 0.0, 3: 1.0})

    assert host.joules() == approx(10 * 50)
    assert device.name == "2 logical CPUs (model), AMD EPYC 7763 64-Core Processor"


@pytest.mark.parametrize("column", [4, 7])
def test_waiting_and_stolen_time_are_not_busy(tmp_path, column):
    host = Host(tmp_path, cpus=ALL)
    host.meter.open(host.run_clock)
    host.advance(10, BUSY, column=column)

    assert host.joules() == approx(10 * 4 * 0.74)


def test_time_asleep_costs_nothing(tmp_path):
    host = Host(tmp_path, cpus=ALL)
    host.meter.open(host.run_clock)
    host.clock.sleep(3600)
    host.advance(10, BUSY)

    assert host.joules() == approx(10 * 4 * 3.5)


def test_polls_within_one_jiffy_bring_nothing_and_lose_nothing(tmp_path):
    host = Host(tmp_path, cpus=ALL)
    host.meter.open(host.run_clock)
    host.meter.poll(is_last=False)
    host.clock.advance(0.005)
    assert host.meter.poll(is_last=False).readings == ()

    host.clock.advance(-0.005)
    host.advance(1, BUSY)
    assert host.joules() == approx(4 * 3.5)


def test_the_model_is_noted_once_and_has_a_wide_interval(tmp_path):
    host = Host(tmp_path, cpus=ALL)
    (device,) = host.meter.open(host.run_clock)
    notes = host.meter.poll(is_last=False).notes

    assert [note.slug for note in notes] == ["host-modelled"]
    assert "4 logical CPUs together at 3.0 W idle and 14.0 W busy" in notes[0].text
    assert (device.method, device.origin, device.gain_low, device.gain_high) == ("model", "estimated", 0.5, 2.0)
    assert host.meter.poll(is_last=True).notes == ()


class Tree:
    """The processor time of one process, in jiffies."""

    def __init__(self, root):
        self.root = root / "proc"
        (self.root / "10/task/10").mkdir(parents=True)
        (self.root / "10/task/10/children").write_text("")

    def used(self, jiffies):
        (self.root / "10/stat").write_text(f"10 (a) S 1 1 1 0 -1 0 0 0 0 0 {jiffies} 0 0 0 20 0 1 0\n")


def notes_of_a_run(tmp_path, own, busy, *, cpus=ALL):
    """Notes of the last poll after 20 s, of which the run's processes had some jiffies."""
    tree = Tree(tmp_path)
    tree.used(500)
    host = Host(tmp_path, cpus=cpus, roots=(10,), proc=tree.root)
    host.meter.open(host.run_clock)
    host.meter.poll(is_last=False)
    host.advance(20, busy)
    tree.used(500 + own)
    return host.meter.poll(is_last=True).notes


def test_what_others_did_meanwhile_is_told_with_the_runs_own_part(tmp_path):
    (note,) = notes_of_a_run(tmp_path, 500, {0: 1.0, 1: 0.0, 2: 0.0, 3: 0.0})

    assert note.slug == "shared-host"
    assert note.text.startswith("the run's own processes had 25 % of the busy time of the CPUs that it may use; ")


def test_a_run_that_kept_its_cpus_busy_itself_says_nothing(tmp_path):
    assert notes_of_a_run(tmp_path, 1900, {0: 1.0, 1: 0.0, 2: 0.0, 3: 0.0}) == ()


def test_the_work_of_others_on_cpus_that_do_not_count_is_not_told(tmp_path):
    assert notes_of_a_run(tmp_path, 2000, {0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0}, cpus=frozenset({0})) == ()


def test_a_quiet_machine_has_no_others(tmp_path):
    assert notes_of_a_run(tmp_path, 1, {0: 0.03, 1: 0.0, 2: 0.0, 3: 0.0}) == ()


def test_a_system_without_proc_is_an_error(tmp_path):
    with pytest.raises(MeterError, match="is not there"):
        HostModel(tmp_path / "stat").open(RunClock(FakeClock()))


@pytest.mark.parametrize(
    "options", [{"idle_watts": "100"}, {"idle_watts": "many", "busy_watts": "300"}, {"idle_watts": "300", "busy_watts": "100"}]
)
def test_watts_that_make_no_sense_are_refused(options):
    with pytest.raises(MeterError):
        create(options)
