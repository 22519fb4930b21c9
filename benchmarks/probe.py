"""One measure of one tool in a fresh process: `python -I probe.py TOOL MEASURE`, started by peers.py.

Imports only what every interpreter has loaded at its start, and `time`: an import made here would be
missing from the import time of a tool that makes it too. Prints lines of a name and a number.
"""

import os
import sys
import time

PAIRS = 6  # start/stop pairs in one process: the first, then five more


class Carbonreport:
    """A run with a zone; the record goes to the working folder."""

    package = "carbonreport"

    def load(self):
        from carbonreport import trace

        self.trace = trace

    def start(self):
        self.run = self.trace("bench", zone="DE", out="runs").start()

    def stop(self):
        assert self.run.stop() is not None, "the run did not end"


class Codecarbon:
    """The offline tracker, without its CSV."""

    package = "codecarbon"

    def load(self):
        from codecarbon import OfflineEmissionsTracker

        self.tracker_class = OfflineEmissionsTracker

    def start(self):
        self.tracker = self.tracker_class(country_iso_code="DEU", save_to_file=False, log_level="error")
        self.tracker.start()

    def stop(self):
        assert self.tracker.stop() is not None, "the tracker has no result"


class Zeus:
    """One window without a GPU."""

    package = "zeus"

    def load(self):
        from zeus.monitor import ZeusMonitor

        self.monitor_class = ZeusMonitor

    def start(self):
        self.monitor = self.monitor_class(gpu_indices=[])
        self.monitor.begin_window("bench")

    def stop(self):
        self.monitor.end_window("bench")


class Carbontracker:
    """One epoch; the tool has no offline mode and asks for its place."""

    package = "carbontracker"

    def load(self):
        from carbontracker.tracker import CarbonTracker

        self.tracker_class = CarbonTracker

    def start(self):
        self.tracker = self.tracker_class(epochs=1, verbose=0)
        self.tracker.epoch_start()

    def stop(self):
        self.tracker.epoch_end()
        self.tracker.stop()


class Joules:
    """A session with one phase; `estimate` because it refuses to start where no counter can be read."""

    package = "joules"

    def load(self):
        from joules import Session

        self.session_class = Session

    def start(self):
        self.session = self.session_class(estimate=True)
        self.phase = self.session.begin("bench")

    def stop(self):
        self.session.end(self.phase)
        self.session.close()


class Bare:
    """The interpreter alone."""

    package = "sys"

    def load(self):
        pass

    start = stop = load


TOOLS = {
    "bare": Bare,
    "carbonreport": Carbonreport,
    "codecarbon": Codecarbon,
    "zeus": Zeus,
    "carbontracker": Carbontracker,
    "landauer-gap": Joules,
}


def measure_import(tool, say):
    """Seconds for `import PACKAGE`, then up to the name that a program uses."""
    begin_s = time.perf_counter()
    __import__(tool.package)
    package_s = time.perf_counter() - begin_s
    tool.load()
    name_s = time.perf_counter() - begin_s
    say("package_s", package_s)
    say("name_s", name_s)
    say("peak_import_mb", peak_mb())


def measure_start(tool, say):
    """Seconds for a start and stop with nothing between, the first and five later ones."""
    tool.load()
    for turn in range(PAIRS):
        begin_s = time.perf_counter()
        tool.start()
        started_s = time.perf_counter()
        tool.stop()
        ended_s = time.perf_counter()
        which = "first" if turn == 0 else "later"
        say(f"{which}_s", ended_s - begin_s)
        say(f"{which}_start_s", started_s - begin_s)


def measure_track(tool, say):
    """Processor seconds of this process and its children while it tracks and sleeps, from one line on stdin on."""
    tool.load()
    tool.start()
    say("ready", 1)
    seconds = float(sys.stdin.readline())
    begin_s, begin_cpu_s = time.perf_counter(), cpu_s()
    time.sleep(seconds)
    used_s, lasted_s = cpu_s() - begin_cpu_s, time.perf_counter() - begin_s
    say("peak_track_mb", peak_mb())
    say("cpu_percent", 100 * used_s / lasted_s)
    tool.stop()


def peak_mb():
    """Peak resident memory of this process. [MB of 10^6 bytes]"""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024 / 1e6


def cpu_s():
    """Processor seconds of this process, of its ended children and of the living ones."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system + sum(map(cpu_s_of, descendants(os.getpid())))


def cpu_s_of(pid):
    """Processor seconds of a process by its clock; Linux makes the clock's number from the id, see clock_getcpuclockid(3)."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:  # it ended since it was listed
        return 0.0


def descendants(pid):
    """Ids of the living children of a process and of theirs."""
    found = []
    for child in children_of(pid):
        found += [child, *descendants(child)]
    return found


def children_of(pid):
    """Ids of the living children of all threads of a process; a thread or process that ends meanwhile has none."""
    children = []
    for task in tasks_of(pid):
        try:
            with open(f"/proc/{pid}/task/{task}/children") as file:
                children += map(int, file.read().split())
        except (FileNotFoundError, ProcessLookupError):  # this thread ended; the others still count
            continue
    return children


def tasks_of(pid):
    """Ids of the threads of a process, none where it ended."""
    try:
        return os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return []


def main():
    """Run one measure. A tool's own output goes to stderr, the results to what was stdout."""
    name, measure = sys.argv[1:]
    results = os.dup(1)
    os.dup2(2, 1)
    {"import": measure_import, "start": measure_start, "track": measure_track}[measure](
        TOOLS[name](), lambda key, value: os.write(results, f"{key} {value!r}\n".encode())
    )


if __name__ == "__main__":
    main()
