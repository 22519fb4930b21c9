"""PUE of a run's own hours: what its site's model makes of the weather, and the annual value, aloud, where no weather is known."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from carbonreport.combine.pue_fit import by_hours, fit, refuse_implausible
from carbonreport.grid.beside import Kept
from carbonreport.grid.openmeteo import OpenMeteo, Spot, create
from carbonreport.model.notes import Note
from carbonreport.model.pue import PueProfile
from carbonreport.model.pue_model import PueHours, PueModel, is_modelled
from carbonreport.model.run import RunRecord
from carbonreport.render.digits import duration
from carbonreport.site import Site
from carbonreport.workflows.place import RenderPlace


def hourly_pue(run: RunRecord, place: RenderPlace, site: Site, kept: Kept | None) -> tuple[PueProfile, tuple[Note, ...]]:
    """The PUE of a run's hours with what must be said of it; one without a model stays as it is.

    Args:
        run: Whose hours.
        place: Its place; `pue` is the annual value of a model.
        site: Content of the site file, which may hold the model with a file of temperatures.
        kept: What lies beside the record, or None.
    """
    annual = place.pue
    if not is_modelled(annual):
        return annual, ()
    hours = _known(run, annual, site, kept)
    if hours is None:
        because = "; what is kept beside the record is of another model" if kept is not None and kept.pue is not None else ""
        return annual, (_without(run, annual, run.duration_s, because),)
    profile, missing_s = by_hours(annual, hours, run.started_s, run.ended_s)
    whole_s = max(run.duration_s, 1.0)
    notes = [] if missing_s >= whole_s else [Note("pue-modelled", _said(hours))]
    return profile, (*notes, *([_without(run, annual, missing_s, "")] if missing_s > 0 else []))


def _known(run: RunRecord, annual: PueProfile, site: Site, kept: Kept | None) -> PueHours | None:
    """What the model says of the hours whose weather is known: as kept beside the record, else by the site's file of temperatures."""
    if kept is not None and kept.pue is not None and kept.pue.model == annual.source:
        return kept.pue
    model = site.pue_model
    if model is None or model.weather is None or site.pue != annual:
        return None
    return fit(model, model.weather).hours(model.weather.within(run.started_s, max(run.ended_s, run.started_s + 1.0)))


def _without(run: RunRecord, annual: PueProfile, missing_s: float, because: str) -> Note:
    text = f"no weather is known for {duration(missing_s)} of “{run.name}”{because}; the annual PUE of {annual.value:.2f} was used"
    return Note("pue-no-weather", f"{text} (carbonreport refresh fetches it, with the site file)")


def _said(hours: PueHours) -> str:
    fetched = f", fetched on {hours.retrieved_on}" if hours.retrieved_on else ""
    fitted = f", fitted on {hours.basis}" if hours.basis else ""
    low, high = (f"{(factor - 1) * 100:+.0f}".replace("-", "−") for factor in hours.factors)
    return (
        f"the PUE of each hour is that of a {hours.model}{fitted}, at the weather of {hours.weather}{fetched}; "
        f"how far such a model is off has not been measured, {low} to {high}\u00a0% is assumed"
    )


def fetched_hours(
    run: RunRecord, model: PueModel, environ: Mapping[str, str], *, offline: bool = False, source: OpenMeteo | None = None
) -> PueHours:
    """PUE of a run's hours by its site's model, the weather fetched or out of the site's file.

    Raises:
        FetchError: The weather could not be had.
        BadPue: The year's weather does not bear out the two numbers.
    """
    end_s = max(run.ended_s, run.started_s + 1.0)
    if model.weather is not None:
        return fit(model, model.weather).hours(model.weather.within(run.started_s, end_s))
    latitude, longitude = model.spot or (math.nan, math.nan)  # a model without a file has it
    spot = Spot(latitude, longitude, model.bulb)
    source = source or create(environ, offline=offline)
    year = None
    if model.by_season:  # the calendar year before the run: whole, settled, and the same for all runs of a year
        before = datetime.fromtimestamp(run.started_s, UTC).year - 1
        year = source.weather(spot, *(datetime(y, 1, 1, tzinfo=UTC).timestamp() for y in (before, before + 1)))
    found = fit(model, year)
    if year is not None:
        refuse_implausible(found, year)
    return found.hours(source.weather(spot, run.started_s, end_s))
