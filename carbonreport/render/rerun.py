"""The paragraph on when to run again: what holds, with what it rests on; else that it is not worth it, and why."""

from collections.abc import Sequence

from carbonreport.model.recommendation import Recommendation
from carbonreport.model.statement import Sentence

_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")
_AVERAGE = "This is a difference in average intensity; the change in what power plants burn can be smaller or of the other sign."
_NOBREAK = "\u00a0"


def rerun(advice: Sequence[Recommendation], *, several: bool, clock: str) -> tuple[Sentence, ...]:
    """Sentences for each piece of advice; the season, which holds on any grid, comes first. `clock` names the hours' time zone: "CET"."""
    sentences: list[Sentence] = []
    subject = "the largest of these runs" if several else "this run"
    for each in sorted(advice, key=lambda a: a.unit != "month"):
        sentences += _season(each, subject) if each.unit == "month" else _hour(each, subject, clock)
    return tuple(sentences)


def _season(advice: Recommendation, subject: str) -> list[Sentence]:
    best, own = _MONTHS[advice.best - 1], _MONTHS[advice.own - 1]
    if advice.action == "none":
        return [Sentence(f"Waiting for another month is not worth it: {_unbroken(advice.because)}.")]
    return [
        Sentence(
            f"Repeated in {best} instead of {own}, {subject} would take {_percent(advice.saving)} less energy at the facility: {_unbroken(advice.because)}."
        )
    ]


def _hour(advice: Recommendation, subject: str, clock: str) -> list[Sentence]:
    if advice.action == "none":
        named = (
            "" if advice.best == advice.own else f" (a typical profile names {advice.best:02}:00 {clock}, {_percent(advice.saving)} lower)"
        )
        own = "its own start hour is the one that a typical profile names" if advice.best == advice.own else _unbroken(advice.because)
        return [Sentence(f"Another start hour is not worth promising for {subject}{named}: {own}.")]
    saving = f"{_percent(advice.saving)} [{advice.low * 100:.0f}, {advice.high * 100:.0f}]"
    text = f"Started at about {advice.best:02}:00 instead of {advice.own:02}:00 {clock}, {subject} would have a location-based figure {saving} lower by a typical profile, with a chance {_chance(advice.chance)} that it gains at all."
    return [Sentence(text), Sentence(_AVERAGE)]


def _chance(share: float) -> str:
    return "above 0.99" if share > 0.99 else f"of {share:.2f}"


def _percent(share: float) -> str:
    return f"{share * 100:.0f}{_NOBREAK}%"


def _unbroken(text: str) -> str:
    """The same, with every number and its sign of percent on one line."""
    return text.replace(" %", f"{_NOBREAK}%")
