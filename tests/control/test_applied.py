"""Knobs are held for the length of a block, on all boards or on none, and given back however it ends."""

import contextlib
import os
from dataclasses import replace

import pytest

from carbonreport.control.applied import Applied, applied
from carbonreport.control.controller import ControlDenied, ControlError, ControlRefused
from carbonreport.control.giveback import Rule, give_back
from carbonreport.control.holder import Holder, is_gone, this_process
from carbonreport.control.leases import Lease, Leases
from carbonreport.model.knobs import Knobs
from carbonreport.testing.controller import FakeController, fake_board

CAP = Knobs(power_cap_watts=300)
GONE = Holder(2**22 - 1, 1)  # above any pid that Linux gives by default


@contextlib.contextmanager
def no_guardian(is_all_back):
    yield


def controller(boards: int = 2) -> FakeController:
    return FakeController({board.uuid: board for board in (fake_board(i) for i in range(boards))})


@pytest.fixture
def leases(tmp_path) -> Leases:
    return Leases(tmp_path / "control", os.getuid())


def held(
    fake: FakeController, leases: Leases, knobs: Knobs = CAP, owner: Holder | None = None, **more
) -> contextlib.AbstractContextManager[Applied]:
    wanted = dict.fromkeys(fake.boards, knobs)
    return applied(fake, wanted, leases, owner or this_process(), "boot", no_guardian, **more)


def limits(fake: FakeController) -> list[float | None]:
    return [board.limit_watts for board in fake.boards.values()]


def test_boards_have_the_cap_inside_and_their_own_limit_again_after(leases):
    fake = controller()
    with held(fake, leases) as here:
        assert limits(fake) == [300, 300]
    assert limits(fake) == [650, 650]
    assert [done.outcome for done in here.given_back] == ["restored"] * 2
    assert not list(leases.folder.glob("*.json"))


def test_the_journal_is_on_the_disk_before_anything_is_set(leases):
    seen = []

    class Watching(FakeController):
        def set(self, device, knobs):
            with open(leases.folder / f"{device}.json") as file:
                seen.append(file.read())
            super().set(device, knobs)

    fake = Watching({board.uuid: board for board in (fake_board(),)})
    with held(fake, leases):
        pass
    assert '"before_watts":650' in seen[0]
    assert f'"pid":{os.getpid()}' in seen[0]


def test_an_error_inside_the_block_gives_back_and_is_not_swallowed(leases):
    fake = controller()
    with pytest.raises(ZeroDivisionError), held(fake, leases):
        raise ZeroDivisionError
    assert limits(fake) == [650, 650]


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        (Knobs(power_cap_watts=150), "takes power caps of 200 to 700 W, not 150 W"),
        (Knobs(power_cap_watts=701), "takes power caps of 200 to 700 W, not 701 W"),
        (Knobs(sm_clock_mhz=200), "takes core clocks of 345 to 1980 MHz, not 200 MHz"),
        (Knobs(mem_clock_mhz=5001), "takes memory clocks of 2201 to 3201 MHz"),
    ],
)
def test_what_is_out_of_range_is_refused_with_the_range_and_nothing_is_set_on_any_board(leases, knobs, words):
    fake = controller()
    with pytest.raises(ControlRefused, match=words), held(fake, leases, knobs):
        pass
    assert fake.calls == []


def test_a_range_that_only_the_second_board_breaks_leaves_the_first_alone_too(leases):
    fake = controller()
    fake.boards["GPU-00001"] = replace(fake_board(1), least_watts=400.0)
    with pytest.raises(ControlRefused, match="nothing was set on any GPU"), held(fake, leases):
        pass
    assert fake.calls == []


def test_a_cap_that_is_ignored_in_silence_is_an_error_and_the_other_boards_are_given_back(leases):
    fake = controller()
    fake.ignoring.add("GPU-00001")
    with pytest.raises(ControlRefused, match="still has 650 W: the driver ignores it"), held(fake, leases):
        pass
    assert limits(fake) == [650, 650]
    assert not list(leases.folder.glob("*.json"))


