"""Who may set boards here, without trying it, and the exact line that would allow it."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from carbonreport.control.controllers.smi import SUDO, Answer, ask

_CAP_SYS_ADMIN = 21  # capability.h
_STATUS = Path("/proc/self/status")
_CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))
_ANY_BOARD = "GPU-00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Rights:
    """How this user may set boards.

    Attributes:
        way: "as root", "with CAP_SYS_ADMIN", "through sudo nvidia-smi", or "" where not at all.
        remedy: What would allow it; "" where it is allowed.
    """

    way: str
    remedy: str = ""


def rights(
    uid: int,
    environ: Mapping[str, str],
    *,
    ask: Callable[[Sequence[str]], Answer] = ask,
    status: Path = _STATUS,
    marks: Sequence[Path] = _CONTAINER_MARKS,
) -> Rights:
    """How this user may set boards, as far as that can be seen without setting anything: a driver may still refuse."""
    if has_sys_admin(status):
        return Rights("as root" if uid == 0 else "with CAP_SYS_ADMIN")
    nvidia_smi = environ.get("CARBONREPORT_NVIDIA_SMI", "nvidia-smi")
    if uid != 0 and ask((*SUDO, "-l", nvidia_smi, "-i", _ANY_BOARD, "-pl", "300")).code == 0:
        return Rights("through sudo nvidia-smi")
    return Rights("", advice(uid, environ, marks=marks))


def has_sys_admin(status: Path = _STATUS) -> bool:
    """Whether the process has the capability that the driver asks for, from /proc/self/status (proc_pid_status(5): CapEff)."""
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return os.geteuid() == 0
    held = next((line.split()[1] for line in lines if line.startswith("CapEff:")), "0")
    return bool(int(held, 16) >> _CAP_SYS_ADMIN & 1)


def advice(uid: int, environ: Mapping[str, str], *, marks: Sequence[Path] = _CONTAINER_MARKS) -> str:
    """What would allow it. A power limit can only be set with CAP_SYS_ADMIN; no API restriction of the driver frees it."""
    if any(mark.exists() for mark in marks):
        return "a container needs --cap-add SYS_ADMIN for it"
    if uid == 0:
        return "root has no CAP_SYS_ADMIN here: the container or service must be given it"
    nvidia_smi = environ.get("CARBONREPORT_NVIDIA_SMI", "/usr/bin/nvidia-smi")
    return (
        "an administrator can allow just that with a line in `visudo -f /etc/sudoers.d/carbonreport` (sudo 1.9.10 or newer): "
        f"#{uid} ALL=(root) NOPASSWD: {nvidia_smi} ^-i GPU-[0-9a-f-]+ (-pl [0-9.]+|-lgc [0-9]+,[0-9]+|-lmc [0-9]+,[0-9]+|-rgc|-rmc)$"
    )
