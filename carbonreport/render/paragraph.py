"""The paragraph: what ran, what it drew, what the facility used, what was emitted, and how sure that is."""

from collections.abc import Sequence

from carbonreport.model.footprint import ChargedRun, Footprint
from carbonreport.model.statement import Sentence
from carbonreport.render.caps import settings_of
from carbonreport.render.paragraph_carbon import embodied, emissions, market, water
from carbonreport.render.paragraph_certainty import how_sure, made_by
from carbonreport.render.paragraph_energy import facility, what_it_drew
from carbonreport.render.paragraph_purpose import per_item, preparation, project
from carbonreport.render.paragraph_ran import what_ran
from carbonreport.render.setting import Group, Setting, is_timeless, is_unread


def paragraph(footprint: Footprint, runs: Sequence[ChargedRun], groups: Sequence[Group], setting: Setting) -> tuple[Sentence, ...]:
    """The statement proper, in sentences."""
    sentences = [what_ran(footprint, runs, groups, setting)]
    if is_unread(footprint):
        return (*sentences, Sentence(nothing_read(footprint)), made_by(setting))
    if footprint.run_seconds == 0:
        return (*sentences, Sentence("It has no length, so that there is nothing to charge."), made_by(setting))
    sentences += [what_it_drew(footprint, runs), *settings_of(runs), facility(footprint, runs), emissions(footprint, setting, runs)]
    sentences += [
        *market(footprint),
        *embodied(footprint),
        *water(footprint),
        *per_item(groups),
        *preparation(groups),
        *project(footprint, setting),
    ]
    return (*sentences, how_sure(footprint, setting))


def nothing_read(footprint: Footprint) -> str:
    """The sentence that stands where the energy would."""
    time = "how long it ran nor " if is_timeless(footprint) else ""
    return f"No energy could be read, so that neither {time}energy nor emissions can be stated."
