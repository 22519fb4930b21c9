"""`carbonreport plan`: clocks for kernels and passes, switches paid for; measured and validated by plan_measure.py."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from carbonreport.cli import plan_measure

if TYPE_CHECKING:
    from carbonreport.workflows.plan_ask import PlanAsk

F = TypeVar("F", bound=Callable[..., Any])
_JSON = click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0}


class ShortTime(click.ParamType):  # type: ignore[type-arg]
    """A time such as 6ms or 10us. [s]"""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See click.ParamType."""
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zµμ]*)\s*", str(value).lower())
        if found is None or (found.group(2) not in _UNITS_S and float(found.group(1)) != 0):
            self.fail(f"{value!r} is no time; write 6ms, 10us or 0.1s", param, ctx)
        return float(found.group(1)) * _UNITS_S.get(found.group(2), 0.0)


class Percent(click.ParamType):  # type: ignore[type-arg]
    """A percentage of 0 or more such as 1% or 0.5. [share]"""

    name = "percent"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See click.ParamType."""
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+))\s*%?\s*", str(value))
        if found is None:
            self.fail(f"{value!r} is no percentage; write 1% or 0.5%", param, ctx)
        share = float(found.group(1)) / 100
        if not 0 <= share < math.inf:
            self.fail(f"{value!r}: a slowdown is 0 % or more", param, ctx)
        return share


def _table_options(function: F) -> F:
    """TABLE, and what its plans are made with."""
    for option in reversed(
        (
            click.argument("table", type=click.Path(path_type=Path), metavar="TABLE"),
            click.option("--latency", type=ShortTime(), metavar="6ms", help="Of a change of clocks. [default: assumed of the board]"),
            click.option(
                "--latencies", type=click.Path(path_type=Path), metavar="FILE.json", help="Latencies as `plan latency -o` measured them."
            ),
            click.option(
                "--memory-latency", type=ShortTime(), metavar="100ms", help="Of one that changes the memory clock, where it takes longer."
            ),
            click.option(
                "--stall-watts", type=click.FloatRange(0), metavar="W", help="Power while the board waits. [default: half of the mean]"
            ),
            click.option(
                "--late", is_flag=True, help="Kernels do not wait: they go on at the clocks before until the new ones are in force."
            ),
            click.option("--passes", metavar="NAME=0-13,…", help="Rows of each pass, from 0. [default: the table's column]"),
            click.option(
                "--aggregation",
                type=click.Choice(("global", "local")),
                default="global",
                show_default=True,
                help="Whether the sum of times keeps the limit, or each kernel too.",
            ),
            click.option("--gpu", metavar="UUID|MODEL", help="The board that was measured."),
            click.option("--driver", metavar="VERSION", help="Its driver."),
            click.option("--sweep", type=click.Path(path_type=Path), metavar="FILE.json", help="A sweep of power caps of the same work."),
            click.option(
                "--smooth", is_flag=True, help="Take noise out of the cells with a model of each kernel, and fill the missing ones."
            ),
            _JSON,
        )
    ):
        function = option(function)
    return function


def _ask(options: dict[str, Any]) -> "PlanAsk":
    from carbonreport.workflows.plan_ask import PlanAsk

    return PlanAsk(
        options["table"],
        options["latency"],
        options["memory_latency"],
        options["stall_watts"],
        "late" if options["late"] else "stalls",
        options["passes"],
        options.get("objective", "waste"),
        options["aggregation"],
        options["gpu"],
        options["driver"],
        options["sweep"],
        options["smooth"],
        options["latencies"],
    )


@click.group("plan")
def command() -> None:
    """Plan clocks for the kernels and passes of an iteration, or say not to switch."""


@command.command("solve")
@_table_options
@click.option("--slowdown", type=Percent(), metavar="1%", help="How much longer an iteration may take. [default: 1%; none for edp]")
@click.option(
    "--objective",
    type=click.Choice(("waste", "edp")),
    default="waste",
    show_default=True,
    help="Least energy in that time, or least energy times time.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Keep the plan.")
def solve(slowdown: float | None, output: Path | None, as_json: bool, **options: Any) -> None:
    """Find the plan of least energy: carbonreport plan solve TABLE.csv --slowdown 1% --latency 6ms."""
    from carbonreport.cli.plan_tables import answer_object, print_answer
    from carbonreport.workflows.plan import make_plan
    from carbonreport.workflows.plan_keep import keep_plan

    ask = _ask(options)
    allowed = 0.01 if slowdown is None and ask.objective == "waste" else slowdown
    answer = make_plan(ask, allowed)
    if output is not None:
        keep_plan(answer, ask, output)
        click.echo(f"wrote {output}", err=True)
    if as_json:
        print_json(answer_object(answer))
        return
    print_answer(answer)


@command.command("frontier")
@_table_options
@click.option("--slowdowns", metavar="0,0.5,1,2,5", help="Slowdowns in per cent. [default: 0 to 30]")
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE.svg", help="Draw it.")
def frontier(slowdowns: str | None, plot: Path | None, as_json: bool, **options: Any) -> None:
    """Show the least energy for rising slowdowns, with the cost of switches and without."""
    from carbonreport.cli.plan_tables import point_object, print_frontier
    from carbonreport.plan.frontier import SLOWDOWNS
    from carbonreport.workflows.plan import make_frontier

    if plot is not None and plot.suffix.lower() != ".svg":
        raise click.UsageError(f"--plot writes SVG: {plot} must end in .svg")
    percent = Percent()
    asked = SLOWDOWNS if slowdowns is None else tuple(percent.convert(part, None, None) for part in slowdowns.split(","))
    points, prepared = make_frontier(_ask(options), asked)
    if plot is not None:
        from carbonreport.workflows.plan_picture import write_frontier

        write_frontier(points, prepared.switching, plot)
        click.echo(f"wrote {plot}", err=True)
    if as_json:
        print_json({"points": [point_object(point) for point in points], "notes": list(prepared.notes)})
        return
    print_frontier(points)
    for note in prepared.notes:
        click.echo(note)


@command.command("trace")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@_JSON
def trace(file: Path, as_json: bool) -> None:
    """Show the kernels of one iteration of a profiler's trace, and the time that none of them covers."""
    from carbonreport.cli.plan_tables import iteration_object, print_iteration
    from carbonreport.workflows.plan import kernels_of_trace

    iteration = kernels_of_trace(file)
    if as_json:
        print_json(iteration_object(iteration))
        return
    print_iteration(iteration)


def print_json(value: Any) -> None:
    """An object on standard output."""
    from carbonreport.render.formats.json import dumps

    click.echo(dumps(value), nl=False)


for _measuring in plan_measure.COMMANDS:
    command.add_command(_measuring)
