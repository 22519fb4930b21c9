"""A run under a cap: what the record and the statement say of it, and what is refused before the first step."""

import os
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest
from pytest import approx

from carbonreport.control.controller import ControlError
from carbonreport.control.rights import Rights
from carbonreport.errors import CarbonreportError
from carbonreport.model.knobs import Knobs
from carbonreport.store import load
from carbonreport.testing.controller import FakeController, fake_board
from carbonreport.workflows.cap_finding import cap_finding
from carbonreport.workflows.knobs import ABANDONED, RunKnobs
from carbonreport.workflows.knobs_asked import asked_caps, wanted

BOARDS = [(0, "GPU-00000"), (1, "GPU-00001")]


def knobs_of_run(fake: FakeController, folder, asked: Knobs, *, is_optional: bool = False) -> RunKnobs:
    @contextmanager
    def opened(environ):
        yield fake

    times = iter([0.0, 100.0])
    return RunKnobs(
        asked,
        is_optional=is_optional,
        environ={**os.environ, "CARBONREPORT_CONTROL_DIR": str(folder)},
        open_controller=opened,
        find_boards=lambda environ: [(number, uuid) for number, uuid in BOARDS if uuid in fake.boards],
        guarded=lambda is_all_back, **settings: nullcontext(),
        clock_s=lambda: next(times),
    )


def one_board(**changes) -> FakeController:
    return FakeController({"GPU-00000": replace(fake_board(), **changes)})


def change(fake: FakeController, **changes) -> None:
    fake.boards["GPU-00000"] = replace(fake.boards["GPU-00000"], **changes)


def test_a_cap_that_held_and_bit_needs_no_note(tmp_path):
    fake = one_board()
    run = knobs_of_run(fake, tmp_path, Knobs(power_cap_watts=300))
    (at_start,), _ = run.start()
    change(fake, capped_ns=80_000_000_000)
    (at_end,), notes = run.stop()

    assert (at_start.before_watts, at_start.enforced_watts, at_start.is_held) == (650, 300, None)
    assert (at_end.is_held, at_end.capped_seconds, at_end.seconds, at_end.has_bitten) == (True, 80, 100, True)
    assert notes == ()
    assert fake.boards["GPU-00000"].limit_watts == 650


def test_a_cap_that_came_back_raised_is_said_and_left(tmp_path):
    fake = one_board()
    run = knobs_of_run(fake, tmp_path, Knobs(power_cap_watts=300))
    run.start()
    change(fake, limit_watts=700.0)
    (held,), notes = run.stop()

    assert held.is_held is False
    assert {note.slug for note in notes} == {"cap-not-held", "knobs-changed-by-others", "cap-without-effect"}


def test_a_cap_that_was_never_reached_is_said(tmp_path):
    run = knobs_of_run(one_board(), tmp_path, Knobs(power_cap_watts=300))
    run.start()
    (held,), notes = run.stop()

    assert held.has_bitten is False
    assert [note.slug for note in notes] == ["cap-without-effect"]


def test_another_owners_lower_cap_is_said_with_its_watts(tmp_path):
    class Capped(FakeController):
        def read(self, device):
            state = super().read(device)
            return replace(state, enforced_watts=min(state.limit_watts, 250.0))

    fake = Capped({"GPU-00000": fake_board()})
    run = knobs_of_run(fake, tmp_path, Knobs(power_cap_watts=300))
    run.start()
    (held,), notes = run.stop()

    assert held.is_capped_elsewhere
    assert any(note.slug == "cap-lower-elsewhere" and "250 W" in note.text for note in notes)


def test_a_board_that_is_lost_during_the_run_is_said_and_nothing_is_raised(tmp_path):
    fake = one_board()
    run = knobs_of_run(fake, tmp_path, Knobs(power_cap_watts=300))
    run.start()
    del fake.boards["GPU-00000"]
    (held,), notes = run.stop()

    assert held.is_held is None
    assert [note.slug for note in notes] == ["cap-unproven", "knobs-not-restored"]


def test_a_limit_that_the_board_does_not_say_at_the_end_is_unproven_and_nothing_is_raised(tmp_path):
    class Deaf(FakeController):
        is_deaf = False

        def read(self, device):
            state = super().read(device)
            return replace(state, limit_watts=None) if self.is_deaf else state

    fake = Deaf({"GPU-00000": fake_board()})
    run = knobs_of_run(fake, tmp_path, Knobs(power_cap_watts=300))
    run.start()
    fake.is_deaf = True
    (held,), notes = run.stop()

    assert held.is_held is None
    assert [note.slug for note in notes] == ["cap-unproven", "knobs-not-restored"]


def test_an_optional_cap_that_is_refused_is_a_note_and_a_wanted_one_an_error(tmp_path):
    fake = one_board()
    held, notes = knobs_of_run(fake, tmp_path, Knobs(power_cap_watts=100), is_optional=True).start()
    assert held == ()
    assert [note.slug for note in notes] == ["cap-refused"]

    with pytest.raises(ControlError, match="200 to 700 W"):
        knobs_of_run(fake, tmp_path, Knobs(power_cap_watts=100)).start()
    assert fake.calls == []


