"""A process of its own that waits for the end of the one that set the boards, and puts them back if that one did not.

It watches a pidfd: the end of a pipe would stay open in forked workers. It has its own session, so that what is sent to the owner's terminal or process
group does not reach it. What ends a whole control group, as a job's end does, ends it too: then the epilog's `carbonreport restore` and the next start do it.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from carbonreport.control.controller import ControlError, Controller
from carbonreport.control.giveback import IS_DONE, Rule, give_back_one
from carbonreport.control.holder import Holder, is_alive
from carbonreport.control.leases import Leases, boot_id
from carbonreport.control.means import opened

_READY, _DONE = b"ready\n", b"done\n"
_READY_S, _END_S = 20.0, 3.0
_LOOK_S, _REFRESH_S = 0.5, 3600.0
_NOT_STARTED = "the process that takes settings back after a crash could not be started; nothing was set"
_TRIES, _PAUSE_S = 10, 0.5
# The guardian begins with the owner's own import path: it must find the same packages, and nothing in a working folder.
_BEGIN = "import sys, json; s = json.loads(sys.stdin.readline()); sys.path[:] = s['path']; from carbonreport.control.guardian import guard; guard(s)"


@contextlib.contextmanager
def guarded_by_a_process(
    is_all_back: Callable[[], bool], *, owner: Holder, devices: tuple[str, ...], leases: Leases, environ: Mapping[str, str]
) -> Iterator[None]:
    """A guardian while the block lasts; where not all is back at the end, it tries again once the owner is gone.

    Raises:
        ControlError: It could not be started; nothing may be set without it.
    """
    guardian = _begun(owner, devices, leases, environ)
    try:
        yield
    finally:
        _end(guardian, is_done=os.getpid() == owner.pid and is_all_back())


def _begun(owner: Holder, devices: tuple[str, ...], leases: Leases, environ: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """The guardian, ready."""
    settings = {
        "path": [os.path.abspath(entry) for entry in sys.path if entry],
        "pid": owner.pid,
        "started_ticks": owner.started_ticks,
        "folder": str(leases.folder),
        "uid": leases.uid,
        "devices": list(devices),
    }
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    try:
        guardian = subprocess.Popen(
            [sys.executable, "-P", "-c", _BEGIN], stdin=pipe, stdout=pipe, stderr=null, start_new_session=True, env=dict(environ), cwd="/"
        )
    except OSError as error:
        raise ControlError(f"{_NOT_STARTED} ({error})") from error
    assert guardian.stdin is not None and guardian.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        guardian.stdin.write(json.dumps(settings).encode() + b"\n")
        guardian.stdin.flush()
    answer = select.poll()  # select() takes no descriptor above 1023
    answer.register(guardian.stdout, select.POLLIN)
    if not answer.poll(_READY_S * 1000) or guardian.stdout.readline() != _READY:
        guardian.kill()
        guardian.communicate()
        raise ControlError(_NOT_STARTED)
    guardian.stdout.close()
    return guardian


def _end(guardian: "subprocess.Popen[bytes]", *, is_done: bool) -> None:
    """Tell it that all is done; else leave it to wait for the owner's end."""
    assert guardian.stdin is not None
    if is_done:
        with contextlib.suppress(OSError):
            guardian.stdin.write(_DONE)
            guardian.stdin.flush()
    with contextlib.suppress(OSError):
        guardian.stdin.close()
    if is_done:
        try:
            guardian.wait(_END_S)
        except subprocess.TimeoutExpired:  # somebody stopped it; all boards are back, so that nothing is left for it to do
            guardian.kill()
            guardian.wait()


def guard(settings: Mapping[str, Any]) -> None:
    """The guardian's life: ready, wait, put back. Called in its own process."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGPIPE"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    owner = Holder(settings["pid"], settings["started_ticks"])
    leases = Leases(Path(settings["folder"]), settings["uid"])
    with opened(os.environ) as controller:
        os.write(1, _READY)
        if not _is_done(owner, leases):
            _give_back(controller, leases, settings["devices"])


def _give_back(controller: Controller, leases: Leases, devices: list[str]) -> None:
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE_S)
        with contextlib.suppress(ControlError), leases.turn() as turn:
            done = [give_back_one(turn, device, controller, Rule(boot_id())) for device in devices]
            if all(one.outcome in IS_DONE or one.outcome == "still-held" for one in done):
                return


def _is_done(owner: Holder, leases: Leases) -> bool:
    """Wait until the owner says that all boards are back (true), or is dead (false)."""
    poller = select.poll()
    poller.register(0, select.POLLIN)
    try:
        pidfd = os.pidfd_open(owner.pid)
        poller.register(pidfd, select.POLLIN)
    except OSError:  # an old kernel, or the owner is dead already
        pidfd = -1
    while is_alive(owner):
        for handle, _ in poller.poll((_REFRESH_S if pidfd >= 0 else _LOOK_S) * 1000):
            if handle == pidfd:
                return False
            if os.read(0, 64).endswith(_DONE):
                return True
            poller.unregister(0)  # closed without a word: an exec, or a descriptor that was swept away
        _refresh(leases.folder)
    return False


def _refresh(folder: Path) -> None:
    """Keep the journal young: machines are set to delete what lies in /tmp for some days."""
    for path in folder.glob("*"):
        with contextlib.suppress(OSError):
            os.utime(path, follow_symlinks=False)
