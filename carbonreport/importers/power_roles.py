"""Which columns of a table are time, power and device."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from carbonreport.importers.cells import quantity
from carbonreport.importers.headers import heading
from carbonreport.importers.tables import Row, Table
from carbonreport.importers.wishes import Wishes
from carbonreport.model.run import DeviceKind

# The first of these that tells the rows of a moment apart is the device: a UUID never lies, an index may be 0 for all.
_DEVICES = (
    "uuid",
    "gpu_uuid",
    "gpu.uuid",
    "pci.bus_id",
    "gpu_bus_id",
    "bus_id",
    "serial",
    "gpu_serial",
    "gpu",
    "gpu_id",
    "gpu_index",
    "index",
    "device",
    "device_id",
    "node",
    "id",
)
_BOARDS = ("name", "gpu_name", "gpu.name", "modelname", "model", "product_name", "device_name")
_HOSTS = ("hostname", "host", "node_name", "nodename")
_LIMITS = ("power.limit", "enforced.power.limit", "power_limit", "power.max_limit")
_DRAWS = ("power.draw", "power.draw.instant", "power.draw.average")
_TOTAL = ("total", "sum", "overall")
_NEAR = 0.02
_MOST_PERCENT = 100.0
_MOST_WATTS_OF_ONE = 2100.0


@dataclass(frozen=True, slots=True)
class PowerColumn:
    """A column of power.

    Attributes:
        column: Its name in the table.
        unit: Its unit in lower case, "" where only the cells or nobody says.
        kind: What draws it.
        label: Name of the device where each has a column of its own, else "".
    """

    column: str
    unit: str
    kind: DeviceKind
    label: str = ""


@dataclass(frozen=True, slots=True)
class Roles:
    """What the columns of a table are; empty where there is no such column."""

    time: tuple[str, ...]
    powers: tuple[PowerColumn, ...]
    devices: tuple[str, ...]
    board: str = ""
    host: str = ""
    limit: str = ""
    left_out: tuple[str, ...] = ()


def roles_of(table: Table, wishes: Wishes, *, default_kind: DeviceKind = "other") -> Roles:
    """Roles by the names of the columns, or as somebody said."""
    by_name = {heading(column).name: column for column in reversed(table.columns)}
    powers, left_out = _powers(table, wishes, default_kind)
    devices = (wishes.device,) if wishes.device else tuple(by_name[name] for name in _DEVICES if name in by_name)
    return Roles(
        _times(table, wishes), powers, devices, _first(by_name, _BOARDS), _first(by_name, _HOSTS), _first(by_name, _LIMITS), left_out
    )


def _first(by_name: dict[str, str], wanted: Sequence[str]) -> str:
    return next((by_name[name] for name in wanted if name in by_name), "")


def _times(table: Table, wishes: Wishes) -> tuple[str, ...]:
    if wishes.time:
        return (wishes.time,)
    columns = [column for column in table.columns if heading(column).is_time]
    if {"date", "time"} <= set(columns):
        return ("date", "time")
    return tuple(columns[:1])


def _powers(table: Table, wishes: Wishes, default_kind: DeviceKind) -> tuple[tuple[PowerColumn, ...], tuple[str, ...]]:
    """Columns of power, and those of them that repeat others."""
    if wishes.power:
        return tuple(PowerColumn(c, heading(c).unit, _kind(c, default_kind), c if len(wishes.power) > 1 else "") for c in wishes.power), ()
    for draw in _DRAWS:
        found = [column for column in table.columns if heading(column).name == draw]
        if found and any(quantity(row.get(found[0]))[0] is not None for row in table.rows):
            return (PowerColumn(found[0], heading(found[0]).unit, "gpu"),), ()
    columns = [column for column in table.columns if heading(column).is_power]
    if not columns:
        columns = _unlabelled_boards(table)
    total = _total_of(table, columns)
    kept = [column for column in columns if column != total]
    several = len(kept) > 1
    powers = tuple(PowerColumn(c, heading(c).unit, _kind(c, default_kind), heading(c).name if several else "") for c in kept)
    return powers, (total,) if total else ()


def _unlabelled_boards(table: Table) -> list[str]:
    """Columns named after boards alone, where their values cannot be percentages."""
    columns = [c for c in table.columns if c.startswith("gpu") and c[3:].strip("_ -").isdecimal()]
    values = [value for row in table.rows for c in columns if (value := quantity(row.get(c))[0]) is not None]
    return columns if values and _MOST_PERCENT < max(values) <= _MOST_WATTS_OF_ONE else []


def _total_of(table: Table, columns: Sequence[str]) -> str:
    """The column that is the sum of the others in the first rows; "" where none is."""
    for total in columns:
        others = [c for c in columns if c != total]
        if len(others) < 2 and not any(word in total for word in _TOTAL):
            continue
        if (
            len(others) >= 1
            and (sums := _sums(table.rows[:50], total, others))
            and all(abs(a - b) <= _NEAR * max(abs(a), 1e-9) for a, b in sums)
        ):
            return total
    return ""


def _sums(rows: Sequence[Row], total: str, others: Sequence[str]) -> list[tuple[float, float]]:
    pairs = []
    for row in rows:
        whole, parts = quantity(row.get(total))[0], [quantity(row.get(c))[0] for c in others]
        known = [part for part in parts if part is not None]
        if whole is not None and len(known) == len(parts):
            pairs.append((whole, sum(known)))
    return pairs


def _kind(column: str, default: DeviceKind) -> DeviceKind:
    words: tuple[tuple[Literal["gpu", "cpu", "dram"], tuple[str, ...]], ...] = (
        ("gpu", ("gpu",)),
        ("cpu", ("cpu", "package")),
        ("dram", ("dram", "ram")),
    )
    return next((kind for kind, names in words if any(name in column for name in names)), default)
