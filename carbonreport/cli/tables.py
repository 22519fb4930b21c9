"""A footprint as tables for a terminal."""

from calendar import month_name
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table
from rich.text import Text

from carbonreport.combine.footprint import is_read
from carbonreport.model.footprint import ChargedRun, DeviceEnergy, Footprint, SpanEnergy
from carbonreport.model.quantity import Quantity
from carbonreport.render.digits import duration, plain, scaled, share_in_words, shown
from carbonreport.render.setting import is_timeless, is_too_short, is_unread, read_time
from carbonreport.render.words import shortened
from carbonreport.units import SECONDS_PER_HOUR, kwh

if TYPE_CHECKING:
    from carbonreport.model.option import Option
    from carbonreport.workflows.when import Answer

_LONGEST_NOTE = 500
_WIDEST = 160
_UNKNOWN = "not known"
_LEAST_JOULES = 1.0  # of a difference


class Terminal(Console):
    """Standard output; a reader that leaves early is left to the caller."""

    def __init__(self) -> None:
        super().__init__(highlight=False, soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Raise what rich would make an exit code 1 of."""
        raise BrokenPipeError


def print_footprint(footprint: Footprint, runs: Sequence[ChargedRun], *, is_exclusive: bool = False) -> None:
    """Totals, devices, spans (without nested ones where exclusive) and notes of the counted runs on standard output."""
    console = Terminal()
    console.print(_totals(footprint, runs))
    if footprint.devices:
        console.print(_devices(footprint, runs))
    if footprint.spans:
        console.print(_spans(footprint, is_exclusive=is_exclusive))
    for note in footprint.notes:
        console.print(Text(f"{note.slug}: {shortened(note.text, _LONGEST_NOTE)}"))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    return table


def _totals(footprint: Footprint, runs: Sequence[ChargedRun]) -> Table:
    table = _table("", "value", "90 % interval", "how known")
    rows: list[tuple[str, Quantity | None]] = [
        ("IT energy", footprint.it_joules),
        ("PUE", footprint.pue),
        ("facility energy", footprint.facility_joules),
        *((f"grid {grid.zone}", grid.grams_per_kwh) for grid in footprint.grids),
        ("location-based emissions", footprint.grams),
        ("market-based emissions", footprint.market_grams),
        ("embodied emissions", footprint.embodied.grams if footprint.embodied else None),
        ("water on site", footprint.water),
    ]
    for label, quantity in rows:
        if quantity is not None:
            text = shown(quantity)
            value = (
                f"{plain(quantity.value)}\u00a0{text.unit}" if label.startswith("grid ") else text.with_unit
            )  # a datum, as in the statement
            is_known = quantity.unit not in ("J", "gCO2e", "gCO2", "L") or not is_unread(footprint)
            table.add_row(label, value, text.interval, quantity.origin) if is_known else table.add_row(label, _UNKNOWN)
    table.add_row("wall-clock", _UNKNOWN if is_timeless(footprint) else duration(footprint.run_seconds))
    table.add_row("time with readings", share_in_words(read_time(footprint, runs)))
    return table


def _devices(footprint: Footprint, runs: Sequence[ChargedRun]) -> Table:
    table = _table("device", "energy", "90 % interval", "share", "method")
    read = {device.id for c in runs for device in c.devices if is_read(c.run, device.id)}
    for device in footprint.devices:
        name = Text(shortened(device.name if device.count == 1 else f"{device.count} × {device.name}"))
        if is_unread(footprint) or device.id not in read:
            table.add_row(name, _UNKNOWN, "", "", device.method)
        else:
            text = shown(_with_interval(device, footprint))
            table.add_row(name, text.with_unit, text.interval, share_in_words(device.share), device.method)
    return table


def _with_interval(device: DeviceEnergy, footprint: Footprint) -> Quantity:
    """A device's energy with the interval of its kind, relative to its size."""
    return _of(device.it_joules, dict(footprint.kinds)[device.kind])


def _spans(footprint: Footprint, *, is_exclusive: bool) -> Table:
    table = _table("span alone" if is_exclusive else "span", "count", "time", "energy", "90 %", "emissions", "per item")
    unread = is_unread(footprint)
    for span in (s.without_nested() if is_exclusive else s for s in footprint.spans):
        name = Text("  " * span.path.count("/") + shortened(span.path.rpartition("/")[2]))
        if is_exclusive and span.seconds == 0 and span.count == 0:
            table.add_row(name, *[""] * 6)
            continue
        table.add_row(
            name, f"{span.count:,}", duration(span.seconds), *([_UNKNOWN, "", "", ""] if unread else _span_cells(span, footprint.grams))
        )
    rest = (
        [_UNKNOWN, "", ""]
        if unread
        else [_part(footprint.rest_joules, footprint.it_joules), "", _part(footprint.rest_grams, footprint.grams)]
    )
    table.add_row("outside spans", "", "", *rest, "")
    return table


def _part(value: float, whole: Quantity) -> str:
    """A part of a whole, with the digits that the whole's interval allows."""
    return shown(_of(value, whole)).with_unit


def _of(value: float, whole: Quantity) -> Quantity:
    times = value / whole.value if whole.value else 0.0
    ends = sorted((whole.low * times, whole.high * times)) if times else [value, value]
    return Quantity(value, ends[0], ends[1], whole.unit, whole.origin, whole.source)


def _span_cells(span: SpanEnergy, grams: Quantity) -> list[str]:
    """Energy, interval, emissions and energy per item."""
    if span.it_joules is None or span.grams is None or span.it_joules_low is None or span.it_joules_high is None:
        return ["told with", shortened((span.told_with or "outside spans").rpartition("/")[2]), "", ""]
    if is_too_short(span):
        return ["too short", "to read", "", ""]
    text = shown(Quantity(span.it_joules, span.it_joules_low, span.it_joules_high, "J", "estimated", "span"))
    per_item = ""
    if span.items and span.joules_per_item is not None:
        low, high = span.it_joules_low / span.items, span.it_joules_high / span.items
        per_item = shown(Quantity(span.joules_per_item, low, high, "J", "estimated", "span")).with_unit
    return [text.with_unit, text.interval, _part(span.grams, grams), per_item]


def when_table(answer: "Answer") -> str:
    """What could be done, one row an option, now first: each lever alone, and together."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, column in enumerate(("", "zone", "start", "energy", "emissions", "saving [90 %]", "chance", "ends later", "")):
        table.add_column(column, justify="left" if i in (0, 1, 2, 8) else "right", no_wrap=True)
    for option in (answer.now, *(option for option in answer.options if not _is_now(option, answer.now))):
        start = datetime.fromtimestamp(option.start_s, UTC).astimezone(ZoneInfo(option.time_zone))
        cells = [
            _way(option),
            option.zone,
            f"{start:%a %d %b %H:%M %Z}",
            scaled(option.facility_joules, "J"),
            scaled(option.grams, "gCO2e"),
        ]
        if option.action != "none":
            cells += [
                f"{100 * option.saving:.0f} % [{100 * option.low:.0f}, {100 * option.high:.0f}]",
                f"{option.chance:.2f}",
                duration(max(option.waits_h, 0.0) * SECONDS_PER_HOUR),
                ("worth it" if option.is_advised else "not worth it") + ("" if option.is_in_time else ", past the deadline"),
            ]
        table.add_row(*cells)
    console = Terminal()
    console.width = max(console.width, _WIDEST)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def _is_now(option: "Option", now: "Option") -> bool:
    """Whether the best start in one piece is that of now, which has its row."""
    return option.action == "shift" and option.runs == now.runs


def saved_in_words(answer: "Answer", option: "Option") -> str:
    """What the best option lowers, in energy, emissions and money, and what it costs in time."""
    joules = answer.now.facility_joules - option.facility_joules
    parts = [] if abs(joules) < _LEAST_JOULES else [f"{scaled(joules, 'J')} of energy"]
    parts.append(f"{scaled(answer.now.grams - option.grams, 'gCO2e')} of the location-based figure, before the saving is shrunk")
    if answer.price is not None and parts[:-1]:
        parts.insert(1, f"{kwh(joules) * answer.price[0]:.2f} {answer.price[1]}")
    return f"{_way(option)} lowers: {', '.join(parts)}; it ends {duration(max(option.waits_h, 0.0) * SECONDS_PER_HOUR)} later"


def _way(option: "Option") -> str:
    """What is done, in the words of the table."""
    if option.action == "none":
        return "now"
    cap = "" if option.cap_watts is None else f"cap {option.cap_watts:g} W"
    month = month_name[datetime.fromtimestamp(option.start_s, UTC).astimezone(ZoneInfo(option.time_zone)).month]
    names = {
        "pause": f"pause {len(option.runs) - 1} x",
        "season": f"season: {month}",
        "cap": cap,
        "cap+shift": f"{cap}, shift",
        "cap+season": f"{cap}, {month}",
    }
    return names.get(option.action, option.action)
