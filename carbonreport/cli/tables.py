"""A footprint as tables for a terminal."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from carbonreport.model.footprint import Footprint, SpanEnergy
from carbonreport.model.quantity import Quantity
from carbonreport.render.digits import duration, percent, scaled, shown
from carbonreport.render.setting import is_unread
from carbonreport.render.words import shortened

_LONGEST_NOTE = 500


def print_footprint(footprint: Footprint) -> None:
    """Totals, devices, spans and notes on standard output."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(_totals(footprint))
    if footprint.devices:
        console.print(_devices(footprint))
    if footprint.spans:
        console.print(_spans(footprint))
    for note in footprint.notes:
        console.print(Text(f"{note.slug}: {shortened(note.text, _LONGEST_NOTE)}"))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    return table


def _totals(footprint: Footprint) -> Table:
    table = _table("", "value", "90 % interval", "how known")
    rows: list[tuple[str, Quantity | None]] = [
        ("IT energy", footprint.it_joules),
        ("PUE", footprint.pue),
        ("facility energy", footprint.facility_joules),
        *((f"grid {grid.zone}", grid.grams_per_kwh) for grid in footprint.grids),
        ("location-based emissions", footprint.grams),
        ("market-based emissions", footprint.market_grams),
        ("embodied emissions", footprint.embodied.grams if footprint.embodied else None),
    ]
    for label, quantity in rows:
        if quantity is not None:
            text = shown(quantity)
            is_known = quantity.unit not in ("J", "gCO2e") or not is_unread(footprint)
            table.add_row(label, text.with_unit, text.interval, quantity.origin) if is_known else table.add_row(label, "not known")
    table.add_row("wall-clock", duration(footprint.run_seconds), "", f"{percent(footprint.covered)} covered")
    return table


def _devices(footprint: Footprint) -> Table:
    table = _table("device", "energy", "share", "method")
    for device in footprint.devices:
        name = shortened(device.name if device.count == 1 else f"{device.count} × {device.name}")
        table.add_row(Text(name), scaled(device.it_joules, "J"), percent(device.share), device.method)
    return table


def _spans(footprint: Footprint) -> Table:
    table = _table("span", "count", "time", "energy", "90 %", "emissions", "per item")
    for span in footprint.spans:
        table.add_row(Text("  " * span.path.count("/") + shortened(span.path.rpartition("/")[2])), *_span_cells(span))
    table.add_row("outside spans", "", "", scaled(footprint.rest_joules, "J"), "", scaled(footprint.rest_grams, "gCO2e"), "")
    return table


def _span_cells(span: SpanEnergy) -> list[str]:
    begin = [f"{span.count:,}", duration(span.seconds)]
    if span.it_joules is None or span.grams is None or span.it_joules_low is None or span.it_joules_high is None:
        return [*begin, "told with", shortened((span.told_with or "outside spans").rpartition("/")[2]), "", ""]
    interval = f"{scaled(span.it_joules_low, 'J')} to {scaled(span.it_joules_high, 'J')}"
    per_item = "" if span.joules_per_item is None else scaled(span.joules_per_item, "J")
    return [*begin, scaled(span.it_joules, "J"), interval, scaled(span.grams, "gCO2e"), per_item]
