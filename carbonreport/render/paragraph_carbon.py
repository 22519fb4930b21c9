"""What was emitted, by what data each grid was charged, and what stands beside it: contract, hardware, water."""

from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from carbonreport.model.footprint import ChargedRun, Footprint, GridUse
from carbonreport.model.series import Quality
from carbonreport.model.statement import Sentence
from carbonreport.render.digits import percent, plain, shown
from carbonreport.render.setting import Setting, is_mostly_estimate
from carbonreport.render.words import charged_by, listed, unbracketed
from carbonreport.render.works import works_of

_NOBREAK = "\u00a0"
_ONE_MONTH_S = 32 * 86400.0
_MOST_ZONES = 4


def emissions(footprint: Footprint, setting: Setting, runs: Sequence[ChargedRun]) -> Sentence:
    """Emissions of the grid that was used, and by what data each grid was charged."""
    factor = {"lifecycle": ", life-cycle", "direct": ", direct"}.get(footprint.grids[0].family.factor, "")
    verb = "are estimated at" if is_mostly_estimate(footprint) else "were"
    alike: dict[tuple[object, ...], list[GridUse]] = {}
    for grid in footprint.grids:
        alike.setdefault(_grid_key(grid, runs, setting), []).append(grid)
    how = "; ".join(_charged(grids, runs, setting) for grids in alike.values())
    cites = dict.fromkeys(work.key for grid in footprint.grids for work in works_of(grid.source))
    return Sentence(f"Its location-based{factor} emissions {verb} {shown(footprint.grams).sentence}; {how}.", tuple(cites))


def _grid_key(grid: GridUse, runs: Sequence[ChargedRun], setting: Setting) -> tuple[object, ...]:
    """Grids that one clause can speak of together."""
    return (setting.nowhere.get(grid.zone), tuple(q for q, _ in _by_share(grid)), month_of(grid, runs, setting), _short(grid.source))


def _charged(grids: Sequence[GridUse], runs: Sequence[ChargedRun], setting: Setting) -> str:
    first, is_one = grids[0], len(grids) == 1
    qualities = _by_share(first)
    by, but = charged_by(qualities[0][0], month_of(first, runs, setting), is_one)
    means = listed([plain(grid.grams_per_kwh.value) for grid in grids[:_MOST_ZONES]] + (["others"] if len(grids) > _MOST_ZONES else []))
    data = f"({'mean' if is_one else 'means'} {means}{_NOBREAK}{shown(first.grams_per_kwh).unit}, {_short(first.source)})"
    rest = [f"{percent(share)} of the energy by {charged_by(quality, '', is_one)[0]}" for quality, share in qualities[1:] if share >= 0.005]
    return f"{_grid_noun(grids, setting)} charged by {by} {data}{f', {listed(rest)}' if rest else ''}{but}"


def _grid_noun(grids: Sequence[GridUse], setting: Setting) -> str:
    if not setting.knows(grids[0]):
        return f"{setting.nowhere[grids[0].zone]} was"
    if len(grids) == 1:
        return f"the grid of {_grid_name(grids[0], setting)} was"
    more = [f"{len(grids) - _MOST_ZONES} more zones"] if len(grids) > _MOST_ZONES else []
    return f"the grids of {listed([*dict.fromkeys(_grid_name(grid, setting) for grid in grids[:_MOST_ZONES]), *more])} were"


def _grid_name(grid: GridUse, setting: Setting) -> str:
    return setting.name_of(grid).removeprefix("the area of ")


def _by_share(grid: GridUse) -> list[tuple[Quality, float]]:
    """Qualities of the hours, the most used first."""
    return sorted(grid.qualities, key=lambda q: -q[1]) or [("typical", 1.0)]


def _short(source: str) -> str:
    """A data set's name without its licence and years, which the table has."""
    return source.partition(" (")[0]


def month_of(grid: GridUse, runs: Sequence[ChargedRun], setting: Setting) -> str:
    """The month in which all runs on that grid lie, or nothing."""
    zone = ZoneInfo(setting.time_zone)
    times = [(c.run.started_s, c.run.ended_s) for c in runs if c.grid.zone == grid.zone]
    months = {f"{datetime.fromtimestamp(s, UTC).astimezone(zone):%B}" for pair in times for s in pair}
    return months.pop() if len(months) == 1 and max(end - begin for begin, end in times) < _ONE_MONTH_S else ""


def market(footprint: Footprint) -> list[Sentence]:
    """The market-based figure, where there is a contract."""
    if footprint.market_grams is None:
        return []
    text = shown(footprint.market_grams).sentence
    return [
        Sentence(
            f"By contract ({unbracketed(footprint.market_grams.source)}) the market-based figure is {text}; it stands beside the location-based one and is never added to it."
        )
    ]


def embodied(footprint: Footprint) -> list[Sentence]:
    """The hardware’s own part, where it is known."""
    if footprint.embodied is None:
        return []
    text = shown(footprint.embodied.grams).sentence
    return [Sentence(f"Making the hardware accounts for a further {text}, not included above.")]


def water(footprint: Footprint) -> list[Sentence]:
    """Water used on site, where it is known."""
    if footprint.water is None:
        return []
    return [Sentence(f"Water used on site was {shown(footprint.water).sentence}.")]
