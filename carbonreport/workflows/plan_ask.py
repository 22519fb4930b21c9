"""What is asked of a table, what a plan is made from, and what is answered."""

from dataclasses import dataclass, field
from pathlib import Path

from carbonreport.plan.judge import Judged
from carbonreport.plan.result import Aggregation, Cap, Objective, Plan
from carbonreport.plan.smooth import Smoothed
from carbonreport.plan.switching import Effect, Switching
from carbonreport.plan.table import PlanTable


@dataclass(frozen=True, slots=True)
class PlanAsk:
    """What is asked of a table.

    Attributes:
        table: The CSV file.
        latency_s: Of a change of clocks; None for what is assumed of the board. [s]
        memory_latency_s: Of a change of the memory clock; None where it takes no longer, or for what is assumed of the board. [s]
        stall_watts: Power while the board waits; None for half of the mean power. [W]
        effect: Whether kernels wait for the clocks, or go on at the ones before.
        passes: Rows of each pass, as in "forward=0-13,backward=14-45"; None for the table's own column.
        objective: Least energy in time, or least energy times time.
        aggregation: Whether the sum of times counts, or each kernel's.
        gpu: UUID or model of the board that was measured.
        driver: Its driver.
        sweep: A sweep of power caps of the same work.
        is_smooth: Whether a smooth model takes noise out of the cells and fills the missing ones.
        latencies: Latencies of the board as `carbonreport plan latency` measured them.
    """

    table: Path
    latency_s: float | None = None
    memory_latency_s: float | None = None
    stall_watts: float | None = None
    effect: Effect = "stalls"
    passes: str | None = None
    objective: Objective = "waste"
    aggregation: Aggregation = "global"
    gpu: str | None = None
    driver: str | None = None
    sweep: Path | None = None
    is_smooth: bool = False
    latencies: Path | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A table and what else a plan needs.

    Attributes:
        table: What kernels cost.
        switching: What changes cost.
        caps: Power caps of the same work.
        smooth: The model, where one was asked for.
        notes: What was guessed.
        is_measured: Whether the latency was measured on a board, as `plan latency` does; one that is typed in is not.
    """

    table: PlanTable
    switching: Switching
    caps: tuple[Cap, ...]
    smooth: Smoothed | None
    notes: tuple[str, ...]
    is_measured: bool = False


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """A plan and what was asked.

    Attributes:
        plan: The best way, and what it was compared with.
        judged: How it can be expected to turn out; None for least energy times time, and without a limit.
        prepared: Table and switches.
        notes: What was guessed, and what is not known.
    """

    plan: Plan
    judged: Judged | None
    prepared: Prepared
    notes: tuple[str, ...] = field(default=())
