"""Pictures of a lab's year, for whoever is shown the report: months, projects, week, coverage."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from carbonreport.model.audit import Energy, Group, agreed
from carbonreport.render.audit_facts import AuditFacts
from carbonreport.render.audit_words import UNKNOWN
from carbonreport.render.pictures import Picture
from carbonreport.render.pictures_svg import INK, cleaned
from carbonreport.render.plots import figure, is_available, saved
from carbonreport.render.words import listed, shortened
from carbonreport.units import JOULES_PER_KWH, MJ_PER_J

_BLUE, _PALE = "#2a7ab0", "#9cc3de"  # seen on white and on black
_MOST_BARS = 12
_LONGEST_NAME = 26
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_PARTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("measured", {"facecolor": _BLUE}),
    ("reported", {"facecolor": _PALE}),
    ("estimated", {"facecolor": "none", "hatch": "////"}),
    ("facility overhead", {"facecolor": "none", "hatch": "...."}),
)


def draw_audit(facts: AuditFacts) -> list[Picture] | None:
    """The pictures of what there is to draw; None where matplotlib is missing."""
    if not is_available():
        return None
    year = facts.priced.year
    if not year.whole.it_mj:
        return []
    projects = [group for group in year.groups["project"] if group.energy.it_mj]
    pictures = [_months(facts)]
    if projects:
        pictures.append(_projects(facts, projects))
    if facts.weekday_hours.sum() > 0:
        pictures.append(_week(facts))
    return [*pictures, _coverage(facts)] if year.jobs.gpu_us else pictures


def _stacks(energies: Sequence[Energy]) -> np.ndarray[Any, Any]:
    """Measured, reported, estimated, overhead of each. [J] Shape (4, n)."""
    rows = [
        (*(mj / MJ_PER_J for mj in (e.measured_mj, e.reported_mj, e.estimated_mj)), max(e.facility_joules - e.it_joules, 0.0))
        for e in energies
    ]
    return np.array(rows).reshape(-1, 4).T


def _months(facts: AuditFacts) -> Picture:
    months, unknown = facts.priced.year.known_months, facts.priced.year.unknown_months
    stacks = _stacks([Energy() if energy is None else energy for _, energy in months])
    unit, size = _unit(float(stacks.sum(axis=0).max()))
    labels = [_MONTHS[int(month[5:]) - 1] for month, _ in months]
    title = f"Energy by month, {facts.year}"
    with figure(2.3) as drawn:
        axes = drawn.subplots()
        places = np.arange(len(labels))
        handles, names, bottom = [], [], np.zeros(len(labels))
        for (name, style), values in zip(_PARTS, stacks / size, strict=True):
            there = values > 0  # a bar without a height would be drawn as a line
            if there.any():
                bars = axes.bar(places[there], values[there], bottom=bottom[there], edgecolor=INK, linewidth=0.6, width=0.72, **style)
                handles.append(bars)
                names.append(name)
            bottom = bottom + values
        axes.set_xticks(places, labels)
        axes.set_xlim(-0.6, len(labels) - 0.4)
        if facts.before is not None:
            held = dict(facts.before.year.known_months)
            last = [held.get(f"{facts.year - 1}{month[4:]}") for month, _ in months]
            heights = [np.nan if energy is None else energy.facility_joules / size for energy in last]
            handles.append(axes.plot(places, heights, color=INK, marker="_", markersize=16, markeredgewidth=1.6, linestyle="none")[0])
            names.append(f"{facts.year - 1}, all")
        axes.set_ylabel(f"Energy, {unit}")
        axes.legend(
            handles, names, loc="lower left", bbox_to_anchor=(0, 1), ncols=5, borderaxespad=0.2, columnspacing=1.2, handlelength=1.6
        )
        totals = zip(labels, months, stacks.sum(axis=0), strict=True)
        words = "; ".join(
            f"{label} {total / size:.3g} {unit}" if energy is not None else f"{label} {UNKNOWN if month in unknown else 'nothing'}"
            for label, (month, energy), total in totals
        )
        svg = cleaned(saved(drawn), "months", title, words)
    caption = f"What was measured, what was reported, what was estimated, and the facility's part on top, in {facts.time_zone} months."
    if unknown:
        caption += f" In {listed([_MONTHS[int(month[5:]) - 1] for month in unknown])} jobs ran, and nobody knows their energy: no bar."
    return Picture(svg, title, caption, "months")


def _projects(facts: AuditFacts, projects: Sequence[Group]) -> Picture:
    kept = list(projects[:_MOST_BARS])
    rest = projects[_MOST_BARS:]
    names = [shortened(group.name, _LONGEST_NAME) for group in kept] + ([f"{len(rest)} more"] if rest else [])
    energies = [group.energy for group in kept] + ([sum((group.energy for group in rest), Energy())] if rest else [])
    stacks = _stacks(energies)
    unit, size = _unit(float(stacks.sum(axis=0).max()))
    title = f"Energy by project, {facts.year}"
    with figure(0.5 + 0.27 * len(names)) as drawn:
        axes = drawn.subplots()
        rows = np.arange(len(names))[::-1]
        handles, texts, left = [], [], np.zeros(len(names))
        for (name, style), values in zip(_PARTS, stacks / size, strict=True):
            if values.sum() > 0:
                handles.append(axes.barh(rows, values, left=left, edgecolor=INK, linewidth=0.6, height=0.68, **style))
                texts.append(name)
            left = left + values
        axes.set_yticks(rows, [f" {name}" if name.startswith("_") else name for name in names])
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(f"Energy, {unit}")
        axes.legend(
            handles, texts, loc="lower left", bbox_to_anchor=(0, 1), ncols=4, borderaxespad=0.2, columnspacing=1.2, handlelength=1.6
        )
        words = "; ".join(f"{name} {total / size:.3g} {unit}" for name, total in zip(names, stacks.sum(axis=0), strict=True))
        svg = cleaned(saved(drawn), "projects", title, words)
    caption = "Energy of jobs with the facility's part; idle and unattributed energy is nobody's and is left out."
    without = sum(group.known_energy is None for group in facts.priced.year.groups["project"])
    if without:
        caption += f" {without} {agreed('[project|projects]', without)} of which no energy is known {agreed('[has|have]', without)} no bar."
    return Picture(svg, title, caption, "projects")


def _week(facts: AuditFacts) -> Picture:
    grid = facts.weekday_hours
    most = float(grid.max())
    title = f"When the energy was used, {facts.year}"
    with figure(1.7) as drawn:
        axes = drawn.subplots()
        for day in range(7):
            for hour in range(24):
                share = float(grid[day, hour]) / most
                axes.bar(hour + 0.03, 0.92, 0.94, 6 - day + 0.04, align="edge", facecolor=_BLUE, alpha=0.06 + 0.94 * share, linewidth=0)
        axes.set_xlim(0, 24)
        axes.set_ylim(0, 7)
        axes.set_yticks(np.arange(7) + 0.5, _DAYS[::-1])
        axes.set_xticks(range(0, 25, 3), [f"{hour:02d}" for hour in range(0, 25, 3)])
        axes.tick_params(length=0)
        axes.set_xlabel(f"Hour of the day, {facts.time_zone}")
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)
        day, hour = (int(i) for i in np.unravel_index(int(grid.argmax()), grid.shape))
        low_day, low_hour = (int(i) for i in np.unravel_index(int(grid.argmin()), grid.shape))
        words = f"most on {_DAYS[day]} at {hour:02d}:00, least on {_DAYS[low_day]} at {low_hour:02d}:00, with {float(grid.min()) / most * 100:.0f} % of the energy of the most"
        svg = cleaned(saved(drawn), "week", title, words)
    return Picture(svg, title, f"IT energy by weekday and hour; the darker, the more: {words}.", "week")


def _coverage(facts: AuditFacts) -> Picture:
    groups = [group for group in facts.priced.year.groups["month"] if group.gpu_us]
    labels = [_MONTHS[int(group.name[5:]) - 1] for group in groups]
    held = np.array([group.gpu_us for group in groups], dtype=float)
    known = np.array([group.known_gpu_us for group in groups]) / held * 100
    unknown = np.array([group.unknown_gpu_us for group in groups]) / held * 100
    estimated = np.maximum(100.0 - known - unknown, 0.0)
    title = f"How much of the GPU time is known, {facts.year}"
    with figure(1.6) as drawn:
        axes = drawn.subplots()
        styles = (
            ("measured or reported", known, {"facecolor": _BLUE}),
            ("estimated", estimated, _PARTS[2][1]),
            ("unknown", unknown, {"facecolor": "none"}),
        )
        handles, names, bottom = [], [], np.zeros(len(labels))
        for name, values, style in styles:
            if values.sum() > 0:
                handles.append(axes.bar(labels, values, bottom=bottom, edgecolor=INK, linewidth=0.6, width=0.72, **style))
                names.append(name)
            bottom = bottom + values
        axes.set_ylim(0, 100)
        axes.set_ylabel("GPU-hours, %")
        axes.legend(handles, names, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2, handlelength=1.6)
        words = "; ".join(f"{label} {share:.0f} %" for label, share in zip(labels, known, strict=True))
        svg = cleaned(saved(drawn), "coverage", title, words)
    return Picture(svg, title, "GPU-hours of jobs by how their energy is known.", "coverage")


def _unit(most_joules: float) -> tuple[str, float]:
    return ("MWh", 1e3 * JOULES_PER_KWH) if most_joules >= 1e3 * JOULES_PER_KWH else ("kWh", JOULES_PER_KWH)
