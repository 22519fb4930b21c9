"""Where a run happened: what was said, by whom, and what to do when nobody said anything."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from carbonreport.errors import BadPue, PlaceError, SiteError, UnknownZone
from carbonreport.grid.zones import WORLD_ZONE, country_of_time_zone, resolve_zone, time_zone_of
from carbonreport.model.notes import Note
from carbonreport.model.pue import PueProfile, pue_from_text, pue_of_class
from carbonreport.model.run import Place, RunRecord

if TYPE_CHECKING:
    from carbonreport.site import Site

ZONE_VARIABLE = "CARBONREPORT_ZONE"
PUE_VARIABLE = "CARBONREPORT_PUE"
SITE_VARIABLE = "CARBONREPORT_SITE"
DEFAULT_PUE_CLASS = "datacentre"
_GUESS = "guessed from the time zone "


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """PLACE as the caller gave it, texts unread.

    Attributes:
        zone: Grid zone, or None.
        pue: Number, range or class, or None.
        grid: "embedded", a CSV file or the name of a source, or None.
        site: Site file, or None.
    """

    zone: str | None = None
    pue: str | None = None
    grid: str | None = None
    site: str | None = None


@dataclass(frozen=True, slots=True)
class RenderPlace:
    """Everything that charging a run needs to know of its place, and notes on what was assumed."""

    zone: str
    is_guessed: bool
    pue: PueProfile
    time_zone: str
    site: str | None
    notes: tuple[Note, ...]


def site_of(options: PlaceOptions, environ: Mapping[str, str], folder: Path) -> "Site | None":
    """The site file's content: from the option, the environment, or the working folder; None without one.

    Raises:
        SiteError: It cannot be read, or a field is wrong.
        PlaceError: An option is empty.
    """
    _refuse_empty(options)
    given = options.site or environ.get(SITE_VARIABLE)
    if given is None and not (folder / "carbonreport.toml").is_file():
        return None
    from carbonreport.site import find_site, read_site

    site = read_site(find_site(given, folder))
    if site.time_zone is not None and not is_time_zone(site.time_zone):
        raise SiteError(f"{site.path}: place.time_zone: unknown time zone {site.time_zone!r}; give an IANA name such as Europe/Berlin")
    _site_zone(site)
    return site


def _refuse_empty(options: PlaceOptions) -> None:
    """An option that was given and is empty is a variable of a shell that nobody set; it must not become a default."""
    for field in fields(options):
        text = getattr(options, field.name)
        if text is not None and not text.strip():
            raise PlaceError(f"--{field.name} is empty; give a value, or leave it out")


def recording_place(options: PlaceOptions, site: "Site | None", environ: Mapping[str, str], host_time_zone: str | None) -> Place:
    """What is known of the place while recording; the only moment at which a zone may be guessed.

    Raises:
        UnknownZone: No such grid zone.
        BadPue: No such PUE.
    """
    zone, source = _said_zone(options, site, environ)
    if zone is None and host_time_zone is not None:
        country = country_of_time_zone(host_time_zone)
        zone, source = (country, _GUESS + host_time_zone) if country else (None, "")
    pue = _said_pue(options, site, environ)
    time_zone = (site.time_zone if site else None) or host_time_zone or (time_zone_of(zone) if zone else None)
    return Place(zone, source, time_zone, pue, site.name if site else None)


def rendering_place(run: RunRecord, options: PlaceOptions, site: "Site | None", environ: Mapping[str, str]) -> RenderPlace:
    """Option > record > site file > environment > guess of the record > world average.

    Raises:
        UnknownZone: No such grid zone.
        BadPue: No such PUE.
    """
    place = run.place
    was_guessed = place.zone_source.startswith(_GUESS)
    recorded = None if was_guessed or place.zone is None else place.zone
    zone = _resolved(options.zone) or _recorded_zone(recorded, run) or _site_zone(site) or _variable_zone(environ)
    is_guessed = zone is None and place.zone is not None
    notes: list[Note] = []
    if zone is None and place.zone is not None:
        zone = place.zone
        notes.append(Note("zone-guessed", f"nobody gave a grid zone; {zone} was {place.zone_source}"))
    if zone is None:
        zone = WORLD_ZONE
        notes.append(Note("zone-unknown", "nobody gave a grid zone; the world average was used"))
    pue = _option_pue(options.pue) or place.pue or (site.pue if site else None) or _variable_pue(environ)
    if pue is None:
        pue = pue_of_class(DEFAULT_PUE_CLASS)
        notes.append(Note("pue-assumed", f"nobody gave a PUE; {pue.value:g} of an unknown data centre was used"))
    return RenderPlace(zone, is_guessed, pue, _time_zone(place, options, zone), place.site or (site.name if site else None), tuple(notes))


def _time_zone(place: Place, options: PlaceOptions, zone: str) -> str:
    """Time zone for the dates: the host's, unless somebody says now that it was elsewhere, or its name means nothing here."""
    hosts = place.time_zone if options.zone is None else None
    return next((name for name in (hosts, time_zone_of(zone)) if name and is_time_zone(name)), "UTC")


def is_time_zone(name: str) -> bool:
    """Whether this machine knows a time zone of that name."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a name such as "../x" or that of a folder
        return False
    return True


def _said_zone(options: PlaceOptions, site: "Site | None", environ: Mapping[str, str]) -> tuple[str | None, str]:
    if zone := _resolved(options.zone):
        return zone, "option"
    if zone := _site_zone(site):
        return zone, "site file"
    if zone := _variable_zone(environ):
        return zone, "environment"
    return None, ""


def _said_pue(options: PlaceOptions, site: "Site | None", environ: Mapping[str, str]) -> PueProfile | None:
    return _option_pue(options.pue) or (site.pue if site else None) or _variable_pue(environ)


def _option_pue(text: str | None) -> PueProfile | None:
    if not text:
        return None
    if text.lower().endswith(".csv") or os.sep in text:
        from carbonreport.pue_file import read_pue

        return read_pue(Path(text))
    from carbonreport.cloud import is_region, pue_of_region

    return pue_of_region(text) if is_region(text) else pue_from_text(text.strip().lower())


def _variable_pue(environ: Mapping[str, str]) -> PueProfile | None:
    try:
        return _option_pue(environ.get(PUE_VARIABLE))
    except BadPue as error:
        raise BadPue(f"environment variable {PUE_VARIABLE}: {error}") from error


def _resolved(text: str | None) -> str | None:
    return resolve_zone(text) if text else None


def _recorded_zone(zone: str | None, run: RunRecord) -> str | None:
    try:
        return _resolved(zone)
    except UnknownZone as error:
        raise PlaceError(f"{run.source or run.name}: {error}; give --zone") from error


def _site_zone(site: "Site | None") -> str | None:
    try:
        return _resolved(site.zone) if site else None
    except UnknownZone as error:
        raise SiteError(f"{site.path if site else ''}: place.zone: {error}") from error


def _variable_zone(environ: Mapping[str, str]) -> str | None:
    try:
        return _resolved(environ.get(ZONE_VARIABLE))
    except UnknownZone as error:
        raise PlaceError(f"environment variable {ZONE_VARIABLE}: {error}") from error
