"""A dry run says what the run itself would be told, in the conditional, and sets nothing."""

import os
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest

from carbonreport.control.controller import ControlError
from carbonreport.control.holder import Holder
from carbonreport.control.leases import FORMAT_VERSION, Lease, Leases, boot_id, control_folder
from carbonreport.control.rights import Rights
from carbonreport.errors import CarbonreportError
from carbonreport.model.knobs import Knobs
from carbonreport.testing.controller import FakeController, fake_board
from carbonreport.workflows.knobs import RunKnobs
from carbonreport.workflows.knobs_dry import dry_run

BOARD = "GPU-00000"
CAP, CLOCK = Knobs(power_cap_watts=300), Knobs(sm_clock_mhz=1410)
DEAD = Holder(2**22 + 1, 1)  # above the highest number of a process


class Here:
    """A board in memory and a folder of leases."""

    def __init__(self, folder) -> None:
        self.fake = FakeController({BOARD: fake_board()})
        self.environ = {**os.environ, "CARBONREPORT_CONTROL_DIR": str(folder)}
        self.said: list[str] = []

    @contextmanager
    def opened(self, environ):
        yield self.fake

    def found(self, environ):
        return [(0, BOARD)]

    @contextmanager
    def held(self, asked: Knobs, *, is_turned: bool = False):
        run = RunKnobs(
            asked,
            is_optional=False,
            environ=self.environ,
            open_controller=self.opened,
            find_boards=self.found,
            guarded=lambda is_all_back, **settings: nullcontext(),
            watched=lambda devices: nullcontext(None),
            is_turned=is_turned,
        )
        run.start()
        try:
            yield
        finally:
            run.stop()

    def leave(self, asked: Knobs, **more) -> None:
        """What a run that died has left."""
        lease = Lease(
            FORMAT_VERSION, BOARD, **{"boot_id": boot_id(), "uid": os.getuid(), "before_watts": 650.0} | more, knobs=asked, holders=(DEAD,)
        )
        with Leases(control_folder(os.getuid(), self.environ), os.getuid()).turn() as turn:
            turn.write(lease)

    def limit(self, watts: float | None) -> None:
        self.fake.boards[BOARD] = replace(self.fake.boards[BOARD], limit_watts=watts)

    def dry(self, asked: Knobs, **more) -> list[str]:
        before = list(self.fake.calls)
        fakes = {"open_controller": self.opened, "find_boards": self.found, "allowed": lambda uid, environ: Rights("as root")}
        dry_run(asked, self.environ, self.said.append, **fakes, **more)
        assert self.fake.calls == before
        return self.said


@pytest.fixture
def here(tmp_path):
    return Here(tmp_path)


@pytest.mark.parametrize("asked", [CAP, CLOCK])
def test_clocks_that_another_run_turns_would_refuse_the_run_though_both_ask_for_the_same(here, asked):
    with here.held(asked, is_turned=True):
        with pytest.raises(ControlError) as refused:
            here.dry(asked)
        with pytest.raises(ControlError, match="clocks that are turned have one owner at a time"), here.held(asked):
            pass

    begin = f"would be refused: GPU 0 (NVIDIA H200) is held by another run (process {os.getpid()}) with {asked.in_words()}"
    assert str(refused.value) == f"{begin}: clocks that are turned have one owner at a time; wait for its end"
    assert here.said == []


def test_other_knobs_would_refuse_the_run_and_the_same_are_shared(here):
    with here.held(CAP):
        with pytest.raises(
            ControlError, match=r"^would be refused: .* with a power cap of 300 W, so that a power cap of 400 W cannot be set"
        ):
            here.dry(Knobs(power_cap_watts=400))
        assert here.dry(CAP)[-2:] == [f"would put its limit back to 650 W on {BOARD}", "this user may set it as root"]


def test_a_limit_that_somebody_lowered_since_would_refuse_the_run_as_it_does_the_run_itself(here):
    with here.held(CAP):
        here.fake.boards[BOARD] = replace(here.fake.boards[BOARD], limit_watts=250.0)
        with pytest.raises(ControlError, match="would be refused: .*250 W"):
            here.dry(CAP)
        with pytest.raises(ControlError, match="250 W"), here.held(CAP):
            pass


def test_what_a_board_does_not_take_would_refuse_the_run(here):
    with pytest.raises(
        ControlError, match=r"^would be refused: .*takes power caps of 200 to 700 W, not 100 W; nothing would be set on any GPU$"
    ):
        here.dry(Knobs(power_cap_watts=100))


def test_an_optional_cap_would_be_left_out_with_the_same_reason(here):
    with here.held(CAP, is_turned=True):
        (said,) = here.dry(CAP, is_optional=True)

    assert said.startswith("would go on without it: GPU 0 (NVIDIA H200) is held by another run")


def test_a_run_in_another_container_is_judged_as_the_run_itself_judges_it(here):
    """Only the host's root sees that nobody is left in there."""
    here.leave(CAP, pid_namespace="pid:[1]")
    dry, real = "", ""
    try:
        here.dry(CAP)
    except ControlError as error:
        dry = str(error)
    try:
        with here.held(CAP):
            pass
    except ControlError as error:
        real = str(error)

    why = "is held by a run in another container with a power cap of 300 W; wait for its end"
    assert (dry, real) in (("", ""), (f"would be refused: GPU 0 (NVIDIA H200) {why}", f"{BOARD} {why}; nothing was set"))


# What runs that died have left


def test_what_a_run_that_died_has_left_would_be_put_back_first(here):
    here.leave(Knobs(power_cap_watts=300, sm_clock_mhz=1410))
    here.limit(300.0)

    assert here.dry(CAP)[:2] == [
        "would first unlock the clocks of GPU 0 (NVIDIA H200), which a run that died left locked",
        "would first put GPU 0 (NVIDIA H200) back to 650 W, which a run that died left at 300 W",
    ]
    assert f"would put its limit back to 650 W on {BOARD}" in here.said


def test_a_limit_that_the_board_does_not_say_is_not_called_0(here):
    here.leave(CAP)
    here.limit(None)

    assert here.dry(CAP)[0].endswith("back to 650 W, which a run that died left at a limit that it does not say")


@pytest.mark.parametrize(
    ("more", "limit"),
    [({}, 650.0), ({}, 500.0), ({"boot_id": "another"}, 650.0)],
    ids=["it is back already", "somebody else has set another since", "the host was started again"],
)
def test_nothing_would_be_put_back_first_where_nothing_is_left(here, more, limit):
    here.leave(CAP, **more)
    here.limit(limit)

    assert here.dry(CAP) == [
        f"would set a power cap of 300 W on GPU 0 (NVIDIA H200), {BOARD}; its limit is {limit:g} W",
        f"would put its limit back to {limit:g} W on {BOARD}",
        "this user may set it as root",
    ]


def test_a_journal_that_cannot_be_believed_would_refuse_the_run_and_is_kept(here):
    here.leave(CAP, before_watts=9000.0)
    here.limit(300.0)

    with pytest.raises(CarbonreportError, match=r"^would be refused: an earlier run's settings cannot be taken back: .*says 9000 W"):
        here.dry(CAP)
    with Leases(control_folder(os.getuid(), here.environ), os.getuid()).turn() as turn:
        assert turn.devices() == [BOARD]