def test_a_refusal_by_right_comes_with_what_would_allow_it(tmp_path):
    fake = one_board()
    fake.is_allowed = False
    with pytest.raises(ControlError, match="SYS_ADMIN|NOPASSWD"):
        knobs_of_run(fake, tmp_path, Knobs(power_cap_watts=300)).start()


def test_a_fork_does_not_give_back_what_its_parent_holds(tmp_path):
    fake = one_board()
    run = knobs_of_run(fake, tmp_path, Knobs(power_cap_watts=300))
    run.start()
    run.abandon()

    assert run.stop() == ((), ())
    assert fake.boards["GPU-00000"].limit_watts == 300
    ABANDONED.pop().close()


# What can be asked


def test_boards_are_named_by_number_or_by_the_beginning_of_their_uuid():
    low, high = Knobs(power_cap_watts=250), Knobs(power_cap_watts=300)
    assert wanted(high, BOARDS) == {"GPU-00000": high, "GPU-00001": high}
    assert wanted({"0": high, "GPU-00001": low}, BOARDS) == {"GPU-00000": high, "GPU-00001": low}
    assert asked_caps("0=300,1=250 W") == {"0": high, "1": low}
    assert asked_caps({0: 300, "1": 250}) == {"0": high, "1": low}
    assert asked_caps("300W") == asked_caps(300) == high


@pytest.mark.parametrize("asked", ["0=300,0=400", {}])
def test_a_board_that_is_named_twice_or_no_board_at_all_is_one_line(asked):
    with pytest.raises(CarbonreportError, match="named twice|names no board"):
        asked_caps(asked)


def test_one_board_under_two_names_takes_one_setting():
    with pytest.raises(ControlError, match="was named before"):
        wanted({"0": Knobs(power_cap_watts=300), "GPU-00000": Knobs(power_cap_watts=400)}, BOARDS)


@pytest.mark.parametrize("asked", ["abc", "", "-5", "nan", "inf", "0", "0=x", "1e400"])
def test_what_is_no_cap_is_one_line(asked):
    with pytest.raises(CarbonreportError, match="is no power cap"):
        asked_caps(asked)


@pytest.mark.parametrize(("name", "boards"), [("7", BOARDS), ("GPU-", BOARDS), ("", BOARDS), ("0", [])])
def test_a_board_that_the_run_does_not_have_is_named(name, boards):
    with pytest.raises(ControlError, match="not one board|no NVIDIA GPU"):
        wanted({name: Knobs(power_cap_watts=300)}, boards)


# Through the command line and the statement, on the virtual driver


DIES_WITH_ITS_GUARDIAN = """
import os
from carbonreport import trace
trace("x", power_cap_watts=300, zone="DE", meters=("hostmodel",)).start()
for child in open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split():
    os.kill(int(child), 9)
os.kill(os.getpid(), 9)
"""


def carbonreport(driver, folder, *arguments: str, may_set: bool = True) -> subprocess.CompletedProcess[str]:
    environ = driver.environ(VIRTUAL_NVML_ROOT=str(int(may_set)), CARBONREPORT_CONTROL_DIR=str(folder / "control"))
    command = [sys.executable, "-m", "carbonreport", *arguments]
    return subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def driver(make_virtual_driver):
    driver = make_virtual_driver("h200", is_virtual=False)
    driver.board(0).set_limit(650)
    driver.board(0).utilisation(1.0, 0.3)
    return driver


def test_a_capped_run_says_so_in_record_and_statement(driver, tmp_path):
    done = carbonreport(driver, tmp_path, "run", "--power-cap", "300", "--zone", "DE", "--pue", "1.2", "--", "sleep", "2")
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "runs").glob("*.jsonl")
    (held,) = load(path).knobs

    assert (held.requested.power_cap_watts, held.before_watts, held.enforced_watts, held.is_held) == (300, 650, 300, True)
    assert held.capped_seconds == approx(held.seconds, abs=0.5)
    assert driver.board(0).peek().requested_watts == 650
    carbonreport(driver, tmp_path, "statement", str(path), "-o", "x.md")
    assert "ran under a power cap of 300 W (before: 650 W; kept to the end; clocks lowered for it in" in (tmp_path / "x.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--power-cap", "100"], "takes power caps of 200 to 700 W, not 100 W; nothing was set on any GPU"),
        (["--power-cap", "3=300"], "GPU '3' is not one board of the run"),
        (["--power-cap", "much"], "is no power cap"),
    ],
)
def test_a_refused_cap_is_one_line_and_the_command_does_not_start(driver, tmp_path, arguments, words):
    done = carbonreport(driver, tmp_path, "run", *arguments, "--", "touch", "started")

    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert words in done.stderr
    assert driver.setter_calls() == []
    assert not (tmp_path / "started").exists()
    assert not (tmp_path / "runs").exists()


