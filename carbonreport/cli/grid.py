"""`carbonreport grid zones|show|next|compare|cache`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table

    from carbonreport.grid.look import Look
    from carbonreport.model.series import Family

_JSON = click.option("--json", "as_json", is_flag=True, help="The same as JSON.")


@click.group("grid")
def command() -> None:
    """Look at grid zones, their typical days, and the hours that were fetched."""


@command.command("zones")
@click.argument("text", required=False)
@_JSON
def zones(text: str | None, as_json: bool) -> None:
    """List grid zones, or those whose code, name or other name is TEXT."""
    from carbonreport.grid.look import find

    rows = find(text)
    if as_json:
        _print_json([row._asdict() for row in rows])
        return
    table = _table("zone", "name", "time zone")
    for row in rows:
        table.add_row(row.code, row.name, row.time_zone)
    _print(table)


@command.command("show")
@click.argument("place", metavar="PLACE")
@click.option("--month", type=click.IntRange(1, 12), metavar="1-12", help="The day of one month instead of the mean month.")
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE", help="Draw the day curves: .svg, .pdf or .png.")
@_JSON
def show(place: str, month: int | None, plot: Path | None, as_json: bool) -> None:
    """Show a zone's typical day by month, its swing, and how far to trust it: carbonreport grid show DE --month 7."""
    from carbonreport.grid.look import look

    looked = look(place, _year())
    if plot is not None:
        _plot(looked, plot, month)
        click.echo(f"wrote {plot}", err=True)
    if as_json:
        _print_json(_as_object(looked, month))
        return
    _print_look(looked, month)


