"""A GPU for tests on machines without one, and runs in virtual time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

from carbonreport.errors import MeterError
from carbonreport.measure.clock import Clock, RunClock
from carbonreport.measure.edges import EdgeSource
from carbonreport.measure.meter import Meter, Poll
from carbonreport.measure.meters.nvml import NvmlMeter
from carbonreport.measure.tracer import Run, RunPlan
from carbonreport.model.run import Device, RunKind
from carbonreport.testing.clock import NANOSECONDS_PER_SECOND, FakeClock
from carbonreport.testing.nvml import FakeBoard, FakeNvml, LowPass
from carbonreport.workflows.begin import plan_run
from carbonreport.workflows.place import PlaceOptions

H200_SENSOR = LowPass(time_constant_s=0.0127, delay_s=0.00335)  # measured on one board, driver 580.159.04
STEP_NS = NANOSECONDS_PER_SECOND
TRUTH_STEP_S = 0.001


class VirtualGpu:
    """A meter with one GPU whose power the test says, read as a driver reads it.

    Its energy counter ticks every 0.1 s, its buffer holds 2.4 s of power samples, one each 20 ms, and these follow the
    power through the board's sensor. It is measured by the package's own NVML meter, which sees no difference.

        def training_watts(s):
            return 650.0 if s % 0.5 < 0.4 else 120.0

        def test_an_hour_of_training_is_counted(tmp_path):
            clock, gpu = FakeClock(), VirtualGpu(training_watts)
            with virtual_trace(clock, gpu, out=tmp_path) as run:
                with run.span("train"):
                    clock.advance(3600)
            assert run.record.traces[0].joules[-1] == approx(gpu.true_joules(3600), rel=0.01)

    In real time it is a meter like any other, by the name of a function that makes it:
    `trace("job", meters=("my_tests:gpu",))` with `def gpu(options): return VirtualGpu(300)` in my_tests.py.

    Args:
        watts: Power, constant or as a function of the seconds since the run began; negative ones are asked for, too. [W]
        uuid: Id of the device.
        name: Its model.
        counter_share: What the energy counter counts of each true joule.
        sensor: How power samples follow power; None: they are power itself at their moment.
        missing: NVML functions that it does not have, such as "nvmlDeviceGetSamples"; "instant" stands for field 186.
        lost_at_s: Moment at which it falls off the bus. [s]
        frozen_from_s: Moment at which its sample buffer stops. [s]
    """

    def __init__(
        self,
        watts: float | Callable[[float], float],
        *,
        uuid: str = "GPU-virtual",
        name: str = "NVIDIA H200",
        counter_share: float = 1.0,
        sensor: LowPass | None = H200_SENSOR,
        missing: frozenset[str] = frozenset(),
        lost_at_s: float = float("inf"),
        frozen_from_s: float = float("inf"),
    ) -> None:
        is_steady = not callable(watts)
        self._watts: Callable[[float], float] = watts if callable(watts) else lambda _: watts
        self._board = FakeBoard(
            uuid,
            self._watts,
            name=name,
            counter_share=counter_share,
            missing=missing,
            frozen_from_s=frozen_from_s,
            sensor=None if is_steady else sensor,
        )
        self._lost_at_s = lost_at_s
        self._replay: _Replay | None = None
        self._meter: NvmlMeter | None = None
        self._run_clock: RunClock | None = None

    def true_joules(self, to_s: float, from_s: float = 0.0) -> float:
        """Energy between two offsets, whatever it reports. [J]"""
        steps = max(1, round((to_s - from_s) / TRUTH_STEP_S))
        step_s = (to_s - from_s) / steps
        return step_s * sum(self._watts(from_s + (i + 0.5) * step_s) for i in range(steps))

    @property
    def period_s(self) -> float | None:
        """See Meter."""
        return None if self._meter is None else self._meter.period_s

    def environment(self) -> Mapping[str, str]:
        """See Meter."""
        return {} if self._meter is None else self._meter.environment()

    def open(self, clock: RunClock) -> tuple[Device, ...]:
        """See Meter; opens as of the begin of the run, however late it is called."""
        self._replay = _Replay(clock)
        self._meter = NvmlMeter(FakeNvml(self._replay, [self._board]), {})
        self._run_clock = RunClock(self._replay)
        return self._meter.open(self._run_clock)

    def poll(self, *, is_last: bool) -> Poll:
        """See Meter; catches up with polls that virtual time has jumped over."""
        if self._replay is None:
            raise MeterError("the virtual GPU was polled before it was opened")
        polls = []
        while self._replay.is_behind(STEP_NS):
            self._replay.step(self._step_ns())
            polls.append(self._poll_once(is_last=False))
        self._replay.catch_up()
        polls.append(self._poll_once(is_last=is_last))
        return _merged(polls)

    def close(self) -> None:
        """See Meter."""
        if self._meter is not None:
            self._meter.close()

    def _step_ns(self) -> int:
        period_s = self.period_s
        return STEP_NS if period_s is None else round(period_s * NANOSECONDS_PER_SECOND)

    def _poll_once(self, *, is_last: bool) -> Poll:
        assert self._meter is not None and self._run_clock is not None
        self._run_clock.look()
        if self._run_clock.offset_s() >= self._lost_at_s:
            self._board.lose()
        return self._meter.poll(is_last=is_last)


def virtual_trace(
    clock: FakeClock,
    *meters: Meter,
    out: Path,
    name: str = "run",
    kind: RunKind = "training",
    zone: str | None = "DE",
    pue: float | None = 1.0,
) -> Run:
    """A run as `trace` makes it, in the time of a fake clock and on the meters of a test.

    Args:
        clock: Its time; `clock.advance(3600)` inside the block lets an hour pass.
        meters: What measures it, such as a VirtualGpu or a FakeMeter.
        out: Folder of the record.
        name: What it is called.
        kind: training, inference, …
        zone: Grid zone.
        pue: Power usage effectiveness of the site.
    """
    return Run(plan_virtual(clock, *meters, out=out, name=name, kind=kind, zone=zone, pue=pue))


def plan_virtual(
    clock: FakeClock,
    *meters: Meter,
    out: Path,
    name: str = "run",
    kind: RunKind = "training",
    zone: str | None = "DE",
    pue: float | None = 1.0,
    edges: EdgeSource | None = None,
) -> RunPlan:
    """What `virtual_trace` runs; `edges` marks spans in the work of a test's own GPU."""
    options = PlaceOptions(zone=zone, pue=None if pue is None else str(pue), site=None)
    plan = plan_run(name, kind=kind, folder=out, options=options, interval_s=1.0, meters=(), environ={})
    return replace(plan, clock=clock, ladders=[[("virtual", _giving(meter))] for meter in meters], edges=edges)


