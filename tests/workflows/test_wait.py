"""Waiting for a window: the newest hours are followed, the last start is kept whatever happens, and a signal ends it cleanly."""

import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from carbonreport.cli.main import cli
from carbonreport.errors import BadAnswer, FetchError, KeyRefused, PlaceError
from carbonreport.model.option import Option
from carbonreport.workflows.wait import Stopped, Watch, in_time, wait_for_window
from carbonreport.workflows.when import Answer

BEGIN_S = 1_780_000_000.0
HOUR = 3600.0


class Time:
    """A wall clock and a steady one that move when somebody naps."""

    def __init__(self):
        self.wall_s, self.steady_s, self.stop_at_s = BEGIN_S, 50.0, float("inf")

    def nap(self, seconds):
        assert seconds >= 0
        if self.wall_s + seconds >= self.stop_at_s:
            raise Stopped(signal.SIGTERM)
        self.pass_(max(seconds, 0.001))

    def pass_(self, seconds):
        self.wall_s += seconds
        self.steady_s += seconds

    @property
    def watch(self):
        return Watch(lambda: self.wall_s, lambda: self.steady_s, self.nap)


def answer(now_s, start_s, *, is_advised=True):
    def option(action, at_s, advised):
        runs = ((at_s, at_s + HOUR),)
        return Option(action, "DE", "Europe/Berlin", runs, 1.0, 1.0, 1.0, 0.2, 0.1, 0.3, 0.9, 0.0, advised, "because of a test")

    return Answer(option("none", now_s, False), (option("shift", start_s, is_advised),), "worth-it", "because of a test", "a test")


class Hours:
    """Readings in turn, the last one for ever; an exception is raised."""

    def __init__(self, *readings, takes_s=0.0, time=None):
        self.readings, self.asked_at, self.takes_s, self.time = list(readings), [], takes_s, time

    def __call__(self, now_s):
        self.asked_at.append(now_s)
        if self.time is not None:
            self.time.pass_(self.takes_s)
        reading = self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]
        if isinstance(reading, Exception):
            raise reading
        return answer(now_s, reading)


def waited(time_, read, typical=None, *, longest_s=12 * HOUR):
    """How long it waited [h], and what was said."""
    said = []
    wait_for_window(read, typical or read, longest_s=longest_s, watch=time_.watch, say=said.append)
    return (time_.wall_s - BEGIN_S) / HOUR, said


def test_it_starts_when_the_window_opens_and_says_what_it_waits_for():
    read = Hours(BEGIN_S + 5 * HOUR)

    hours, said = waited(Time(), read)

    assert hours == pytest.approx(5, abs=1e-3)
    assert "20 % [10, 30]" in said[0]
    assert "whatever happens" in said[0]
    assert said[-1] == "starting: the window is open"
    assert len(read.asked_at) == 5, "once at the begin, then every hour"


def test_the_newest_hours_are_followed():
    hours, said = waited(Time(), Hours(BEGIN_S + 5 * HOUR, BEGIN_S + 9 * HOUR))

    assert hours == pytest.approx(9, abs=1e-3)
    assert any("the window is now" in line for line in said)


def test_a_window_that_is_now_best_opens_at_once():
    hours, _ = waited(Time(), Hours(BEGIN_S + 5 * HOUR, BEGIN_S))

    assert hours == pytest.approx(1, abs=1e-3)


def test_what_is_not_worth_waiting_for_starts_at_once_and_says_why():
    time_, said = Time(), []

    def read(now_s):
        return answer(now_s, now_s + 5 * HOUR, is_advised=False)

    wait_for_window(read, read, longest_s=12 * HOUR, watch=time_.watch, say=said.append)

    assert time_.wall_s == BEGIN_S
    assert said == ["starting now: because of a test"]


