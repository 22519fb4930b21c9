"""By when somebody wants a result who works by day: deadlines that follow from when a job would end if it started now. Pure.

The two rules are those of Wiesner et al. 2021 (arXiv 2110.13234): a result that would come at night or at a weekend is not missed before the next
morning of work; one that is looked at twice a week not before the next Monday or Thursday morning. Holidays are not known here.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

MORNING, EVENING = time(9), time(17)
_WORKDAYS = frozenset(range(5))  # Monday to Friday
_MONDAY_AND_THURSDAY = frozenset({0, 3})
_DAYS_A_WEEK = 7


def next_workday(end_s: float, time_zone: str) -> float:
    """The end itself from 9:00 to 17:00 of a workday, else the next 9:00 of a workday. [POSIX s]

    Args:
        end_s: When the job would end if it started at once. [POSIX s]
        time_zone: IANA name of the clock by which people work.
    """
    local = _local(end_s, time_zone)
    if local.weekday() in _WORKDAYS and MORNING <= local.time() <= EVENING:
        return end_s
    return _next_morning(local, _WORKDAYS)


def semi_weekly(end_s: float, time_zone: str) -> float:
    """The next 9:00 of a Monday or a Thursday. [POSIX s]

    Args:
        end_s: When the job would end if it started at once. [POSIX s]
        time_zone: IANA name of the clock by which people work.
    """
    return _next_morning(_local(end_s, time_zone), _MONDAY_AND_THURSDAY)


DEADLINES: Mapping[str, Callable[[float, str], float]] = {"next-workday": next_workday, "semi-weekly": semi_weekly}


def _local(at_s: float, time_zone: str) -> datetime:
    return datetime.fromtimestamp(at_s, UTC).astimezone(ZoneInfo(time_zone))


def _next_morning(local: datetime, weekdays: frozenset[int]) -> float:
    """The first 9:00 of one of these days of the week that is not before a moment. [POSIX s]"""
    days = (local.date() + timedelta(days=ahead) for ahead in range(_DAYS_A_WEEK + 1))
    mornings = (datetime.combine(day, MORNING, local.tzinfo).timestamp() for day in days if day.weekday() in weekdays)
    return next(at_s for at_s in mornings if at_s >= local.timestamp())
