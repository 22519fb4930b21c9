"""`carbonreport plan latency` and its function: a board, a small load or somebody's, and what is assumed where nothing may be set."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from carbonreport import nvml
from carbonreport.control.controller import BoardState, ControlDenied
from carbonreport.errors import CarbonreportError
from carbonreport.plan.table import ClockPair
from carbonreport.plan_file import BoundTo
from carbonreport.switch_latency import assumed_latency
from carbonreport.workflows.plan_clocks import nvml_clocks
from carbonreport.workflows.plan_hold import held, refuse_pairs, states_here
from carbonreport.workflows.plan_latency import LatencyAsk, Probe, measure_latencies
from carbonreport.workflows.plan_latency_file import LatencyFile
from carbonreport.workflows.plan_owners import boards_now
from carbonreport.workflows.plan_pairs import envelope
from carbonreport.workflows.plan_run import gpu_marks

Say = Callable[[str], None]
_READ_PAUSE_S = 0.0002
_DEFAULT_TARGETS = 5


def plan_latency(
    targets: Sequence[ClockPair] | None = None,
    *,
    gpu: str | None = None,
    ask: LatencyAsk | None = None,
    say: Say = lambda line: None,
    environ: Mapping[str, str] = os.environ,
) -> LatencyFile:
    """Latency of changes of clocks on one board; where nothing may be set, what is assumed of it.

    Raises:
        CarbonreportError: There is no board, it has no such clocks, or another owner turns them.
    """
    states = states_here(environ, gpu)
    if len(states) > 1:
        raise CarbonreportError(f"{len(states)} GPUs are visible: name one with --gpu")
    state = states[0]
    board = next(board for board in boards_now(environ) if board.uuid == state.uuid)
    wanted = tuple(targets or default_targets(state))
    refuse_pairs(wanted, [state])
    bound = BoundTo(board.uuid, board.model, board.driver)
    try:
        with held(envelope(wanted), (state.uuid,), environ, say) as turn, _reader(state, say) as (read, method):
            rows = measure_latencies(wanted, Probe(read, time.monotonic, turn), ask or LatencyAsk(), say)
    except ControlDenied as error:
        say(f"nothing was measured: {error}")
        return LatencyFile(bound, "assumed", [], assumed_of(board.model))
    except _Idle as error:
        say(f"nothing was measured: {error}")
        return LatencyFile(bound, "assumed", [], assumed_of(board.model))
    return LatencyFile(bound, method, rows, assumed_of(board.model))


class _Idle(CarbonreportError):
    """Nothing runs on the board by which a change could be seen."""


def assumed_of(model: str) -> dict[str, tuple[float, float, float, str]]:
    """What the packaged table assumes of a board."""
    both = {clock: assumed_latency(model, clock) for clock in ("core", "memory")}
    return {clock: (one.low_s, one.value_s, one.high_s, one.source) for clock, one in both.items()}


def default_targets(state: BoardState) -> tuple[ClockPair, ...]:
    """Some core clocks over the upper two thirds of the menu, and each memory clock but the highest."""
    menu = [mhz for mhz in state.sm_clocks_mhz if mhz >= state.sm_clocks_mhz[0] / 3]
    at = [round(i * (len(menu) - 1) / _DEFAULT_TARGETS) for i in range(1, _DEFAULT_TARGETS + 1)]
    cores = [ClockPair(menu[i]) for i in at] if menu else []
    return tuple(dict.fromkeys([*cores, *(ClockPair(None, mem) for mem in state.mem_clocks_mhz[1:])]))


@contextmanager
def _reader(state: BoardState, say: Say) -> Iterator[tuple[Callable[[bool], float], str]]:
    """A small load of PyTorch where it is there, else the clocks that the board tells under somebody's load."""
    marks, why_not = gpu_marks()
    if marks is not None:
        from carbonreport.control.hooks.torch_speed import TorchSpeed

        yield TorchSpeed(marks.torch, _cuda_number(marks.torch, state.uuid)).read, "speed of a small load by CUDA events"
        return
    binding = nvml.binding()
    nvml.start(binding)
    try:
        clocks = nvml_clocks(binding)
        now = clocks(state.uuid)
        if now is None or now.is_idle:
            raise _Idle(f"{why_not}; and nothing else runs on {state.label}, whose clocks follow no lock then; start a load there")
        say(f"{why_not}; the clocks that the board tells are watched under the load that runs there")

        def read(is_memory: bool) -> float:
            time.sleep(_READ_PAUSE_S)
            seen = clocks(state.uuid)
            if seen is None:
                raise CarbonreportError(f"{state.label} does not tell its clocks any more")
            return float(seen.mem_mhz if is_memory else seen.sm_mhz)

        yield read, "clocks that the board tells under load"
    finally:
        nvml.stop(binding)


def _cuda_number(torch: Any, uuid: str) -> int:
    if torch.cuda.device_count() == 1:
        return 0
    for number in range(torch.cuda.device_count()):
        if str(getattr(torch.cuda.get_device_properties(number), "uuid", "")) == uuid.removeprefix("GPU-"):
            return number
    raise CarbonreportError(f"PyTorch does not show which of its GPUs is {uuid}: leave that one alone in CUDA_VISIBLE_DEVICES")