@pytest.mark.parametrize("error", [FetchError("no network"), TimeoutError("no answer in time"), BadAnswer("nonsense")])
def test_a_network_that_fails_never_delays_it(error):
    planned, said = waited(Time(), Hours(BEGIN_S + 5 * HOUR, error))
    never_read, _ = waited(Time(), Hours(error), Hours(BEGIN_S + 7 * HOUR))

    assert planned == pytest.approx(5, abs=1e-3)
    assert never_read == pytest.approx(7, abs=1e-3)
    assert any("could not be read again" in line for line in said)


def test_hours_that_recede_for_ever_do_not_move_the_last_start():
    class Receding(Hours):
        def __call__(self, now_s):
            return answer(now_s, now_s + 5 * HOUR)

    hours, said = waited(Time(), Receding(0.0), longest_s=12 * HOUR)

    assert hours == pytest.approx(12, abs=1e-3)
    assert said[-1] == "starting: the time is up"


def test_readings_that_take_long_do_not_move_the_last_start_by_more_than_one():
    time_ = Time()
    read = Hours(BEGIN_S + 12 * HOUR, takes_s=100.0, time=time_)

    hours, _ = waited(time_, read, longest_s=12 * HOUR)

    assert hours == pytest.approx(12, abs=101 / HOUR)


@pytest.mark.parametrize(("step_s", "hours"), [(-6 * HOUR, 12.0), (20 * HOUR, 1.0)])
def test_a_clock_that_is_set_cannot_delay_it(step_s, hours):
    time_ = Time()

    class Setting(Hours):
        def __call__(self, now_s):
            if len(self.asked_at) == 1:
                time_.wall_s += step_s
            return super().__call__(now_s)

    wait_for_window(Setting(BEGIN_S + 12 * HOUR), Hours(0.0), longest_s=12 * HOUR, watch=time_.watch, say=lambda line: None)

    assert (time_.steady_s - 50.0) / HOUR == pytest.approx(hours, abs=0.02)


@pytest.mark.parametrize("error", [PlaceError("nobody says where"), KeyRefused("no key")])
def test_what_no_later_hour_will_mend_is_said_before_anything_waits(error):
    with pytest.raises(type(error)):
        waited(Time(), Hours(error))


def test_a_signal_ends_the_waiting():
    time_ = Time()
    time_.stop_at_s = BEGIN_S + 2 * HOUR

    with pytest.raises(Stopped):
        waited(time_, Hours(BEGIN_S + 5 * HOUR))


def test_where_no_time_is_left_no_reading_is_begun():
    """One that is at work when the process ends could abort it, and with it the exit code of the command."""
    begun = []
    with pytest.raises(TimeoutError):
        in_time(lambda now_s: begun.append(now_s), lambda: 0.0, time.sleep)(BEGIN_S)

    assert begun == []


def test_a_reading_that_hangs_is_given_up_and_one_that_breaks_is_passed_on():
    def hangs(now_s):
        time.sleep(30)

    def fails(now_s):
        raise PlaceError("nobody says where")

    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        in_time(hangs, lambda: 0.2, time.sleep)(0.0)
    with pytest.raises(PlaceError):
        in_time(fails, lambda: 5.0, time.sleep)(0.0)
    assert in_time(lambda now_s: answer(now_s, now_s), lambda: 5.0, time.sleep)(7.0).now.start_s == 7.0
    assert time.monotonic() - begin < 5


# The command itself


def grid_file(folder, *, best_in_s):
    """Hours of which one, so long from now, is ten times cleaner."""
    begin = (time.time() // 60) * 60 - 3600
    rows = ["Time (UTC),g_per_kwh"]
    for minute in range(0, 60 * 30, 15):
        at = begin + 60 * minute
        is_best = at <= time.time() + best_in_s < at + 900
        rows.append(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(at))},{40 if is_best else 400}")
    path = folder / "grid.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def command(*arguments, longest="12h", place=("--zone", "DE", "--pue", "1.2"), hours="0.25"):
    return [sys.executable, "-m", "carbonreport", "wait", "--max", longest, "--hours", hours, *place, "--", *arguments]