def test_a_laptop_without_the_setter_and_a_board_in_pieces_are_refused_by_name(leases):
    fake = controller(1)
    fake.boards["GPU-00000"] = replace(fake_board(), limit_watts=None)
    with pytest.raises(ControlRefused, match="no power limit that can be set, as many laptops"), held(fake, leases):
        pass
    fake.boards["GPU-00000"] = replace(fake_board(), has_mig=True)
    with pytest.raises(ControlRefused, match="cut into MIG instances"), held(fake, leases):
        pass
    assert fake.calls == []


def test_without_permission_nothing_is_left_behind(leases):
    fake = controller()
    fake.is_allowed = False
    with pytest.raises(ControlDenied), held(fake, leases):
        pass
    assert limits(fake) == [650, 650]
    assert not list(leases.folder.glob("*.json"))


def test_a_board_that_cannot_be_put_back_stays_in_the_journal_and_the_others_are_back(leases):
    fake = controller(3)
    with held(fake, leases) as here:
        fake.failing.add("GPU-00001")
    assert limits(fake) == [650, 300, 650]
    assert [done.outcome for done in here.given_back] == ["restored", "failed", "restored"]
    assert not here.is_all_back

    fake.failing.clear()
    with leases.turn() as turn:
        (done,) = give_back(turn, fake, Rule("boot", this_process()))
    assert done.outcome == "restored"
    assert limits(fake) == [650] * 3


# Two runs on one board


def test_another_run_with_another_cap_is_refused_by_its_process(leases):
    fake = controller()
    other = Holder(os.getppid(), None)
    with held(fake, leases, owner=other):
        words = f"held by another run \\(process {other.pid}\\) with a power cap of 300 W"
        with pytest.raises(ControlError, match=words), held(fake, leases, Knobs(power_cap_watts=400)):
            pass
        assert limits(fake) == [300, 300]
    assert limits(fake) == [650, 650]


@pytest.mark.parametrize("first_leaves_first", [True, False])
def test_two_runs_that_ask_for_the_same_share_it_and_the_last_one_gives_back(leases, first_leaves_first):
    fake = controller(1)
    first, second = (contextlib.ExitStack() for _ in range(2))
    first.enter_context(held(fake, leases))
    second.enter_context(held(fake, leases, owner=Holder(os.getppid(), None)))
    order = [first, second] if first_leaves_first else [second, first]

    order[0].close()
    assert limits(fake) == [300]
    order[1].close()
    assert limits(fake) == [650]


def test_a_run_inside_another_one_of_the_same_process_leaves_the_outer_ones_cap(leases):
    fake = controller(1)
    with held(fake, leases):
        with held(fake, leases):
            pass
        assert limits(fake) == [300]
    assert limits(fake) == [650]


def test_a_limit_that_somebody_else_has_set_since_is_left_alone(leases):
    fake = controller(1)
    with held(fake, leases) as here:
        fake.boards["GPU-00000"] = fake_board(limit_watts=500)
    assert limits(fake) == [500]
    assert here.given_back[0].outcome == "changed-by-others"
    assert "somebody else" in here.given_back[0].text


def test_another_users_run_on_the_board_is_named_and_nothing_is_set(leases):
    fake = controller(1)
    lease = Lease(1, "GPU-00000", "boot", 1001, 700.0, CAP, (Holder(os.getppid(), None),))
    with pytest.raises(ControlError, match="run of user 1001"), held(fake, leases, foreign=lambda device: lease):
        pass
    assert fake.calls == []


# Runs that died


def test_the_next_start_first_takes_back_what_a_dead_run_left(leases):
    fake = controller(1)
    with leases.turn() as turn:
        turn.write(Lease(1, "GPU-00000", "boot", os.getuid(), 600.0, Knobs(power_cap_watts=250), (GONE,)))
    fake.boards["GPU-00000"] = fake_board(limit_watts=250)

    with held(fake, leases) as here:
        assert here.before["GPU-00000"].limit_watts == 600
    assert limits(fake) == [600]


