"""What a provider or a file says of a zone, hours missing or not; and its way to a series without holes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from carbonreport.errors import BadSeries, FamilyMix, GridGap, UnknownZone
from carbonreport.model.series import QUALITIES, Array, Family, GridErrors, IntensitySeries, Quality
from carbonreport.units import hours

# What stands in for hours that are missing: zone, begin and end in POSIX seconds -> series.
Fill = Callable[[str, float, float], IntensitySeries]
Notes = tuple[tuple[str, str], ...]

# sd of ln(true / stated), common to all hours of a source: two vintages of the same zone-years differ by the first,
# zones that the provider estimates by the second. How far providers' forecasts are off has not been measured; the third is
# that of an hour of a typical profile in a windy zone, which a forecast should not exceed.
ERRORS: dict[Quality, GridErrors] = {
    "measured": GridErrors(level_sd=0.039),
    "estimated": GridErrors(level_sd=0.1),
    "forecast": GridErrors(terms=((0.34, 48.0),)),
}
MEASURED, ESTIMATED, FORECAST = (QUALITIES.index(quality) for quality in ("measured", "estimated", "forecast"))


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """Intensities of one zone and family; hours that nobody knows are absent.

    Attributes:
        zone: Grid zone, or "" where a file names none.
        name: Provider or file, for messages.
        family: What kind of intensity it is.
        source: Name and version of the data, for the statement.
        starts_s: Begin of each interval, POSIX seconds, rising. Shape (n,).
        ends_s: End of each; before the next begin where something is missing. Shape (n,).
        grams_per_kwh: Intensity of each. [gCO2e/kWh] Shape (n,).
        quality: Index into QUALITIES of each. Shape (n,).
        retrieved_on: Date on which the data were fetched, ISO, or "".
        notes: Slug and text of what was left out or looks odd.
    """

    zone: str
    name: str
    family: Family
    source: str
    starts_s: Array
    ends_s: Array
    grams_per_kwh: Array
    quality: NDArray[np.int8]
    retrieved_on: str = ""
    notes: Notes = field(default=())

    def __post_init__(self) -> None:
        if not self.starts_s.shape == self.ends_s.shape == self.grams_per_kwh.shape == self.quality.shape:
            raise ValueError(f"arrays of {self.name} are of unequal length")
        if np.any(self.ends_s <= self.starts_s) or np.any(self.starts_s[1:] < self.ends_s[:-1]):
            raise BadSeries(f"times of {self.name} do not rise")
        if not np.all(np.isfinite(self.grams_per_kwh)) or np.any(self.grams_per_kwh < 0):
            raise BadSeries(f"intensities of {self.name} are not finite and positive")

    def within(self, start_s: float, end_s: float) -> "Readings":
        """The part inside a period, intervals cut at its ends."""
        inside = (self.ends_s > start_s) & (self.starts_s < end_s)
        return replace(
            self,
            starts_s=np.maximum(self.starts_s[inside], start_s),
            ends_s=np.minimum(self.ends_s[inside], end_s),
            grams_per_kwh=self.grams_per_kwh[inside],
            quality=self.quality[inside],
        )

    def series(self, zone: str, start_s: float, end_s: float, fill: Fill | None = None) -> IntensitySeries:
        """A series over a period; missing hours are filled aloud or refused.

        Args:
            zone: Zone of the run where the readings name none.
            start_s: Begin, POSIX seconds.
            end_s: End, POSIX seconds; a period shorter than a second is taken as one second.
            fill: Where missing hours are taken from; without it they are an error.

        Raises:
            GridGap: Hours are missing and cannot be filled.
        """
        place, end_s = self.zone or zone, max(end_s, start_s + 1.0)
        own = self.within(start_s, end_s)
        starts, grams, quality = [own.starts_s], [own.grams_per_kwh], [own.quality]
        errors = {QUALITIES[q]: ERRORS[QUALITIES[q]] for q in np.unique(own.quality).tolist()}
        notes = [*self.notes, *own._said(place)]
        gaps = holes(own.starts_s, own.ends_s, start_s, end_s)
        for begin_s, until_s in gaps:
            filling = self._filling(place, begin_s, until_s, fill)
            count = int(np.searchsorted(filling.edges_s[:-1], until_s))  # a profile lasts a second at least, a hole may be shorter
            starts.append(filling.edges_s[:count])
            grams.append(filling.grams_per_kwh[:count])
            quality.append(filling.quality[:count])
            errors |= filling.errors
            notes += [note for note in filling.notes if note[0] != "typical-profile" and note not in notes]
        if gaps:
            missing = hours(sum(until - begin for begin, until in gaps))
            notes.append(("grid-gap-filled", f"{missing:.3g} h missing from {self.name} were taken from the typical profile of {place}"))
        at = np.concatenate(starts)
        order = np.argsort(at, kind="stable")
        return IntensitySeries(
            zone=place or "not stated",
            edges_s=np.append(at[order], end_s),
            grams_per_kwh=np.concatenate(grams)[order],
            quality=np.concatenate(quality)[order].astype(np.int8),
            errors=errors,
            family=self.family,
            source=self.source,
            retrieved_on=self.retrieved_on,
            notes=tuple(notes),
        )

    def stretch(self, *, is_last: bool) -> IntensitySeries | None:
        """The first or the last stretch without a hole as a series, or None of nothing."""
        if not self.starts_s.size:
            return None
        breaks = np.flatnonzero(self.ends_s[:-1] < self.starts_s[1:])
        if is_last:
            start_s, end_s = self.starts_s[breaks[-1] + 1 if breaks.size else 0], self.ends_s[-1]
        else:
            start_s, end_s = self.starts_s[0], self.ends_s[breaks[0] if breaks.size else -1]
        return self.series(self.zone, float(start_s), float(end_s))

    def _said(self, place: str) -> Notes:
        """Notes on hours that were estimated or forecast by the provider."""
        seconds = [float(np.sum((self.ends_s - self.starts_s)[self.quality == q])) for q in (ESTIMATED, FORECAST)]
        return tuple(
            (slug, f"the provider {did} {hours(s):.3g} h of {place or self.name}")
            for slug, did, s in (("grid-estimated", "estimated", seconds[0]), ("grid-forecast", "forecast", seconds[1]))
            if s
        )

    def _filling(self, zone: str, start_s: float, end_s: float, fill: Fill | None) -> IntensitySeries:
        """What stands in for missing hours.

        Raises:
            GridGap: Nothing may.
        """
        where = f"{self.name} does not cover it"
        if fill is None:
            raise GridGap(zone or self.name, start_s, end_s, f"{where}; use a source that covers the whole run")
        if not zone:
            way_out = f"{where}; give the zone with --zone and the gap can be filled from its typical profile"
            raise GridGap(self.name, start_s, end_s, way_out)
        try:
            filling = fill(zone, start_s, end_s)
        except UnknownZone as error:
            raise GridGap(zone, start_s, end_s, f"{where}, and there is no typical profile of {zone}") from error
        if filling.family != self.family:
            kinds = f"the typical profile ({filling.family}) is of another family than {self.name} ({self.family})"
            raise GridGap(zone, start_s, end_s, f"{where}, and {kinds}")
        return filling


def joined(parts: Sequence[Readings]) -> Readings:
    """Readings of several answers together; where two know the same moment the later part wins.

    Raises:
        FamilyMix: They are of two families.
        BadSeries: They are of two zones.
    """
    first = parts[0]
    for part in parts[1:]:
        if part.family != first.family:
            raise FamilyMix(f"{first.name} ({first.family})", f"{part.name} ({part.family})")
        if part.zone != first.zone:
            raise BadSeries(f"{first.name} of zone {first.zone} and {part.name} of zone {part.zone} are not one series")
    starts = np.concatenate([part.starts_s for part in parts])
    _, last = np.unique(starts[::-1], return_index=True)
    keep = starts.size - 1 - last
    ends = np.concatenate([part.ends_s for part in parts])[keep]
    ends[:-1] = np.minimum(ends[:-1], starts[keep][1:])
    return replace(
        first,
        source="; ".join(dict.fromkeys(part.source for part in parts)),
        starts_s=starts[keep],
        ends_s=ends,
        grams_per_kwh=np.concatenate([part.grams_per_kwh for part in parts])[keep],
        quality=np.concatenate([part.quality for part in parts])[keep],
        retrieved_on=min((part.retrieved_on for part in parts if part.retrieved_on), default=""),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def holes(begins: Array, ends: Array, start_s: float, end_s: float) -> list[tuple[float, float]]:
    """Stretches of a period that no interval covers, POSIX seconds."""
    opens = np.append(start_s, ends)
    closes = np.append(begins, end_s)
    return [(float(a), float(b)) for a, b in zip(opens, closes, strict=True) if b > a]