def test_the_command_runs_and_its_exit_code_is_kept(tmp_path):
    done = subprocess.run(command("sh", "-c", "echo up; exit 7", longest="0h"), capture_output=True, text=True, cwd=tmp_path, check=False)

    assert done.returncode == 7
    assert done.stdout == "up\n"
    assert "carbonreport: starting" in done.stderr


@pytest.mark.parametrize(("name", "code"), [("no-such-command-anywhere", 127), ("/etc/passwd", 126)])
def test_a_command_that_cannot_start_has_the_shells_exit_code(tmp_path, name, code):
    done = subprocess.run(command(name, longest="0h"), capture_output=True, text=True, cwd=tmp_path, check=False)

    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_a_last_start_in_seconds_is_kept(tmp_path):
    grid = grid_file(tmp_path, best_in_s=6 * 3600)
    begin = time.monotonic()
    place = ("--zone", "DE", "--pue", "1.2", "--grid", str(grid))
    done = subprocess.run(command("true", longest="3s", place=place), capture_output=True, text=True, cwd=tmp_path, check=False)

    assert done.returncode == 0, done.stderr
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_waiting_ends_it_and_starts_nothing(tmp_path, number):
    grid = grid_file(tmp_path, best_in_s=6 * 3600)
    started = tmp_path / "started"
    place = ("--zone", "DE", "--pue", "1.2", "--grid", str(grid))
    process = subprocess.Popen(command("touch", str(started), place=place), stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    first = process.stderr.readline()
    process.send_signal(number)
    rest = process.stderr.read()

    assert "waiting for" in first
    assert process.wait(timeout=30) == 128 + number
    assert "was not started" in rest
    assert not started.exists()


def test_a_signal_while_the_command_runs_is_passed_on(tmp_path):
    script = "trap 'echo got; exit 9' TERM; echo up; while :; do sleep 0.05; done"
    process = subprocess.Popen(
        command("sh", "-c", script, longest="0h"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tmp_path
    )
    assert process.stdout.readline() == "up\n"
    os.kill(process.pid, signal.SIGTERM)
    out, _ = process.communicate(timeout=30)

    assert (out, process.returncode) == ("got\n", 9)


def test_a_dry_run_says_what_it_would_wait_for_and_starts_nothing(tmp_path):
    grid = grid_file(tmp_path, best_in_s=6 * 3600)
    arguments = ["wait", "--dry-run", "--max", "12h", "--hours", "0.25", "--zone", "DE", "--pue", "1.2", "--grid", str(grid), "--"]
    result = CliRunner().invoke(cli, [*arguments, "touch", str(tmp_path / "started")])

    assert result.exit_code == 0, result.output
    assert "would wait for" in result.stderr
    assert "less by average intensity" in result.stderr
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["--zone", "DE", "--", "true"], "--max", 2),
        (["--zone", "DE", "--max", "12", "--", "true"], "write 24h", 2),
        (["--max", "12h", "--hours", "1", "--", "true"], "give --zone", 1),
        (["--zone", "Narnia", "--hours", "1", "--max", "12h", "--", "true"], "Narnia", 1),
        (["--zone", "DE,FR", "--max", "12h", "--", "true"], "give one --zone", 2),
        (["--zone", "DE", "--hours", "0", "--max", "12h", "--", "true"], "above 0", 1),
        (["--zone", "DE", "--hours", "1", "--max", "900d", "--", "true"], "over a year", 1),
        (["--zone", "DE", "--max", "12h"], "COMMAND", 2),
        (["--zone", "DE", "--hours", "1", "--grid", "nothing.csv", "--max", "1h", "--", "true"], "nothing.csv", 1),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line_and_starts_nothing(arguments, words, code, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "carbonreport", "wait", *arguments], capture_output=True, text=True, check=False, cwd=tmp_path
    )

    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
