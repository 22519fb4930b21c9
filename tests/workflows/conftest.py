"""A step of made-up phases on a virtual board in virtual time, measured as a real one is."""

import os
import statistics
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

import numpy as np
import pytest

from carbonreport.control.controllers.nvml import NvmlController
from carbonreport.control.hooks.switcher import Switcher
from carbonreport.plan.table import ClockPair
from carbonreport.plan_file import BoardNow
from carbonreport.workflows.knobs import RunKnobs
from carbonreport.workflows.plan_clocks import Achieved
from carbonreport.workflows.plan_pairs import envelope, knobs_of
from carbonreport.workflows.plan_stage import Phase, Stage
from carbonreport.workflows.plan_ticks import TickWatch, nvml_joules, per_step

# Some layers of a GPT-3-XL-like step: seconds at full clocks, use of the cores, use of the memory.
PHASES = (
    ("embedding", 0.020, 0.15, 0.95),
    ("forward/matmul", 0.090, 0.75, 0.40),
    ("forward/norm", 0.040, 0.25, 0.90),
    ("loss", 0.030, 0.60, 0.70),
    ("backward/matmul", 0.180, 0.75, 0.45),
    ("backward/norm", 0.070, 0.25, 0.90),
    ("optimiser", 0.060, 0.12, 1.00),
)
PIECE_S = 0.002


@dataclass
class VirtualBench:
    """`carbonreport.workflows.plan_bench.Bench` in virtual time: the whole step by the ticking counter, phases by the truth.

    Attributes:
        driver: The virtual driver.
        nvml: The binding.
        phases: Name, work and use of each.
        sd: Relative scatter of the work of one step.
        stages: What was asked for, for the test.
    """

    driver: object
    nvml: object
    phases: tuple = PHASES
    sd: float = 0.001
    seed: int = 0
    stages: list = field(default_factory=list)
    fails_at: int | None = None

    def __post_init__(self):
        self.board = self.driver.board(0)
        self.uuid = self.nvml.nvmlDeviceGetUUID(self.nvml.nvmlDeviceGetHandleByIndex(0))
        self.random = np.random.default_rng(self.seed)

    def sequence(self):
        return tuple(name for name, *_ in self.phases)

    def step(self, look, enter=None):
        """One step: (seconds, joules) of each phase."""
        found = []
        for name, work_s, compute, memory in self.phases:
            if enter is not None:
                enter(name)
            begin_ns, begin_joules = self.driver.boot_ns(), self.board.peek().joules
            self.board.utilisation(compute, memory)
            left_s = work_s * float(np.exp(self.random.normal(0, self.sd)))
            while left_s > 1e-9:
                piece_s = min(PIECE_S, left_s)
                self.board.work(piece_s)
                left_s -= piece_s
                look()
            found.append(((self.driver.boot_ns() - begin_ns) / 1e9, self.board.peek().joules - begin_joules))
        return found

    def stage(self, seconds, settle_s, enter=None):
        if len(self.stages) == self.fails_at:
            from carbonreport.errors import CarbonreportError

            raise CarbonreportError("the power failed")
        begin_ns = self.driver.boot_ns()
        while self.driver.boot_ns() - begin_ns < settle_s * 1e9:
            self.step(lambda: None, enter)
        watch = TickWatch([self.uuid], nvml_joules(self.nvml), self.driver.boot_ns)
        edges, rows = [self.driver.boot_ns()], []
        while edges[-1] - edges[0] < seconds * 1e9:
            rows.append(self.step(watch.look, enter))
            edges.append(self.driver.boot_ns())
        whole = per_step(watch.ticks, edges)
        phases = tuple(
            Phase(name, 1, statistics.fmean(row[i][0] for row in rows), statistics.fmean(row[i][1] for row in rows))
            for i, (name, *_) in enumerate(self.phases)
        )
        truth = self.board.peek()
        self.stages.append((truth.core_lock_high_mhz, truth.memory_lock_high_mhz))
        return Stage(whole.steps, whole.seconds, whole.joules, phases, truth.core_mhz, truth.memory_mhz)


@dataclass
class VirtualBoard:
    """One board in virtual time, and what holds and turns its clocks."""

    driver: object
    nvml: object
    folder: object

    @property
    def uuid(self):
        return self.nvml.nvmlDeviceGetUUID(self.nvml.nvmlDeviceGetHandleByIndex(0))

    @property
    def now(self):
        return BoardNow(self.uuid, "NVIDIA H200", "580.159.04")

    @property
    def state(self):
        return NvmlController(self.nvml).read(self.uuid)

    def bench(self, **more):
        return VirtualBench(self.driver, self.nvml, **more)

    def knobs(self, asked, achieved=None, environ=None, **more):
        @contextmanager
        def opened(environ):
            yield NvmlController(self.nvml)

        settings = {
            "open_controller": opened,
            "guarded": lambda is_all_back, **settings: nullcontext(),
        } | more
        return RunKnobs(
            asked,
            is_optional=False,
            environ={**os.environ, "CARBONREPORT_CONTROL_DIR": str(self.folder / "control"), **(environ or {})},
            find_boards=lambda environ: [(0, self.uuid)],
            clock_s=lambda: self.driver.boot_ns() / 1e9,
            watched=lambda devices: nullcontext(achieved or Achieved()),
            **settings,
        )

    @contextmanager
    def held(self, pairs):
        """What turns clocks while the block lasts."""
        knobs = self.knobs(envelope([*pairs, ClockPair(1980)]))
        knobs.start()
        try:
            yield lambda pair: knobs.turn(knobs_of(pair))
        finally:
            knobs.stop()

    @contextmanager
    def followed(self, follow, turn):
        """Phases are reached when they are entered: virtual time has one thread."""
        turn(follow.rest)
        switcher = Switcher(follow, None, turn)

        def enter(name):
            switcher.enter(name)
            switcher.poll()

        yield enter, switcher


@pytest.fixture
def virtual_board(make_virtual_driver, pynvml, tmp_path):
    """An H200 in virtual time whose clocks may be turned."""
    driver = make_virtual_driver("h200")
    driver.allow_setters(True)
    return VirtualBoard(driver, pynvml, tmp_path)
