"""`restore` as root believes nobody's file further than it can be believed: what is not right sets nothing."""

import json
import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from carbonreport.control.leases import boot_id
from carbonreport.errors import CarbonreportError
from carbonreport.testing.controller import FakeController, fake_board
from carbonreport.workflows.restore import restore

UID = 4321
GOOD = {
    "carbonreport_lease": 1,
    "device": "GPU-00000",
    "boot_id": boot_id(),
    "uid": UID,
    "before_watts": 650.0,
    "knobs": {"power_cap_watts": 300.0, "sm_clock_mhz": None, "mem_clock_mhz": None},
    "holders": [{"pid": 2**22 - 1, "started_ticks": 1}],
}

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be lied to by another user's file")


@pytest.fixture
def fake() -> FakeController:
    return FakeController({"GPU-00000": fake_board(limit_watts=300.0)})


def given_back(fake: FakeController, folder: Path, own_uid: int = 0):
    @contextmanager
    def opened(environ):
        yield fake

    return restore(UID, own_uid=own_uid, environ={"CARBONREPORT_CONTROL_DIR": str(folder)}, longest_turn_s=0.1, open_controller=opened)


def journal(folder: Path, content: bytes | dict, name: str = "GPU-00000.json", owner: int = UID) -> Path:
    home = folder / str(UID)
    home.mkdir(exist_ok=True)
    path = home / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    for each in (home, path):
        os.chown(each, owner, owner)
    return path


@as_root
def test_a_users_own_journal_is_believed(fake, tmp_path):
    journal(tmp_path, GOOD)

    (done,) = given_back(fake, tmp_path)
    assert done.outcome == "restored"
    assert fake.boards["GPU-00000"].limit_watts == 650


@as_root
@pytest.mark.parametrize(
    "changed",
    [
        {"before_watts": 1e9},
        {"before_watts": 5.0},
        {"before_watts": -650.0},
        {"before_watts": "650"},
        {"knobs": {"power_cap_watts": 1e6, "sm_clock_mhz": None, "mem_clock_mhz": None}},
        {"knobs": {"power_cap_watts": -1, "sm_clock_mhz": None, "mem_clock_mhz": None}},
        {"knobs": None},
        {"device": "GPU-0000f"},
        {"carbonreport_lease": 99},
        {"holders": [{"pid": 1, "started_ticks": None}] * 2000},
        {"holders": "all"},
    ],
    ids=str,
)
def test_absurd_values_set_nothing(fake, tmp_path, changed):
    journal(tmp_path, GOOD | changed)

    outcomes = [done.outcome for done in given_back(fake, tmp_path)]
    assert outcomes == ["refused"]
    assert fake.calls == []


@as_root
@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"[" * 5000, b'{"a":' + b"9" * 70_000 + b"}", b"null"], ids=lambda c: str(c[:6])
)
def test_what_is_no_journal_sets_nothing(fake, tmp_path, content):
    journal(tmp_path, content)

    assert [done.outcome for done in given_back(fake, tmp_path)] == ["refused"]
    assert fake.calls == []


@as_root
def test_a_file_of_another_owner_sets_nothing(fake, tmp_path):
    path = journal(tmp_path, GOOD)
    os.chown(path, 5555, 5555)

    assert [done.outcome for done in given_back(fake, tmp_path)] == ["refused"]
    assert fake.calls == []


@as_root
def test_a_link_or_a_second_name_of_somebody_elses_file_sets_nothing(fake, tmp_path):
    real = journal(tmp_path, GOOD, "elsewhere")
    link = real.with_name("GPU-00000.json")
    for make in (link.symlink_to, link.hardlink_to):
        make(real)
        assert [done.outcome for done in given_back(fake, tmp_path)] == ["refused"]
        link.unlink()
    os.mkfifo(link)
    os.chown(link, UID, UID)
    assert [done.outcome for done in given_back(fake, tmp_path)] == ["refused"]
    assert fake.calls == []


@as_root
@pytest.mark.parametrize("trap", ["linked folder", "foreign folder", "folder that others may write"])
def test_a_folder_that_is_not_the_users_own_alone_sets_nothing(fake, tmp_path, trap):
    home = journal(tmp_path, GOOD).parent
    if trap == "linked folder":
        home.rename(tmp_path / "real")
        home.symlink_to(tmp_path / "real")
        assert given_back(fake, tmp_path) == []
    else:
        if trap == "foreign folder":
            os.chown(home, 5555, 5555)
        else:
            home.chmod(0o777)
        with pytest.raises(CarbonreportError, match="own folder, or others may write"):
            given_back(fake, tmp_path)
    assert fake.calls == []


@as_root
def test_a_name_that_is_no_board_is_not_even_opened(fake, tmp_path):
    journal(tmp_path, GOOD, "..GPU-00000.json")
    journal(tmp_path, GOOD, "GPU-00000; reboot.json")

    assert given_back(fake, tmp_path) == []


@as_root
def test_a_board_whose_limit_is_not_what_the_journal_says_it_set_is_left_alone(fake, tmp_path):
    fake.boards["GPU-00000"] = fake_board(limit_watts=500.0)
    journal(tmp_path, GOOD)

    assert [done.outcome for done in given_back(fake, tmp_path)] == ["changed-by-others"]
    assert fake.boards["GPU-00000"].limit_watts == 500


@as_root
def test_a_user_who_holds_the_lock_for_ever_does_not_stop_the_epilog_for_ever(fake, tmp_path):
    import fcntl

    home = journal(tmp_path, GOOD).parent
    with open(home / "turn", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CarbonreportError, match="has held the lock"):
            given_back(fake, tmp_path)


def test_another_users_journal_is_for_root_alone(fake, tmp_path):
    with pytest.raises(CarbonreportError, match="only root"):
        given_back(fake, tmp_path, own_uid=1000)


def test_where_nothing_was_ever_set_nothing_is_said(fake, tmp_path):
    assert given_back(fake, tmp_path) == []
