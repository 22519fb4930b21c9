"""The making of the boards, and the rated powers that stand for hours nobody measured: for which boards, and for which not."""

from collections.abc import Sequence

from carbonreport.model.audit import NOBODY, Priced, RatedPower
from carbonreport.render.audit_facts import AuditFacts, Line
from carbonreport.render.audit_words import hours_text
from carbonreport.render.digits import shown
from carbonreport.render.words import listed


def made_line(facts: AuditFacts) -> Line:
    """The making of the boards with what it covers."""
    found = facts.priced.embodied_grams
    if found is None:
        return Line("Making of the boards (scope 3)", "not stated", known="", source=_why_not(facts.priced))
    before = "" if facts.before is None or facts.before.embodied_grams is None else shown(facts.before.embodied_grams).with_unit
    return Line(
        "Making of the boards (scope 3), for the hours that jobs held",
        shown(found).with_unit,
        shown(found).interval,
        before,
        found.origin,
        "; ".join((covered(facts.priced), *facts.priced.embodied_basis)),
    )


def _why_not(priced: Priced) -> str:
    if priced.embodied_unused:
        return f"[embodied] in the site file names {listed(priced.embodied_unused)}, and no job had such a board"
    return "no [embodied] in the site file that names these boards"


def covered(priced: Priced) -> str:
    """For which boards the making is stated, and for which nobody gave it."""
    there = "for " + listed([f"{hours_text(us)} GPU-hours of {name}" for name, us in priced.embodied_for])
    return f"{there}; {_not_given(priced.embodied_missing)}" if priced.embodied_missing else there


def not_covered(priced: Priced) -> str:
    """A sentence on the boards whose making is missing; nothing where it is stated of all, or of none."""
    if priced.embodied_grams is None or not priced.embodied_missing:
        return ""
    return f"The making of the boards is stated {covered(priced)}."


def _not_given(boards: Sequence[tuple[str, int]]) -> str:
    named = [f"{'boards that nobody names' if name == NOBODY else name} ({hours_text(us)} GPU-hours)" for name, us in boards]
    return f"nobody gave that of {listed(named)}"


def unused_notes(priced: Priced, year: int) -> tuple[tuple[str, str], ...]:
    """A note for each device of the site file that is no board of the year."""
    return tuple(
        (
            "embodied-unused",
            f"[embodied] in the site file names {name}, and no job of {year} had such a board: its making is not in the figures",
        )
        for name in priced.embodied_unused
    )


def rated_sentence(powers: Sequence[RatedPower]) -> str:
    """Which rated power was taken for which board; nothing where none was."""
    return f"Rated powers that were taken: {'; '.join(map(_rated, powers))}." if powers else ""


def _rated(power: RatedPower) -> str:
    boards = [f"{watts:,.0f} W of {name}" for name, watts in power.boards]
    taken = boards[0] if len(boards) == 1 else f"the mean of {listed(boards)}"
    return f"{power.gpu_model}: {taken}, {power.share * 100:.0f} % of it {power.watts:,.0f} W"