def test_without_rights_a_wanted_cap_stops_and_an_optional_one_is_said(driver, tmp_path):
    refused = carbonreport(driver, tmp_path, "run", "--power-cap", "300", "--", "touch", "started", may_set=False)
    assert refused.returncode == 1
    assert "may not set the power limit" in refused.stderr
    assert not (tmp_path / "started").exists()

    done = carbonreport(driver, tmp_path, "run", "--cap-if-allowed", "300", "--zone", "DE", "--", "touch", "started", may_set=False)
    assert done.returncode == 0
    assert "cap-refused: the run went on without a power cap of 300 W" in done.stderr
    assert (tmp_path / "started").exists()


def test_a_dry_run_starts_and_sets_nothing(driver, tmp_path):
    done = carbonreport(driver, tmp_path, "run", "--power-cap", "300", "--dry-run", "--", "touch", "started")

    assert done.stdout.splitlines()[0].startswith("would set a power cap of 300 W on GPU 0 (NVIDIA H200)")
    assert done.stdout.splitlines()[1].startswith("would put its limit back to 650 W")
    assert done.stdout.splitlines()[2].startswith("this user may")
    assert driver.setter_calls() == []
    assert not (tmp_path / "started").exists()


def test_a_dry_run_says_what_the_run_itself_would_be_told(driver, tmp_path):
    optional = carbonreport(driver, tmp_path, "run", "--cap-if-allowed", "100", "--dry-run", "--", "true")
    assert (optional.returncode, "would go on without it: GPU 0 (NVIDIA H200) takes power caps" in optional.stdout) == (0, True)

    inner = [sys.executable, "-m", "carbonreport", "run", "--power-cap", "400", "--dry-run", "--", "true"]
    done = carbonreport(driver, tmp_path, "run", "--power-cap", "300", "--zone", "DE", "--", *inner)
    assert done.returncode == 1
    assert "error: would be refused: GPU 0 (NVIDIA H200) is held by another run (process" in done.stderr

    code = DIES_WITH_ITS_GUARDIAN
    environ = driver.environ(VIRTUAL_NVML_ROOT="1", CARBONREPORT_CONTROL_DIR=str(tmp_path / "control"))
    subprocess.run([sys.executable, "-c", code], env=environ, cwd=tmp_path, check=False)
    assert driver.board(0).peek().requested_watts == 300
    after = carbonreport(driver, tmp_path, "run", "--power-cap", "400", "--dry-run", "--", "true")
    assert after.stdout.splitlines()[0] == "would first put GPU 0 (NVIDIA H200) back to 650 W, which a run that died left at 300 W"
    assert "would put its limit back to 650 W" in after.stdout
    assert carbonreport(driver, tmp_path, "restore").stdout.startswith("restored")


def test_a_laptop_without_the_setter_is_told_so(driver, tmp_path):
    driver.fail("nvmlDeviceGetPowerManagementLimit", "NotSupported")
    driver.fail("field:192", "NotSupported")
    done = carbonreport(driver, tmp_path, "run", "--power-cap", "300", "--", "true")

    assert "no power limit that can be set, as many laptops" in done.stderr


def test_a_board_in_mig_instances_is_refused(driver, tmp_path):
    driver.board(0).set(mig_instances=2)
    done = carbonreport(driver, tmp_path, "run", "--power-cap", "300", "--", "true")

    assert "cut into MIG instances" in done.stderr
    assert driver.setter_calls() == []


def test_two_commands_with_one_cap_share_the_board(driver, tmp_path):
    inner = [sys.executable, "-m", "carbonreport", "run", "--power-cap", "300", "--zone", "DE", "--", "true"]
    done = carbonreport(driver, tmp_path, "run", "--power-cap", "300", "--zone", "DE", "--", *inner)
    assert done.returncode == 0, done.stderr
    other = [sys.executable, "-m", "carbonreport", "run", "--power-cap", "400", "--zone", "DE", "--", "true"]
    refused = carbonreport(driver, tmp_path, "run", "--power-cap", "300", "--zone", "DE", "--", *other)

    assert refused.returncode == 1
    assert "is held by another run (process" in refused.stderr
    assert driver.board(0).peek().requested_watts == 650


# Doctor


def test_doctor_says_who_may_set_caps_and_what_would_allow_it(virtual_driver, pynvml):
    allowed = cap_finding({}, allowed=lambda uid, environ: Rights("as root"), find_boards=boards_of(pynvml))
    denied = cap_finding({}, allowed=lambda uid, environ: Rights("", "a line"), find_boards=boards_of(pynvml))

    assert (allowed.state, "200 to 700 W, now 700 W" in allowed.text, "may be set as root" in allowed.text) == ("known", True, True)
    assert (denied.state, denied.remedy) == ("missing", "a line")
    assert virtual_driver.setter_calls() == []


def boards_of(nvml):
    return lambda environ: [(i, nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByIndex(i))) for i in range(nvml.nvmlDeviceGetCount())]
