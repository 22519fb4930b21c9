"""Turns knobs through `sudo -n nvidia-smi`, where only that is allowed; reads through NVML."""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from carbonreport.control.controller import BoardState, ControlDenied, ControlError, Controller
from carbonreport.model.knobs import Knobs

_TIMEOUT_S = 20.0
_FIRST_LINE = 200
SUDO = ("sudo", "-n")
_DENIED = ("password is required", "not allowed", "may not run", "Insufficient Permissions", "not found")


@dataclass(frozen=True, slots=True)
class Answer:
    """How a command ended: its exit code and what it said."""

    code: int
    said: str


Ask = Callable[[Sequence[str]], Answer]


def create(reader: Controller, nvidia_smi: str = "nvidia-smi") -> Controller:
    """The controller that reads by another one."""
    return SmiController(reader, ask, nvidia_smi)


class SmiController:
    """One call of nvidia-smi a knob, never through a shell.

    Args:
        reader: Reads the boards.
        ask: Runs a command.
        nvidia_smi: Its path, as the sudoers line spells it.
    """

    def __init__(self, reader: Controller, ask: Ask, nvidia_smi: str) -> None:
        self._reader, self._ask, self._nvidia_smi = reader, ask, nvidia_smi

    def read(self, device: str) -> BoardState:
        """See Controller."""
        return self._reader.read(device)

    def set(self, device: str, knobs: Knobs) -> None:
        """See Controller."""
        state = self._reader.read(device)
        if knobs.sm_clock_mhz is not None:
            self._turn(device, "-lgc", f"{state.sm_clocks_mhz[-1]},{knobs.sm_clock_mhz}")
        if knobs.mem_clock_mhz is not None:
            self._turn(device, "-lmc", f"{state.mem_clocks_mhz[-1]},{knobs.mem_clock_mhz}")
        if knobs.power_cap_watts is not None:
            self._turn(device, "-pl", f"{knobs.power_cap_watts:g}")

    def restore(self, device: str, before_watts: float | None, knobs: Knobs) -> None:
        """See Controller."""
        failed: list[ControlError] = []
        for wanted, arguments in (
            (knobs.sm_clock_mhz is not None, ("-rgc",)),
            (knobs.mem_clock_mhz is not None, ("-rmc",)),
            (knobs.power_cap_watts is not None and before_watts is not None, ("-pl", f"{before_watts or 0:.2f}".rstrip("0").rstrip("."))),
        ):
            if wanted:
                try:
                    self._turn(device, *arguments)
                except ControlError as error:
                    failed.append(error)
        if failed:
            raise failed[0]

    def _turn(self, device: str, *arguments: str) -> None:
        command = (*SUDO, self._nvidia_smi, "-i", device, *arguments)
        answer = self._ask(command)
        if answer.code == 0:
            return
        said = " ".join(answer.said.split())[:_FIRST_LINE]
        if any(words in said for words in _DENIED):
            raise ControlDenied(f"`{' '.join(command)}` is not allowed to this user ({said})")
        raise ControlError(f"`{' '.join(command)}` failed with code {answer.code}: {said}")


def ask(command: Sequence[str]) -> Answer:
    """Run a command without input, with a timeout."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except FileNotFoundError as error:
        return Answer(127, f"{command[0]} is not installed: may not run it ({error.strerror})")
    except subprocess.TimeoutExpired:
        return Answer(124, f"no answer within {_TIMEOUT_S:.0f} s")
    return Answer(done.returncode, done.stdout + done.stderr)
