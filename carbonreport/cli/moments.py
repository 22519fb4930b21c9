"""Lengths and moments as people type them: 24h, 5min, 18-8, 2026-12-20T18:00."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import click

_UNITS = {"s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "hours": 3600.0, "d": 86400.0, "days": 86400.0}


class Seconds(click.ParamType):  # type: ignore[type-arg]
    """A length such as 24h, 90min or 2d. [s]"""

    name = "length"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See click.ParamType."""
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", str(value).lower())
        if found is None or found.group(2) not in _UNITS:
            self.fail(f"{value!r} is no length; write 24h, 90min or 2d", param, ctx)
        return float(found.group(1)) * _UNITS[found.group(2)]


class Moment(click.ParamType):  # type: ignore[type-arg]
    """A moment; without a zone it is read by this machine's clock. [POSIX s]"""

    name = "moment"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See click.ParamType."""
        if isinstance(value, float):
            return value
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is no moment; write 2026-12-20T18:00 or 2026-12-20T18:00+01:00", param, ctx)
        if moment.tzinfo is None:
            moment = moment.astimezone()
            click.echo(f"carbonreport: {value} was read as {moment.isoformat(timespec='minutes')}, by this machine's clock", err=True)
        return moment.astimezone(UTC).timestamp()


class MomentOrRule(Moment):
    """A moment, or the name of a rule that makes one. [POSIX s, or the name]"""

    def __init__(self, rules: Sequence[str]) -> None:
        self.rules = tuple(rules)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float | str:  # type: ignore[override]
        """See click.ParamType."""
        if str(value) in self.rules:
            return str(value)
        if isinstance(value, str) and not any(c.isdigit() for c in value):
            self.fail(f"{value!r} is neither a moment such as 2026-12-20T18:00 nor one of {', '.join(self.rules)}", param, ctx)
        return super().convert(value, param, ctx)


class HoursOfDay(click.ParamType):  # type: ignore[type-arg]
    """Two hours of a day, such as 18-8."""

    name = "hours"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """See click.ParamType."""
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"\s*(\d{1,2})\s*-\s*(\d{1,2})\s*", str(value))
        if found is None or not all(0 <= int(h) <= 24 for h in found.groups()) or found.group(1) == found.group(2):
            self.fail(f"{value!r} is no part of a day; write 18-8 for six in the evening to eight in the morning", param, ctx)
        return int(found.group(1)), int(found.group(2))
