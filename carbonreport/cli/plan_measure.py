"""`carbonreport plan latency|profile|validate`: what needs a board, and turns its clocks."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from carbonreport.plan.table import ClockPair
    from carbonreport.workflows.plan_latency_file import LatencyFile
    from carbonreport.workflows.plan_measure import ProfileAnswer

_SECONDS = click.option("--seconds", type=click.FloatRange(0.2), default=3.0, show_default=True, metavar="S", help="Of a stage.")
_SETTLE = click.option(
    "--settle", type=click.FloatRange(0), default=2.0, show_default=True, metavar="S", help="After a change of clocks, left out."
)
_OUT = click.option(
    "--out", type=click.Path(path_type=Path), default="plan", show_default=True, metavar="DIR", help="Journal and records of stages."
)


class Pairs(click.ParamType):  # type: ignore[type-arg]
    """Pairs of clocks such as 1410:2201,1410,auto:2201. [MHz]"""

    name = "pairs"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> "tuple[ClockPair, ...]":
        """See click.ParamType."""
        from carbonreport.plan.table import PlanError
        from carbonreport.workflows.plan_pairs import pairs_of

        if isinstance(value, tuple):
            return value
        try:
            return pairs_of(str(value))
        except PlanError as error:
            self.fail(str(error), param, ctx)


@click.command("latency")
@click.option("--gpu", metavar="UUID|NUMBER", help="Which board, where several are visible.")
@click.option("--targets", type=Pairs(), metavar="SM[:MEM],…", help="Clocks to change to. [default: some over the menu]")
@click.option("--repeats", type=click.IntRange(6, 1000), default=20, show_default=True, help="How often each.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE.json", help="Keep them, for `plan solve --latencies`.")
def latency(gpu: str | None, targets: "tuple[ClockPair, ...] | None", repeats: int, as_json: bool, output: Path | None) -> None:
    """Measure how long a change of clocks takes until work runs at them: a small load of PyTorch, or the board's own word under load.

    Without the right to set clocks, what is assumed of the board is shown and marked so. Clocks are unlocked at the end.
    """
    import msgspec

    from carbonreport.cli.plan import print_json
    from carbonreport.workflows.plan_latency import LatencyAsk
    from carbonreport.workflows.plan_latency_file import write_latencies
    from carbonreport.workflows.plan_latency_here import plan_latency

    found = plan_latency(targets, gpu=gpu, ask=LatencyAsk(repeats), say=_say)
    if output is not None:
        write_latencies(found, output)
        click.echo(f"wrote {output}", err=True)
    if as_json:
        print_json(msgspec.to_builtins(found))
        return
    _print_latencies(found)


def _print_latencies(found: "LatencyFile") -> None:
    from carbonreport.workflows.plan_latency import in_words

    click.echo(f"{found.board.model} ({found.board.uuid}), driver {found.board.driver}")
    for row in found.rows:
        click.echo(f"    to {row.pair}: {in_words(row)}")
    if not found.is_measured:
        for clock, (low_s, value_s, high_s, source) in found.assumed.items():
            click.echo(f"    assumed, {clock} clocks: {1000 * value_s:g} ms, {1000 * low_s:g} to {1000 * high_s:g} ms ({source})")
        click.echo("Nothing was measured: a plan that changes clocks inside a step is not followed on such figures.")


@click.command("profile")
@click.argument("step", metavar="MODULE:FUNCTION")
@click.option("--pairs", type=Pairs(), metavar="SM:MEM,…", help="Clocks to measure. [default: a coarse grid, finer around the best]")
@click.option("--every", type=click.IntRange(1), default=4, show_default=True, help="Every so many core clocks in that grid.")
@click.option("--repeats", type=click.IntRange(1, 100), default=2, show_default=True, help="How often each; once has no error.")
@click.option("--seconds", type=click.FloatRange(0.2), metavar="S", help="Of a stage. [default: 18 where the step has phases, else 3]")
@_SETTLE
@click.option("--seed", type=int, default=0, show_default=True, help="Of the order.")
@click.option("--dry-run", is_flag=True, help="Set no clock: measure the board's own clocks alone.")
@_OUT
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default="table.csv", show_default=True, metavar="FILE.csv", help="The table."
)
def profile(step: str, output: Path, out: Path, dry_run: bool, **options: Any) -> None:
    """Measure time and energy of a step and its phases at pairs of clocks; the table is what `plan solve` reads.

    FUNCTION(span) runs one step and marks its phases: `with span("forward"): …`. The same command line goes on with a profile that was stopped.
    Clocks are unlocked at the end, however it ends.
    """
    from carbonreport.workflows.plan_measure import NOTHING_SET, ProfileAsk, plan_profile

    ask = ProfileAsk(
        options["pairs"], options["every"], options["repeats"], options["seconds"], options["settle"], options["seed"], is_dry=dry_run
    )
    answer = plan_profile(step, output, ask, folder=out, say=_say)
    _print_profile(answer)
    if answer.profiled.told():
        click.echo(f"{answer.profiled.told()}.".replace("the energies", "The energies", 1))
    click.echo(f"wrote {output}", err=True)
    if not answer.is_set:
        click.echo(f"{NOTHING_SET[0].upper()}{NOTHING_SET[1:]} ({answer.why_not}).")
        return
    click.echo(
        f"next: carbonreport plan solve {output} --gpu {answer.board.uuid} --driver {answer.board.driver} --latencies FILE -o plan.json"
    )


def _print_profile(answer: "ProfileAnswer") -> None:
    """Step and phases under each pair, and what the phases leave of a step."""
    from statistics import fmean

    for pair in answer.profiled.pairs:
        stages = answer.profiled.of(pair)
        seconds, joules, residual = (
            fmean(values) for values in zip(*((s.seconds, s.joules, s.residual_joules) for s in stages), strict=True)
        )
        click.echo(f"{pair}: a step {1000 * seconds:.2f} ms, {joules:.2f} J; {len(stages)} stages")
        for name in dict.fromkeys(phase.name for stage in stages for phase in stage.phases):
            phases = [phase for stage in stages for phase in stage.phases if phase.name == name]
            within = next((f", told with {phase.told_within}" for phase in phases if phase.told_within), "")
            click.echo(
                f"    {name}: {phases[0].count} times {1000 * fmean(p.seconds for p in phases):.2f} ms, {fmean(p.joules for p in phases):.2f} J "
                f"± {1.645 * fmean(p.joules_sd for p in phases):.2f}{within}"
            )
        if stages[0].phases:
            outside = fmean(stage.outside_seconds for stage in stages)
            click.echo(
                f"    residual {residual:+.2f} J ({100 * residual / joules:+.1f} %), {1000 * outside:.2f} ms outside phases; nothing was rescaled"
            )
    for note in answer.profiled.notes()[:8]:
        click.echo(note)


@click.command("validate")
@click.argument("plan", type=click.Path(path_type=Path), metavar="PLAN.json")
@click.argument("step", metavar="MODULE:FUNCTION")
@click.option(
    "--pairs", type=click.IntRange(2, 1000), default=6, show_default=True, help="How often plan and unlocked clocks are measured."
)
@_SECONDS
@_SETTLE
@_OUT
def validate(plan: Path, step: str, pairs: int, seconds: float, settle: float, out: Path) -> None:
    """Measure a plan in turns with unlocked clocks: only that is called a saving. It is kept in the plan's file."""
    from carbonreport.workflows.plan_measure import plan_validate
    from carbonreport.workflows.plan_validate import verdict

    kept, found = plan_validate(plan, step, pairs=pairs, seconds=seconds, settle_s=settle, folder=out, say=_say)
    click.echo(verdict(found, kept))
    click.echo(f"wrote {plan}", err=True)


def _say(line: str) -> None:
    click.echo(f"carbonreport: {line}", err=True)


COMMANDS = (latency, profile, validate)