def test_after_a_restart_of_the_host_nothing_is_set_for_it_is_all_lost(leases):
    fake = controller(1)
    with leases.turn() as turn:
        turn.write(Lease(1, "GPU-00000", "an older boot", os.getuid(), 600.0, CAP, (GONE,)))
        (done,) = give_back(turn, fake, Rule("boot"))
    assert (done.outcome, fake.calls) == ("restarted", [])
    assert not list(leases.folder.glob("*.json"))


def test_clocks_are_unlocked_with_the_limit(leases):
    fake = controller(1)
    with held(fake, leases, Knobs(power_cap_watts=300, sm_clock_mhz=1410)):
        assert fake.locked["GPU-00000"].sm_clock_mhz == 1410
    assert (fake.locked, limits(fake)) == ({}, [650])


def test_a_dry_run_says_what_would_be_put_back_and_changes_nothing(leases):
    fake = controller(1)
    with leases.turn() as turn:
        turn.write(Lease(1, "GPU-00000", "boot", os.getuid(), 650.0, CAP, (GONE,)))
        fake.boards["GPU-00000"] = fake_board(limit_watts=300)
        (done,) = give_back(turn, fake, Rule("boot", is_dry=True))
    assert (done.outcome, fake.calls) == ("would-restore", [])
    assert done.text.endswith("power limit back to 650 W")
    assert list(leases.folder.glob("*.json"))


def test_a_limit_that_cannot_be_read_at_the_end_is_set_again_all_the_same_and_stays_in_the_journal(leases):
    class Deaf(FakeController):
        is_deaf = False

        def read(self, device):
            state = super().read(device)
            return replace(state, limit_watts=None) if self.is_deaf else state

    fake = Deaf({"GPU-00000": fake_board()})
    with held(fake, leases) as here:
        fake.is_deaf = True
    assert here.given_back[0].outcome == "failed"
    assert limits(fake) == [650]
    assert list(leases.folder.glob("*.json"))

    fake.is_deaf = False
    with leases.turn() as turn:
        assert [done.outcome for done in give_back(turn, fake, Rule("boot", this_process()))] == ["as-before"]


def test_a_cap_above_the_limit_that_is_there_is_no_cap(leases):
    fake = controller(1)
    fake.boards["GPU-00000"] = fake_board(limit_watts=400)
    with (
        pytest.raises(ControlRefused, match="limited to 400 W already: 600 W would raise that limit"),
        held(fake, leases, Knobs(power_cap_watts=600)),
    ):
        pass
    assert fake.calls == []


def test_another_users_board_that_was_left_by_a_dead_run_is_refused_with_who_can_put_it_back(leases):
    fake = controller(1)
    lease = Lease(1, "GPU-00000", "boot", 1001, 700.0, CAP, (GONE,))
    with pytest.raises(ControlError, match="restore`, or as root with --user 1001"), held(fake, leases, foreign=lambda device: lease):
        pass
    assert fake.calls == []


# Containers, whose process numbers are not the host's


@pytest.mark.parametrize(("is_gone", "outcome"), [(False, "still-held"), (True, "restored")])
def test_a_run_of_another_container_is_left_alone_as_long_as_it_may_live(leases, is_gone, outcome):
    fake = controller(1)
    fake.boards["GPU-00000"] = fake_board(limit_watts=300)
    with leases.turn() as turn:
        turn.write(Lease(1, "GPU-00000", "boot", os.getuid(), 650.0, CAP, (GONE,), "pid:[1]"))
        (done,) = give_back(turn, fake, Rule("boot", is_gone=lambda namespace: is_gone))
    assert done.outcome == outcome


def test_only_the_host_itself_can_tell_that_a_container_is_gone(tmp_path):
    def process(pid: str, namespace: str) -> None:
        (tmp_path / pid / "ns").mkdir(parents=True)
        (tmp_path / pid / "ns" / "pid").symlink_to(namespace)

    process("self", "pid:[4026531836]")
    process("7", "pid:[4026531836]")
    assert is_gone("pid:[99]", tmp_path)
    process("8", "pid:[99]")
    assert not is_gone("pid:[99]", tmp_path)
    (tmp_path / "self" / "ns" / "pid").unlink()
    (tmp_path / "self" / "ns" / "pid").symlink_to("pid:[50]")
    assert not is_gone("pid:[98]", tmp_path)
