"""A sweep as a table and sentences for a terminal."""

from rich.table import Table

from carbonreport.cli.changes import change, change_with_ends
from carbonreport.cli.tables import Terminal
from carbonreport.plan.cap_curve import CapCurvePoint, Ratio
from carbonreport.render.digits import duration, scaled
from carbonreport.workflows.sweep_outcome import Outcome

_WIDEST = 140


def sweep_table(outcome: Outcome) -> str:
    """One row a cap, no cap first."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, column in enumerate(("", "runs", "time [90 %]", "energy [90 %]", "energy x time", "")):
        table.add_column(column, justify="left" if i in (0, 5) else "right", no_wrap=True)
    curve = outcome.curve
    work = "an item" if curve.is_per_item else "a run"
    table.add_row(
        "no cap", str(curve.baselines), f"{duration(curve.seconds)} {work}", f"{scaled(curve.joules, 'J')} {work}", "", _limits(outcome)
    )
    for point in curve.points:
        table.add_row(
            f"{point.cap_watts:g} W",
            str(point.trials),
            _change(point.time),
            _change(point.energy),
            change(point.edp_ratio),
            _marks(outcome, point),
        )
    console = Terminal()
    console.width = max(console.width, _WIDEST)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def sweep_sentences(outcome: Outcome) -> list[str]:
    """The choice, what is promised, and what was measured anew."""
    lines = []
    choice, again = outcome.choice, outcome.confirmed
    if choice is None:
        lines.append(outcome.because)
    else:
        lines.append(f"choice: {choice.cap_watts:g} W, {choice.because}")
        lines.append(f"promised: energy {_change(choice.energy)} after shrinking, time {_change(choice.time)}; a promise is no result")
    if again is not None:
        verdict = "a result" if again.holds else "the promise did not hold"
        lines.append(
            f"measured anew in {again.pairs} pair{'s' if again.pairs > 1 else ''}: energy {_change(again.energy)}, time {_change(again.time)}: {verdict}"
        )
    if outcome.same_lines is not None:
        lines.append(f"results: what --same-lines matches ({outcome.same_lines} in each trial) is the same in every trial")
    sd = outcome.curve.energy_scatter.sd
    if not outcome.curve.points and sd is not None:
        lines.append(f"runs without a cap differ by {100 * sd:.1f} % of energy: a saving well below that needs more repeats")
    return [*lines, *(f"{note.slug}: {note.text}" for note in outcome.notes)]


def _marks(outcome: Outcome, point: CapCurvePoint) -> str:
    if outcome.choice is not None and outcome.choice.cap_watts == point.cap_watts:
        return "choice"
    return "dominated" if point.is_dominated else ""


def _limits(outcome: Outcome) -> str:
    limits = sorted({watts for _, watts in outcome.boards if watts is not None})
    return "" if not limits else f"limit {' and '.join(f'{watts:g}' for watts in limits)} W"


def _change(ratio: Ratio) -> str:
    if ratio.low is None or ratio.high is None:
        return f"{change(ratio.value)} [not known]"
    return change_with_ends(ratio.value, ratio.low, ratio.high)
