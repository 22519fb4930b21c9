"""Numbers to words and rows. Pure: the same footprint gives the same sentences, whatever the format."""

from collections.abc import Sequence

from carbonreport.model.footprint import ChargedRun, Footprint
from carbonreport.model.statement import Statement
from carbonreport.render.digits import duration, plain, shown
from carbonreport.render.facts import details
from carbonreport.render.paragraph import paragraph
from carbonreport.render.setting import Group, Setting, is_timeless, is_unread
from carbonreport.render.table import omissions, rows, run_rows
from carbonreport.render.works import TOOL, works_of
from carbonreport.units import hours

__all__ = ["Group", "Setting", "compose"]

_MOST_TEXTS = 3  # of one slug


def compose(footprint: Footprint, runs: Sequence[ChargedRun], groups: Sequence[Group], setting: Setting) -> Statement:
    """The statement of a footprint: paragraph, tables, omissions and notes."""
    cited = [work for grid in footprint.grids for work in works_of(grid.source)]
    return Statement(
        paragraph=paragraph(footprint, runs, groups, setting),
        rows=rows(footprint, runs, groups, setting),
        runs=run_rows(footprint, groups),
        omissions=omissions(footprint, runs),
        notes=_notes(footprint),
        figures=_figures(footprint),
        works=tuple(dict.fromkeys([TOOL, *cited])),
        made_by=setting.made_by,
        details=details(footprint, runs, groups, setting),
        is_anonymous=setting.is_anonymous,
    )


def _notes(footprint: Footprint) -> tuple[tuple[str, str], ...]:
    """Slug and text; what one slug says of many runs or zones is put together, the first few in full."""
    texts: dict[str, list[str]] = {}
    for note in footprint.notes:
        texts.setdefault(note.slug, []).append(note.text)
    return tuple((slug, "; ".join(_first_few(list(dict.fromkeys(said))))) for slug, said in texts.items())


def _first_few(texts: list[str]) -> list[str]:
    return texts if len(texts) <= _MOST_TEXTS else [*texts[:_MOST_TEXTS], f"and {len(texts) - _MOST_TEXTS} more alike"]


def _figures(footprint: Footprint) -> tuple[tuple[str, str], ...]:
    """Names of macros and their text: letters only, since TeX allows no digits in them."""
    time = ("not known", "not known") if is_timeless(footprint) else (duration(footprint.run_seconds), plain(hours(footprint.gpu_seconds)))
    pairs = [("WallClock", time[0]), ("GpuHours", time[1])]
    quantities = {
        "ItEnergy": footprint.it_joules,
        "FacilityEnergy": footprint.facility_joules,
        "Emissions": footprint.grams,
        "Pue": footprint.pue,
    }
    for name, quantity in quantities.items():
        text = shown(quantity, beside=footprint.facility_joules if quantity.unit == "J" else None)
        interval = f"{text.interval}\u00a0{text.unit}".strip() if text.interval else text.with_unit
        is_known = quantity is footprint.pue or not is_unread(footprint)
        pairs += (
            [(name, text.with_unit), (f"{name}Interval", interval)] if is_known else [(name, "not known"), (f"{name}Interval", "not known")]
        )
    return tuple(pairs)
