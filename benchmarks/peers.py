"""Import, memory, start/stop and processor time of carbonreport and of other tools, measured in one run.

`python benchmarks/peers.py` makes one virtual environment for each tool, then measures them round by round, every
measure in a fresh process. It prints a Markdown table; `--json FILE` keeps every single value.
"""

import argparse
import json
import os
import platform
import select
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

# What pip installs in the environment of each tool: None is the checkout, () nothing.
TOOLS = {
    "bare": (),
    "carbonreport": None,
    "codecarbon": ("codecarbon==3.3.2",),
    "zeus": ("zeus==0.16.0",),
    "carbontracker": ("carbontracker==2.4.7",),
    "landauer-gap": ("landauer-gap==0.8.0",),
}
LABELS = {"bare": "Python alone", "landauer-gap": "landauer-gap (joules)"}
UNWANTED = ("torch",)  # would turn the figures into those of another package

# Column title, key of the value, factor to the unit shown, digits.
COLUMNS = (
    ("`import` of the package [ms]", "package_s", 1e3, 1),
    ("… and of the name used [ms]", "name_s", 1e3, 1),
    ("peak memory, imported [MB]", "peak_import_mb", 1, 0),
    ("peak memory, tracking [MB]", "peak_track_mb", 1, 0),
    ("first start/stop [ms]", "first_s", 1e3, 1),
    ("later start/stop [ms]", "later_s", 1e3, 2),
    ("processor, asleep [% of a core]", "cpu_percent", 1, 3),
)
# What carbonreport sets itself: title, key, factor, limit, unit.
GOALS = (
    ("`import carbonreport`", "package_s", 1e3, 50, "ms"),
    ("first start/stop", "first_s", 1e3, 80, "ms"),
    ("later start/stop", "later_s", 1e3, 20, "ms"),
    ("processor while tracking, asleep", "cpu_percent", 1, 0.1, "% of a core"),
)

CHECKOUT = Path(__file__).resolve().parents[1]
PROBE = Path(__file__).with_name("probe.py")
PROBE_TIMEOUT_S = 120
SETTLE_S = 2.0  # between the last start and the count of processor time: meters open in the background

Values = dict[str, dict[str, list[float]]]  # of each tool, of each key, one of each round


class Failed(Exception):
    """A tool that cannot be installed or measured; the text is its row."""


def main() -> int:
    """Make the environments, measure, print."""
    options = arguments()
    envs = Path(options.envs).resolve()
    failures: dict[str, str] = {}
    for tool in TOOLS:
        try:
            prepare(tool, envs, reuse=options.reuse)
        except Failed as error:
            failures[tool] = str(error)
    versions = {tool: version(tool, envs) for tool in TOOLS if tool not in failures}
    load_before = wait_for_quiet(options.wait)
    values = measure_all(envs, failures, rounds=options.rounds, seconds=options.seconds)
    facts = machine() | {
        "rounds": options.rounds,
        "seconds": options.seconds,
        "load_before": load_before,
        "load_after": round(os.getloadavg()[0], 2),
    }
    print(report(facts, versions, values, failures))
    if options.json:
        document = {"machine": facts, "versions": versions, "values": values, "failures": failures}
        Path(options.json).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compare carbonreport with other energy trackers on this machine.")
    parser.add_argument("--envs", default=str(CHECKOUT / "build" / "bench-envs"), help="folder of the environments")
    parser.add_argument("--reuse", action="store_true", help="take existing environments as they are, carbonreport's too")
    parser.add_argument("--rounds", type=int, default=7, help="rounds after one that is not counted")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each tool tracks asleep")
    parser.add_argument("--wait", type=float, default=300.0, help="longest wait for a load below 1 [s]")
    parser.add_argument("--json", help="file for every single value")
    return parser.parse_args()


# Environments


