"""A deadline that follows from the working week, by the clock of the place where the job would run."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from carbonreport.model.run import RunRecord
from carbonreport.recommend.deadlines import DEADLINES
from carbonreport.workflows.candidate import place_of
from carbonreport.workflows.place import PlaceOptions

RULES = tuple(DEADLINES)


@dataclass(frozen=True, slots=True)
class Deadline:
    """By when a job must have ended.

    Attributes:
        at_s: The moment. [POSIX s]
        end_s: When the job would end if it started at once. [POSIX s]
        rule: Key of DEADLINES.
        zone: Grid zone of the place.
        time_zone: IANA name of its clock.
    """

    at_s: float
    end_s: float
    rule: str
    zone: str
    time_zone: str

    @property
    def words(self) -> str:
        """The moment and where it is from, for the user."""
        clock = f"by the clock of {self.time_zone} (zone {self.zone}), holidays not known"
        if self.at_s == self.end_s:
            return f"--deadline {self.rule} is {self._moment(self.at_s)}, {clock}: started at once it ends within the hours of work"
        return f"--deadline {self.rule} is {self._moment(self.at_s)}, {clock}; started at once it ends {self._moment(self.end_s)}"

    def _moment(self, at_s: float) -> str:
        return datetime.fromtimestamp(at_s, UTC).astimezone(ZoneInfo(self.time_zone)).isoformat(timespec="minutes")


def deadline_by(
    rule: str, end_s: float, options: PlaceOptions, like: RunRecord | None = None, environ: Mapping[str, str] = os.environ
) -> Deadline:
    """The deadline of a job that would end at a moment.

    Args:
        rule: Key of DEADLINES.
        end_s: When it would end if it started at once. [POSIX s]
        options: Where.
        like: The run that it is like, whose place counts where options name none.
        environ: Names a zone or a site file where nobody else does.

    Raises:
        PlaceError: Nobody says where.
    """
    place = place_of(options, like, environ)
    return Deadline(DEADLINES[rule](end_s, place.time_zone), end_s, rule, place.zone, place.time_zone)