def _merged(polls: Sequence[Poll]) -> Poll:
    """What is listed is joined; of what is told for the whole run the newest holds."""
    parts = {one.name: [getattr(poll, one.name) for poll in polls] for one in fields(Poll)}
    return Poll(**{name: _joined(values) for name, values in parts.items()})


def _joined(values: Sequence[Any]) -> Any:
    if isinstance(values[0], tuple):
        return tuple(chain.from_iterable(values))
    return {key: value for told in values for key, value in told.items()}


def _giving(meter: Meter) -> Callable[[], Meter]:
    return lambda: meter


class _Replay:
    """The clock of a run, lived through again from its begin in steps; pauses of a sleeping machine are jumped over."""

    def __init__(self, run: RunClock) -> None:
        self._clock: Clock = run.clock
        self._boot_ns = run.clock.boot_ns() - round(run.offset_s() * NANOSECONDS_PER_SECOND)
        self._slept_ns = self._asleep_ns()

    def boot_ns(self) -> int:
        """See Clock."""
        return self._boot_ns

    def awake_ns(self) -> int:
        """See Clock."""
        return self._boot_ns - self._slept_ns

    def wall_ns(self) -> int:
        """See Clock."""
        return self.wall_ns_at(self._boot_ns)

    def wall_ns_at(self, boot_ns: int) -> int:
        """See StampClock."""
        if isinstance(self._clock, FakeClock):
            return self._clock.wall_ns_at(boot_ns)
        return self._clock.wall_ns() - (self._clock.boot_ns() - boot_ns)

    def is_behind(self, by_ns: int) -> bool:
        """Whether there is more than this to catch up with, awake."""
        return self._clock.boot_ns() - self._asleep_ns() - self.awake_ns() > by_ns

    def step(self, step_ns: int) -> None:
        """Live through a little."""
        self._boot_ns += step_ns

    def catch_up(self) -> None:
        """Be now."""
        self._slept_ns = self._asleep_ns()
        self._boot_ns = self._clock.boot_ns()

    def _asleep_ns(self) -> int:
        return self._clock.boot_ns() - self._clock.awake_ns()