def prepare(tool: str, envs: Path, *, reuse: bool) -> None:
    """Make the environment of a tool where it is missing; carbonreport is installed anew unless told to reuse."""
    wanted, env = TOOLS[tool], envs / tool
    marker = env / "installed.txt"
    mark = "\n".join(wanted or [])
    is_there = marker.exists() and marker.read_text() == mark
    if is_there and (reuse or wanted is not None):
        return
    progress(f"install {tool}")
    if not is_there:
        run_quietly([sys.executable, "-m", "venv", "--clear", *([] if wanted != () else ["--without-pip"]), str(env)], "venv")
    pip = [str(python_of(env)), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    if wanted is None:
        run_quietly([*pip, str(CHECKOUT)], "pip")
        if is_there:  # the same version number does not mean the same code
            run_quietly([*pip, "--no-deps", "--force-reinstall", str(CHECKOUT)], "pip")
    elif wanted:
        run_quietly([*pip, *wanted], "pip")
    for name in UNWANTED:
        if has_module(env, name):
            raise Failed(f"its environment contains {name}")
    marker.write_text(mark)


def run_quietly(command: list[str], name: str) -> None:
    """Run an installer; what it says goes to the terminal, not into the table."""
    code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    if code:
        raise Failed(f"not installed: {name} ended with {code}")


def python_of(env: Path) -> Path:
    """The interpreter of an environment."""
    return env / "bin" / "python"


def has_module(env: Path, name: str) -> bool:
    """Whether an environment could import a module."""
    code = f"import importlib.util as u; raise SystemExit(u.find_spec({name!r}) is None)"
    return subprocess.run([str(python_of(env)), "-I", "-c", code], check=False).returncode == 0


def version(tool: str, envs: Path) -> str:
    """Installed version of a tool; of the bare environment, that of Python."""
    if tool == "bare":
        return platform.python_version()
    code = f"from importlib.metadata import version; print(version({tool!r}))"
    answer = subprocess.run([str(python_of(envs / tool)), "-I", "-c", code], capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "?"


# Measuring


def measure_all(envs: Path, failures: dict[str, str], *, rounds: int, seconds: float) -> Values:
    """All rounds; the first, which fills the disk cache, is thrown away. Tools that fail move to `failures`."""
    values: Values = {tool: defaultdict(list) for tool in TOOLS}
    for turn in range(rounds + 1):
        order = list(TOOLS)[turn % len(TOOLS) :] + list(TOOLS)[: turn % len(TOOLS)]
        for measure in ("import", "start"):
            for tool in order:
                keep(values, failures, tool, turn, lambda t=tool, m=measure: Probe(envs, t, m).finish())
        track_all(envs, order, values, failures, turn, seconds if turn else 0.1)
        progress(f"round {turn} of {rounds}")
    return values


def keep(values: Values, failures: dict[str, str], tool: str, turn: int, measure: Callable[[], dict[str, list[float]]]) -> None:
    """Take one measure: the median of each key, so that five later pairs of one process are one value."""
    if tool in failures:
        return
    try:
        answer = measure()
    except Failed as error:
        failures[tool] = str(error)
        return
    if turn:
        for key, found in answer.items():
            values[tool][key].append(median(found))


def track_all(envs: Path, order: list[str], values: Values, failures: dict[str, str], turn: int, seconds: float) -> None:
    """Start the tools one after the other; then all sleep at once, and each counts its own processor time."""
    probes = {}
    for tool in order:
        if tool not in failures:
            probes[tool] = Probe(envs, tool, "track")
            probes[tool].wait_until_ready()
    time.sleep(SETTLE_S)
    for probe in probes.values():
        probe.go(seconds)
    for tool, probe in probes.items():
        keep(values, failures, tool, turn, probe.finish)


class Probe:
    """One process of probe.py, in a working folder of its own."""

    def __init__(self, envs: Path, tool: str, measure: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bench-")
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - closed in finish
        self._ready = ""
        self._process = subprocess.Popen(
            [str(python_of(envs / tool)), "-I", str(PROBE), tool, measure],
            cwd=self._folder.name,
            env=os.environ | {"TMPDIR": self._folder.name},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def wait_until_ready(self) -> None:
        """Wait for the first line; it stays empty where the process ends before or hangs."""
        if select.select([self._process.stdout], [], [], PROBE_TIMEOUT_S)[0]:
            self._ready = self._process.stdout.readline()

    def go(self, seconds: float) -> None:
        """Let a tracking process sleep for some seconds."""
        if self._ready:
            self._process.stdin.write(f"{seconds}\n")
            self._process.stdin.flush()

    def finish(self) -> dict[str, list[float]]:
        """Wait for the end; the values it printed.

        Raises:
            Failed: It ended with an error, or not at all.
        """
        try:
            out, _ = self._process.communicate(timeout=PROBE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise Failed(f"did not end within {PROBE_TIMEOUT_S} s") from None
        finally:
            self._errors.seek(0)
            said = self._errors.read()
            self._errors.close()
            self._folder.cleanup()
        if self._process.returncode:
            raise Failed(reason(said, self._process.returncode))
        found = defaultdict(list)
        for key, value in map(str.split, out.splitlines()):
            found[key].append(float(value))
        return found


def reason(said: str, code: int) -> str:
    """The last line of a traceback, cut to one short line without folders."""
    lines = [line for line in said.splitlines() if line.strip()]
    words = (lines[-1] if lines else "").split()
    text = " ".join("…" if word.strip("'\"(").startswith("/") else word for word in words)
    return f"ended with {code}: {text[:100]}".replace("|", "/")


def wait_for_quiet(longest_s: float) -> float:
    """Wait until the load is below 1, or no longer than asked; the load then."""
    end_s = time.monotonic() + longest_s
    while os.getloadavg()[0] >= 1 and time.monotonic() < end_s:
        time.sleep(5)
    return round(os.getloadavg()[0], 2)


# Words


def report(facts: dict[str, object], versions: dict[str, str], values: Values, failures: dict[str, str]) -> str:
    """The tables."""
    lines = [
        "{date} · {processor}, {cores} cores · Python {python} · {system} · ".format(**facts)
        + "{rounds} rounds, median (lowest–highest) · load {load_before} before, {load_after} after".format(**facts),
        "",
        "| tool | version | " + " | ".join(title for title, *_ in COLUMNS) + " |",
        "|---|---|" + "---:|" * len(COLUMNS),
    ]
    for tool in TOOLS:
        if tool in failures:
            cells = [failures[tool], *[""] * (len(COLUMNS) - 1)]
        else:
            cells = [cell(values[tool].get(key), factor, digits) for _, key, factor, digits in COLUMNS]
        lines.append(f"| {LABELS.get(tool, tool)} | {versions.get(tool, '?')} | " + " | ".join(cells) + " |")
    if "carbonreport" not in failures:
        lines += ["", "| carbonreport | measured | goal | |", "|---|---:|---:|---|"]
        lines += [goal_row(values["carbonreport"], *goal) for goal in GOALS]
    return "\n".join(lines)


def cell(found: list[float] | None, factor: float, digits: int) -> str:
    """Median and range of one column."""
    if not found:
        return "–"
    middle, low, high = (f"{factor * value:.{digits}f}" for value in (median(found), min(found), max(found)))
    return f"{middle} ({low}–{high})"


def goal_row(found: dict[str, list[float]], title: str, key: str, factor: float, limit: float, unit: str) -> str:
    """One goal, and whether the median keeps to it."""
    middle = factor * median(found[key])
    return f"| {title} | {middle:.3g} {unit} | under {limit:g} {unit} | {'reached' if middle < limit else 'missed'} |"


def machine() -> dict[str, object]:
    """The machine in words: nothing that names it or its place."""
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release().split('.')[0]}",
    }


def processor() -> str:
    """Model of the processor, as the kernel names it."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def progress(text: str) -> None:
    """Say on stderr how far it is."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
