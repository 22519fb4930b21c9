"""Everything that carbonreport raises on purpose: what, where, and the way out, in one line."""

from collections.abc import Iterable
from datetime import UTC, datetime


class CarbonreportError(Exception):
    """The root: the command line prints it as one line and exits with 1."""


class PlaceError(CarbonreportError):
    """Zone, PUE, time zone or site file cannot be used as given."""


class UnknownZone(PlaceError):
    """No grid zone of that name is known."""

    def __init__(self, zone: str, nearest: Iterable[str] = ()) -> None:
        near = ", ".join(nearest)
        hint = f"; nearest: {near}" if near else ""
        super().__init__(f"unknown grid zone {zone!r}{hint} (zones are spelled as in Electricity Maps, such as DE, US-CAL-CISO or IN-WE)")
        self.zone = zone


class BadPue(PlaceError):
    """A PUE that no facility can have, or that cannot be read."""


class BadTime(CarbonreportError):
    """A time that is naive, ambiguous, does not exist, or cannot be read."""


class GridError(CarbonreportError):
    """A grid intensity series cannot be used."""


class GridGap(GridError):
    """The series does not cover the period that was asked for."""

    def __init__(self, zone: str, start_s: float, end_s: float, way_out: str = "") -> None:
        begin, end = (datetime.fromtimestamp(s, UTC) for s in (start_s, end_s))
        hint = f"; {way_out}" if way_out else ""
        super().__init__(f"no intensity for {zone} from {begin:%F %R} to {end:%F %R} UTC{hint}")
        self.zone, self.start_s, self.end_s = zone, start_s, end_s


class BadSeries(GridError):
    """A file of intensities with a wrong header, value or time."""


class FamilyMix(GridError):
    """Intensities of two families (life-cycle and direct, say) met in one sum."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"intensities of two families cannot be added: {first} and {second}; render them as two statements")


class FetchError(GridError):
    """A provider could not be asked, or did not answer usefully."""


class Offline(FetchError):
    """The network may not be used."""


class KeyRefused(FetchError):
    """A provider wants a key, or does not take this one."""


class TooManyRequests(FetchError):
    """A provider wants to be left alone for a while."""


class BadAnswer(FetchError):
    """An answer that is too large, cut off, no JSON, of another zone or unit, or not possible."""


class RecordError(CarbonreportError):
    """A file that is not a record, or a record that cannot be read."""


class OutputError(CarbonreportError):
    """A file or folder that cannot be written, or must not be overwritten."""


class SiteError(PlaceError):
    """A site file with a wrong field."""


class MissingExtra(CarbonreportError):
    """A feature whose packages are not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs packages that are not installed: pip install 'carbonreport[{extra}]'")
        self.extra = extra


class MeterError(CarbonreportError):
    """A meter that cannot be opened or read; the tracer turns it into a note."""


class MeterAbsent(MeterError):
    """The machine has nothing of this kind to read; no fault, and another meter may stand in."""


class MeterDenied(MeterError):
    """There is something to read, but not for this user; the message says how to change that."""


class DeviceLost(MeterError):
    """A device stopped answering while it was measured."""


class UnitMix(CarbonreportError):
    """Two quantities that must never be added."""