@command.command("next")
@click.argument("place", metavar="PLACE")
@click.option("--hours", type=click.IntRange(1, 8784), default=48, show_default=True, help="How far ahead.")
@click.option("--grid", metavar="SOURCE", help="A provider whose forecast and last observed value count; typical hours alone by default.")
@click.option("--offline", is_flag=True, help="Use only what was fetched before, as CARBONREPORT_OFFLINE=1 does.")
@_JSON
def next_hours(place: str, hours: int, grid: str | None, offline: bool, as_json: bool) -> None:
    """Show the hours ahead: a forecast as far as it reaches, then typical ones, with the error of each by its lead."""
    from carbonreport.combine.forecast import hour_factors
    from carbonreport.model.series import QUALITIES
    from carbonreport.workflows.grid import next_hours as hours_ahead

    series = hours_ahead(place, hours, grid, offline=offline)
    starts = [datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M") for at in series.edges_s[:-1]]
    factors = hour_factors(series)
    rows = list(zip(starts, series.grams_per_kwh.tolist(), (QUALITIES[q] for q in series.quality), factors.tolist(), strict=True))
    if as_json:
        keys = ("start", "g_per_kwh", "quality", "factor_90")
        _print_json({"zone": series.zone, "source": series.source, "hours": [dict(zip(keys, row, strict=True)) for row in rows]})
        return
    table = _table("begin, UTC", "", "g/kWh", "90 %")
    for start, grams, quality, factor in rows:
        table.add_row(start, quality, f"{grams:.0f}", f"× or ÷ {factor:.2f}")
    _print(table)
    for _, text in series.notes:
        click.echo(text)
    click.echo(f"Data: {series.source}")


@command.command("compare")
@click.argument("places", nargs=-1, required=True, metavar="PLACE…")
@_JSON
def compare(places: tuple[str, ...], as_json: bool) -> None:
    """Compare zones: carbonreport grid compare DE FR SE."""
    from carbonreport.grid.look import look, why_no_hours

    looks = [look(place, _year()) for place in places]
    if as_json:
        _print_json([_as_object(looked, None) for looked in looks])
        return
    table = _table("zone", "name", "g/kWh", "year", "90 %, 24 h", "swing", "best hour", "worst hour")
    for looked in sorted(looks, key=lambda looked: looked.level):
        factor, day = dict(looked.factors)[24], looked.day()
        hours = ("", "", "") if day is None else (f"{day.swing * 100:.0f} %", f"{day.best_hour}:00", f"{day.worst_hour}:00")
        span = f"{looked.level / factor:.0f}–{looked.level * factor:.0f}"
        zone = looked.profile
        table.add_row(zone.zone, zone.name, f"{looked.level:.0f}", str(looked.year), span, *hours)
    _print(table)
    _print_kinds(looks)
    for why, zones in _zones_by(looks, why_no_hours):
        if why:
            click.echo(f"No swing and no hours of {zones}: {why}.")
    for source, zones in _zones_by(looks, lambda looked: looked.profile.source):
        click.echo(f"Data of {zones}: {source}")


def _print_kinds(looks: "list[Look]") -> None:
    """What the numbers are, or that they are of different kinds."""
    from carbonreport.render.digits import mass_name
    from carbonreport.render.words import capital

    families = [looked.profile.family for looked in looks]
    if len(set(families)) > 1:
        odd = ", ".join(f"{looked.profile.zone} {_family(looked.profile.family)}" for looked in looks)
        click.echo(f"Numbers of different kinds, not to be compared with each other: {odd}.")
        return
    gram = mass_name(f"g{families[0].gas}")
    click.echo(
        f"{capital(_family(families[0]))}, {gram}: what a run is charged. What power plants burn more for one more run is another number."
    )


def _family(family: "Family") -> str:
    from carbonreport.render.words import family_in_words

    return family_in_words(family) + ("" if family.gas == "CO2e" else ", CO₂ alone")


def _zones_by(looks: "list[Look]", text_of: "Callable[[Look], str]") -> list[tuple[str, str]]:
    """Each text once, with the zones of which it is said."""
    from carbonreport.render.words import listed

    zones: dict[str, list[str]] = {}
    for looked in looks:
        zones.setdefault(text_of(looked), []).append(looked.profile.zone)
    return [(text, listed(of_it)) for text, of_it in zones.items()]


@command.command("cache")
@click.option("--clear", is_flag=True, help="Remove every hour that was fetched.")
@_JSON
def cache(clear: bool, as_json: bool) -> None:
    """List the hours that were fetched and kept, by provider, kind of number and zone."""
    import os
    from dataclasses import asdict

    from carbonreport.grid.cache import GridCache, default_folder

    kept = GridCache(default_folder(os.environ))
    if clear:
        click.echo(f"removed {kept.clear()} files from {kept.root}")
        return
    entries = kept.entries()
    if as_json:
        _print_json({"folder": str(kept.root), "limit_bytes": kept.limit_bytes, "entries": [asdict(entry) for entry in entries]})
        return
    table = _table("provider", "zone", "kind of number", "months", "kB")
    for entry in entries:
        table.add_row(entry.provider, entry.zone, entry.family, f"{entry.first} to {entry.last}", f"{entry.size_bytes / 1e3:.0f}")
    if entries:
        _print(table)
    click.echo(f"{sum(e.size_bytes for e in entries) / 1e6:.1f} of at most {kept.limit_bytes / 1e6:.0f} MB in {kept.root}")


def _plot(looked: "Look", path: Path, month: int | None) -> None:
    from carbonreport.errors import OutputError
    from carbonreport.grid.look import MONTHS
    from carbonreport.render.day_curves import DayCurves, save_curves
    from carbonreport.render.digits import mass_name

    zone = looked.profile
    if looked.curves is None:
        raise OutputError(f"there is no day curve of {zone.zone} to draw: it has no hourly data")
    title = f"{zone.name}: typical day at the level of {looked.year}\n{zone.source}"
    unit = f"g{zone.family.gas}/kWh"
    save_curves(DayCurves(title, zone.time_zone, mass_name(unit), tuple(MONTHS), looked.curves, month), path)


def _print_look(looked: "Look", month: int | None) -> None:
    from carbonreport.grid.look import MONTHS, trust_in_words
    from carbonreport.render.digits import mass_name

    zone = looked.profile
    unit = mass_name(f"g{zone.family.gas}/kWh")
    click.echo(f"{zone.zone}, {zone.name}: {looked.level:.0f} {unit} in {looked.year} ({_family(zone.family)})")
    if looked.direct is not None:
        click.echo(f"direct emissions alone: {looked.direct:.0f} {unit}{f' ({looked.direct_because})' if looked.direct_because else ''}")
    if looked.curves is not None:
        table = _table("hour", *([MONTHS[month - 1]] if month else [*(name[:3] for name in MONTHS), "mean"]))
        columns = [looked.curve(month)] if month else [*looked.curves, looked.curve()]
        for hour in range(24):
            table.add_row(f"{hour}:00", *(f"{column[hour]:.0f}" for column in columns if column is not None))
        _print(table)
        day = looked.day(month)
        if day is not None:
            when = MONTHS[month - 1] if month else "The mean month"
            click.echo(
                f"{when}: lowest at {day.best_hour}:00, highest at {day.worst_hour}:00 {zone.time_zone}, swing {day.swing * 100:.0f} % of the mean."
            )
    for sentence in trust_in_words(looked):
        click.echo(sentence)
    click.echo(f"Data: {zone.source}")


def _as_object(looked: "Look", month: int | None) -> dict[str, Any]:
    zone, day = looked.profile, looked.day(month)
    return {
        "zone": zone.zone,
        "name": zone.name,
        "time_zone": zone.time_zone,
        "family": str(zone.family),
        "level": {"g_per_kwh": looked.level, "year": looked.year},
        "levels": {str(year): level for year, level in sorted(zone.levels.items())},
        "direct": {"g_per_kwh": looked.direct, "has_hours": looked.direct is not None and not looked.direct_because},
        "months": None if looked.curves is None else looked.curves.round(1).tolist(),
        "day": None
        if day is None
        else {"best_hour": day.best_hour, "worst_hour": day.worst_hour, "swing": day.swing, "chance_best_is_cleaner": day.chance},
        "factor_90": {f"{length} h": factor for length, factor in looked.factors},
        "marks": list(zone.marks),
        "successor": zone.successor or None,
        "source": zone.source,
    }


def _year() -> int:
    return datetime.now(UTC).year


def _table(*columns: str) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i < 2 and column != "g/kWh" else "right", overflow="fold")
    return table


def _print(table: "Table") -> None:
    from rich.console import Console

    Console(highlight=False, soft_wrap=True).print(table)


def _print_json(value: Any) -> None:
    from carbonreport.render.formats.json import dumps

    click.echo(dumps(value), nl=False)
