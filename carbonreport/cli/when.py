"""`carbonreport when`: when and where to run a job, or that it is not worth it."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from carbonreport.cli.moments import HoursOfDay, Moment, Seconds
from carbonreport.cli.place import place_options
from carbonreport.workflows.place import PlaceOptions

if TYPE_CHECKING:
    from carbonreport.model.option import Option
    from carbonreport.workflows.when import Answer

_AVERAGE = "This is a difference in average intensity; the change in what power plants burn can be smaller or of the other sign."


@click.command("when")
@click.option("--like", type=click.Path(path_type=Path), metavar="RECORD", help="A job like this run: its length and its power over time.")
@click.option("--hours", type=float, metavar="H", help="Length of the job.")
@click.option("--kw", type=float, metavar="P", help="Its mean power at the IT equipment.")
@click.option("--slack", type=Seconds(), metavar="24h", help="How much later than now it may end. [default: 24h]")
@click.option("--deadline", type=Moment(), metavar="T", help="By when it must have ended.")
@click.option("--earliest", type=Moment(), metavar="T", help="First moment. [default: now]")
@click.option("--hours-allowed", type=HoursOfDay(), metavar="18-8", help="Hours of the zone's day in which it may run.")
@click.option("--pauses", type=click.IntRange(0, 1000), default=0, show_default=True, metavar="K", help="How often it may pause.")
@click.option("--pause-cost", type=Seconds(), default=300.0, metavar="5min", help="What each pause costs at full power. [default: 5min]")
@click.option(
    "--idle-kw", type=click.FloatRange(0), default=0.0, metavar="P", help="What reserved equipment draws while it waits or pauses."
)
@click.option("--busy", type=click.Path(path_type=Path), metavar="CSV", help="Periods in which it cannot run: columns from,to.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
@place_options()
def command(
    like: Path | None,
    hours: float | None,
    kw: float | None,
    slack: float | None,
    deadline: float | None,
    earliest: float | None,
    hours_allowed: tuple[int, int] | None,
    pauses: int,
    pause_cost: float,
    idle_kw: float,
    busy: Path | None,
    as_json: bool,
    place: PlaceOptions,
) -> None:
    """Say when and where to run a job: --zone DE,FR,SE names its home first and then others."""
    from carbonreport.workflows.when import DEFAULT_SLACK_H, Ask, busy_periods, job_like, job_of, plan

    if like is None and (hours is None or kw is None):
        raise click.UsageError("give --like RECORD, or --hours and --kw")
    if like is not None and (hours is not None or kw is not None):
        raise click.UsageError("--like already says length and power; leave out --hours and --kw")
    if slack is not None and deadline is not None:
        raise click.UsageError("--slack and --deadline say the same; give one")
    job, record = job_like(like) if like is not None else (job_of(hours or 0.0, kw or 0.0), None)
    begin_s = time.time() if earliest is None else earliest
    end_s = deadline if deadline is not None else begin_s + job.seconds + (DEFAULT_SLACK_H * 3600 if slack is None else slack)
    if end_s < begin_s + job.seconds:
        raise click.UsageError("the job cannot end before the deadline: it is longer than the time that is left")
    home, *others = [zone.strip() for zone in (place.zone or "").split(",")]
    ask = Ask(
        job=job,
        earliest_s=begin_s,
        latest_end_s=end_s,
        zones=tuple(others),
        allowed_hours=hours_allowed,
        most_pauses=pauses,
        pause_s=pause_cost,
        idle_watts=idle_kw * 1000,
        closed=() if busy is None else busy_periods(busy),
    )
    answer = plan(ask, PlaceOptions(home or None, place.pue, place.grid, place.site), like=record)
    if as_json:
        from carbonreport.render.formats.json import dumps

        click.echo(dumps(_object(answer)), nl=False)
        return
    _print(answer)


def _print(answer: "Answer") -> None:
    from carbonreport.cli.tables import when_table

    click.echo(when_table(answer), nl=False)
    click.echo(f"{answer.verdict}: {answer.because}")
    best = next((option for option in answer.options if option.is_advised), None)
    if best is not None:
        click.echo(_AVERAGE)
        local = datetime.fromtimestamp(best.start_s, UTC).astimezone()
        click.echo(f"    sbatch --begin={local:%Y-%m-%dT%H:%M:%S} …")
        click.echo(f"    at -t {local:%Y%m%d%H%M}")
        click.echo(f"    cron: {local:%M %H %d %m} *")
    for slug, text in answer.notes:
        click.echo(f"{slug}: {text}")


def _object(answer: "Answer") -> dict[str, Any]:
    return {
        "now": _option(answer.now),
        "options": [_option(option) | {"advised": option.is_advised} for option in answer.options],
        "verdict": answer.verdict,
        "because": answer.because,
        "source": answer.source,
        "notes": [{"slug": slug, "text": text} for slug, text in answer.notes],
    }


def _option(option: "Option") -> dict[str, Any]:
    work_s = sum(to_s - from_s for from_s, to_s in option.runs)
    zone = ZoneInfo(option.time_zone)
    return {
        "action": option.action,
        "zone": option.zone,
        "start": {"utc": _iso(option.start_s, UTC), "local": _iso(option.start_s, zone)},
        "end": {"utc": _iso(option.end_s, UTC), "local": _iso(option.end_s, zone)},
        "runs": [[_iso(from_s, UTC), _iso(to_s, UTC)] for from_s, to_s in option.runs],
        "grams": option.grams,
        "grams_per_kwh": option.grams / (option.facility_joules / 3.6e6) if option.facility_joules else None,
        "it_joules": option.it_joules,
        "facility_joules": option.facility_joules,
        "run_seconds": work_s,
        "waits_hours": option.waits_h,
        "saving_percent": {"value": 100 * option.saving, "low": 100 * option.low, "high": 100 * option.high},
        "chance": option.chance,
        "because": option.because,
    }


def _iso(at_s: float, zone: Any) -> str:
    return datetime.fromtimestamp(at_s, UTC).astimezone(zone).isoformat(timespec="seconds")
