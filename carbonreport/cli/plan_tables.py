"""Plans, frontiers and traces as tables for a terminal, and as objects for JSON."""

from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from carbonreport.cli.changes import change, change_with_ends
from carbonreport.cli.tables import Terminal

if TYPE_CHECKING:
    from carbonreport.plan.frontier import FrontierPoint
    from carbonreport.plan.launches import Iteration
    from carbonreport.plan.result import Way
    from carbonreport.workflows.plan_ask import PlanAnswer

_LONGEST_NAME = 60
_WIDEST = 140
_DECIMALS, _GAP_DECIMALS = 2, 3


def print_answer(answer: "PlanAnswer") -> None:
    """The ways, the verdict and what was guessed, on standard output."""
    plan, judged = answer.plan, answer.judged
    table = _table("way", "time", "energy", "switches", "")
    for way in plan.others:
        marks = [*(["measured as a whole"] if way.is_whole else []), *(["chosen"] if way == plan.way else [])]
        table.add_row(_named(way), _percent(way.time_ratio), _percent(way.energy_ratio), f"{way.switches:,}", ", ".join(marks))
    _print(table)
    if judged is not None:
        verdict = {
            "switch": "Switch clocks",
            "one-setting": "Do not switch, hold one setting",
            "do-nothing": "Do not switch, leave the clocks alone",
        }
        click.echo(f"{verdict[judged.verdict]}: {judged.because}.")
        if judged.verdict != "do-nothing" and judged.energy_ratio[1] < judged.energy_ratio[2]:
            click.echo(f"Expected: {_with_ends(judged.time_ratio)} of time, {_with_ends(judged.energy_ratio)} of energy (90 %).")
        if judged.margin > 0:
            click.echo(f"Kept back of the time for the noise of the table: {100 * judged.margin:.2f} %.")
    click.echo(gap_in_words(plan.gap_percent, is_kept_back=judged is not None and judged.margin > 0))
    for pair, share in _shares(answer):
        click.echo(f"    {pair}: {share * 100:.1f} % of the invocations")
    smooth = answer.prepared.smooth
    if smooth is not None and smooth.fits:
        used = sum(fit.is_used for fit in smooth.fits)
        worst = max(smooth.fits, key=lambda fit: fit.energy_rms_percent)
        click.echo(
            f"Model: of {used} of {len(smooth.fits)} kernels, {smooth.filled} cells filled; worst fit {worst.name}: time {worst.time_rms_percent:.1f} %, energy {worst.energy_rms_percent:.1f} % "
            f"rms, R² {worst.time_r2:.3f} and {worst.energy_r2:.3f}."
        )
    for note in answer.notes:
        click.echo(note)


def _shares(answer: "PlanAnswer") -> list[tuple[str, float]]:
    from collections import Counter

    counts = Counter(str(pair) for pair in answer.plan.pairs)
    return [(pair, count / len(answer.plan.pairs)) for pair, count in counts.most_common(8)] if len(counts) > 1 else []


def answer_object(answer: "PlanAnswer") -> dict[str, Any]:
    """The same as JSON."""
    plan, judged = answer.plan, answer.judged
    latency = answer.prepared.switching.latency
    return {
        **_way(plan.way),
        "gap_percent": plan.gap_percent,
        "bound": plan.bound,
        "is_exact": plan.is_exact,
        "objective": plan.objective,
        "slowdown_percent": None if plan.slowdown is None else 100 * plan.slowdown,
        "verdict": None if judged is None else judged.verdict,
        "because": None if judged is None else judged.because,
        "expected": None
        if judged is None
        else {
            "time_percent": _ends(judged.time_ratio),
            "energy_percent": _ends(judged.energy_ratio),
            "is_noise_known": judged.is_noise_known,
        },
        "margin_percent": None if judged is None else 100 * judged.margin,
        "latency": {"low_s": latency.low_s, "value_s": latency.value_s, "high_s": latency.high_s, "source": latency.source},
        "stall_watts": plan.stall_watts,
        "others": [_way(way) for way in plan.others],
        "fits": None
        if answer.prepared.smooth is None
        else [{name: getattr(fit, name) for name in fit.__slots__} for fit in answer.prepared.smooth.fits],
        "notes": list(answer.notes),
    }


def _way(way: "Way") -> dict[str, Any]:
    return {
        "kind": way.kind,
        "time_percent": way.time_percent,
        "energy_percent": way.energy_percent,
        "switches": way.switches,
        "cap_watts": way.cap_watts,
        "clocks": [{"sm_mhz": pair.sm_mhz, "mem_mhz": pair.mem_mhz} for pair in dict.fromkeys(way.pairs)],
        "measured_as_a_whole": way.is_whole,
    }


def _ends(ratio: tuple[float, float, float]) -> dict[str, float]:
    return {name: 100 * (value - 1) for name, value in zip(("value", "low", "high"), ratio, strict=True)}


