"""Where a run happened: what was said, by whom, and what to do when nobody said anything."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from carbonreport.errors import BadPue
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
    """
    given = options.site or environ.get(SITE_VARIABLE)
    if given is None and not (folder / "carbonreport.toml").is_file():
        return None
    from carbonreport.site import find_site, read_site

    return read_site(find_site(given, folder))


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
    zone = _resolved(options.zone) or recorded or _resolved(site.zone if site else None) or _resolved(environ.get(ZONE_VARIABLE))
    is_guessed = zone is None and place.zone is not None
    notes: list[Note] = []
    if zone is None and place.zone is not None:
        zone = place.zone
        notes.append(Note("zone-guessed", f"nobody gave a grid zone; {zone} was {place.zone_source}; give --zone to settle it"))
    if zone is None:
        zone = WORLD_ZONE
        notes.append(Note("zone-unknown", "nobody gave a grid zone; the world average was used; give --zone to settle it"))
    pue = _option_pue(options.pue) or place.pue or (site.pue if site else None) or _option_pue(environ.get(PUE_VARIABLE))
    if pue is None:
        pue = pue_of_class(DEFAULT_PUE_CLASS)
        notes.append(
            Note(
                "pue-assumed",
                f"nobody gave a PUE; {pue.value:g} of an unknown data centre was used; give --pue (1.0, or 'desktop', where there is no facility)",
            )
        )
    time_zone = place.time_zone if options.zone is None else None
    return RenderPlace(
        zone, is_guessed, pue, time_zone or time_zone_of(zone) or "UTC", place.site or (site.name if site else None), tuple(notes)
    )


def _said_zone(options: PlaceOptions, site: "Site | None", environ: Mapping[str, str]) -> tuple[str | None, str]:
    for text, source in ((options.zone, "option"), (site.zone if site else None, "site file"), (environ.get(ZONE_VARIABLE), "environment")):
        if text:
            return resolve_zone(text), source
    return None, ""


def _said_pue(options: PlaceOptions, site: "Site | None", environ: Mapping[str, str]) -> PueProfile | None:
    return _option_pue(options.pue) or (site.pue if site else None) or _option_pue(environ.get(PUE_VARIABLE))


def _option_pue(text: str | None) -> PueProfile | None:
    if not text:
        return None
    if os.sep in text or text.endswith(".csv"):
        raise BadPue(f"PUE {text!r} looks like a file; give a number (1.2), a range (1.1:1.5) or a class")
    return pue_from_text(text)


def _resolved(text: str | None) -> str | None:
    return resolve_zone(text) if text else None