def print_frontier(points: "tuple[FrontierPoint, ...]") -> None:
    """One row a slowdown."""
    table = _table("allowed", "best", "time", "energy", "switches", "one pair", "a pair a pass", "if switches were free")
    for point in points:
        plan = point.plan
        static, by_pass = plan.of("static"), plan.of("pass")
        table.add_row(
            f"{100 * point.slowdown:+g} %",
            plan.kind,
            _percent(plan.time_ratio),
            _percent(plan.energy_ratio),
            f"{plan.switches:,}",
            *("" if way is None else _percent(way.energy_ratio) for way in (static, by_pass)),
            _percent(point.free.energy_ratio),
        )
    _print(table)


def point_object(point: "FrontierPoint") -> dict[str, Any]:
    """One slowdown as JSON."""
    return {
        "slowdown_percent": 100 * point.slowdown,
        **_way(point.plan.way),
        "gap_percent": point.plan.gap_percent,
        "free": {
            "time_percent": point.free.way.time_percent,
            "energy_percent": point.free.way.energy_percent,
            "switches": point.free.switches,
        },
        "others": [_way(way) for way in point.plan.others],
    }


def print_iteration(iteration: "Iteration") -> None:
    """Kernels of an iteration, the longest in sum first, and what they do not cover."""
    table = _table("kernel", "count", "each", "sd", "share", "grid", "block")
    for row in sorted(iteration.rows, key=lambda row: -row.count * row.seconds):
        launch = row.launch
        name = launch.name if len(launch.name) <= _LONGEST_NAME else launch.name[: _LONGEST_NAME - 1] + "…"
        table.add_row(
            name,
            str(row.count),
            f"{1e6 * row.seconds:.1f} µs",
            f"{1e6 * row.seconds_sd:.1f}",
            f"{100 * row.count * row.seconds / iteration.kernel_seconds:.1f} %",
            "×".join(map(str, launch.grid)),
            "×".join(map(str, launch.block)),
        )
    _print(table)
    click.echo(
        f"One iteration: {iteration.sequence.size} kernels, {len(iteration.rows)} different ones, {1e3 * iteration.seconds:.3f} ms; "
        f"{iteration.repeats} seen, {iteration.found_by}; {iteration.left_out} launches left out."
    )
    click.echo(
        f"Uncovered: {1e3 * iteration.uncovered_seconds:.3f} ms ({100 * iteration.uncovered_share:.1f} %), in which none of its kernels ran."
    )
    if iteration.overlap_seconds > 0.001 * iteration.seconds:
        click.echo(
            f"Kernels of several streams overlap by {1e3 * iteration.overlap_seconds:.3f} ms; a plan takes them one after the other."
        )
    click.echo("A profiler stretches the gaps between kernels: take the time of an iteration from a run without it.")


def iteration_object(iteration: "Iteration") -> dict[str, Any]:
    """The same as JSON."""
    return {
        "kernels": [
            {
                "name": row.launch.name,
                "grid": list(row.launch.grid),
                "block": list(row.launch.block),
                "shared_bytes": row.launch.shared_bytes,
                "stream": row.launch.stream,
                "count": row.count,
                "seconds": row.seconds,
                "seconds_sd": row.seconds_sd,
            }
            for row in iteration.rows
        ],
        "sequence": iteration.sequence.tolist(),
        "repeats": iteration.repeats,
        "seconds": iteration.seconds,
        "kernel_seconds": iteration.kernel_seconds,
        "uncovered_seconds": iteration.uncovered_seconds,
        "uncovered_percent": 100 * iteration.uncovered_share,
        "overlap_seconds": iteration.overlap_seconds,
        "left_out": iteration.left_out,
        "found_by": iteration.found_by,
    }


def _named(way: "Way") -> str:
    if way.kind == "static":
        return f"one pair: {way.pairs[0]}"
    names = {"none": "unlocked", "cap": f"cap {way.cap_watts or 0:g} W", "pass": "a pair a pass", "kernel": "kernel by kernel"}
    return names[way.kind]


def _percent(ratio: float) -> str:
    return change(ratio, _DECIMALS)


def _with_ends(ratio: tuple[float, float, float]) -> str:
    return change_with_ends(*ratio, _DECIMALS)


def gap_in_words(gap_percent: float, *, is_kept_back: bool = False) -> str:
    """How much better another plan could be at most, in a sentence; that there is none where it would be printed as 0."""
    percent = f"{gap_percent:.{_GAP_DECIMALS}f}"
    if float(percent) == 0:
        return "No better plan of this table exists (proved)."
    others = "No plan of this table, not even one that keeps no time back," if is_kept_back else "No plan of this table"
    return f"{others} is more than {percent} % better (proved)."


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    return table


def _print(table: Table) -> None:
    console = Terminal()
    console.width = max(console.width, _WIDEST)
    console.print(table)
