"""`carbonreport when`: when, where and how to run a job, or that it is not worth it."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from carbonreport.cli.moments import HoursOfDay, Moment, MomentOrRule, Seconds
from carbonreport.cli.place import place_options
from carbonreport.workflows.place import PlaceOptions

if TYPE_CHECKING:
    from carbonreport.model.run import RunRecord
    from carbonreport.workflows.caps import Swept
    from carbonreport.workflows.when import Answer

_NO_CAP = "sweep-no-cap"
_RULES = ("next-workday", "semi-weekly")
_AVERAGE = "This is a difference in average intensity; the change in what power plants burn can be smaller or of the other sign."


@click.command("when")
@click.option("--like", type=click.Path(path_type=Path), metavar="RECORD", help="A job like this run: its length and its power over time.")
@click.option("--hours", type=float, metavar="H", help="Length of the job.")
@click.option("--kw", type=float, metavar="P", help="Its mean power at the IT equipment.")
@click.option("--slack", type=Seconds(), metavar="24h", help="How much later than now it may end. [default: 24h]")
@click.option(
    "--deadline",
    type=MomentOrRule(_RULES),
    metavar="T",
    help=f"By when it must have ended; or {' or '.join(_RULES)}: the next morning, by the zone's clock, on which somebody would look at it.",
)
@click.option("--earliest", type=Moment(), metavar="T", help="First moment. [default: now]")
@click.option("--hours-allowed", type=HoursOfDay(), metavar="18-8", help="Hours of the zone's day in which it may run.")
@click.option("--pauses", type=click.IntRange(0, 1000), default=0, show_default=True, metavar="K", help="How often it may pause.")
@click.option("--pause-cost", type=Seconds(), default=300.0, metavar="5min", help="What each pause costs at full power. [default: 5min]")
@click.option(
    "--idle-kw", type=click.FloatRange(0), default=0.0, metavar="P", help="What reserved equipment draws while it waits or pauses."
)
@click.option("--busy", type=click.Path(path_type=Path), metavar="CSV", help="Periods in which it cannot run: columns from,to.")
@click.option("--gpu", metavar="NAME", help="Its board: power caps that others reported of that kind are priced too.")
@click.option(
    "--workload", type=click.Choice(("training", "inference")), help="What was reported: training or inference. [default: training]"
)
@click.option(
    "--sweep", type=click.Path(path_type=Path), metavar="FILE.json", help="Your own sweep of power caps, instead of what others reported."
)
@click.option("--gpu-share", type=click.FloatRange(0, 1, min_open=True), metavar="S", help="Part of --kw that the GPUs draw. [default: 1]")
@click.option(
    "--slowdown", type=click.FloatRange(0), metavar="PERCENT", help="How much longer a cap may make it. [default: to the deadline]"
)
@click.option("--season", is_flag=True, help="Price other months too; without a PUE by month they are of low confidence.")
@click.option("--marginal", metavar="FILE,…", help="Marginal intensities of each --zone, or watttime: whether both signals agree.")
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE.svg", help="Draw what each start would cost, and what a delay saves."
)
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
@place_options()
def command(
    like: Path | None,
    hours: float | None,
    kw: float | None,
    slack: float | None,
    deadline: float | str | None,
    earliest: float | None,
    hours_allowed: tuple[int, int] | None,
    pauses: int,
    pause_cost: float,
    idle_kw: float,
    busy: Path | None,
    gpu: str | None,
    workload: str | None,
    sweep: Path | None,
    gpu_share: float | None,
    slowdown: float | None,
    season: bool,
    marginal: str | None,
    plot: Path | None,
    as_json: bool,
    place: PlaceOptions,
) -> None:
    """Say when, where and how to run a job: --zone DE,FR,aws:eu-north-1 names its home first and then others."""
    from carbonreport.workflows.ask import Ask, busy_periods, job_like, job_of
    from carbonreport.workflows.when import DEFAULT_SLACK_H, plan

    if like is None and (hours is None or kw is None):
        raise click.UsageError("give --like RECORD, or --hours and --kw")
    if like is not None and (hours is not None or kw is not None or gpu_share is not None):
        raise click.UsageError("--like already says length, power and the share of the GPUs; leave out --hours, --kw and --gpu-share")
    if slack is not None and deadline is not None:
        raise click.UsageError("--slack and --deadline say the same; give one")
    if gpu is not None and sweep is not None:
        raise click.UsageError("--sweep is your own curve and --gpu that of others; give one")
    if plot is not None and plot.suffix.lower() != ".svg":
        raise click.UsageError(f"--plot writes SVG: {plot} must end in .svg")
    if workload is not None and sweep is not None:
        raise click.UsageError("--workload chooses among what others reported; leave it out with --sweep")
    near = PlaceOptions((place.zone or "").split(",")[0].strip() or None, place.pue, place.grid, place.site)
    job, record = job_like(like, near) if like is not None else (job_of(hours or 0.0, kw or 0.0), None)
    begin_s = time.time() if earliest is None else earliest
    home, *others = [zone.strip() for zone in (place.zone or "").split(",")]
    where = PlaceOptions(home if place.zone is not None else None, place.pue, place.grid, place.site)
    if isinstance(deadline, str):
        end_s = _by_rule(deadline, begin_s + job.seconds, where, record)
    else:
        end_s = deadline if deadline is not None else begin_s + job.seconds + (DEFAULT_SLACK_H * 3600 if slack is None else slack)
    if end_s < begin_s + job.seconds:
        raise click.UsageError("the job cannot end before the deadline: it is longer than the time that is left")
    caps = _caps(record, gpu, workload, sweep)
    share = _gpu_share(record, gpu_share)
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
        caps=caps.points if share is not None else (),
        gpu_share=0.0 if share is None else share,
        most_time_ratio=float("inf") if slowdown is None else 1 + slowdown / 100,
        with_season=season,
        marginal=() if marginal is None else tuple(part.strip() for part in marginal.split(",")),
    )
    answer = plan(ask, where, like=record)
    if caps.in_words is not None:
        answer = replace(answer, notes=(*answer.notes, (_NO_CAP, caps.in_words)))
    if caps.points and share is None:
        answer = replace(answer, notes=(*answer.notes, (_NO_CAP, "no cap was compared: the run's record does not say what its GPUs drew")))
    if plot is not None:
        from carbonreport.workflows.when_picture import write_picture

        write_picture(answer, plot)
    if as_json:
        from carbonreport.cli.when_object import answer_object
        from carbonreport.render.formats.json import dumps

        click.echo(dumps(answer_object(answer, end_s, deadline if isinstance(deadline, str) else None)), nl=False)
        return
    _print(answer)


def _by_rule(rule: str, end_s: float, where: PlaceOptions, record: "RunRecord | None") -> float:
    """The moment that a rule makes of the end of the job, echoed. [POSIX s]"""
    from carbonreport.workflows.deadline import deadline_by

    found = deadline_by(rule, end_s, where, record)
    click.echo(f"carbonreport: {found.words}", err=True)
    return found.at_s


def _caps(record: "RunRecord | None", gpu: str | None, workload: str | None, sweep: Path | None) -> "Swept":
    """The user's own curve, else that of the named board, else that of the record's board if the table has it."""
    from carbonreport.workflows.caps import Swept, caps_like, reported_caps, swept_caps

    if sweep is not None:
        return swept_caps(sweep)
    if gpu is not None:
        return Swept(reported_caps(gpu, workload or "training"))
    return Swept(() if record is None else caps_like(record, workload))


def _gpu_share(record: "RunRecord | None", given: float | None) -> float | None:
    """Part of the job's power that its GPUs draw; None where its record does not say."""
    from carbonreport.workflows.caps import gpu_share_of

    if record is None:
        return 1.0 if given is None else given
    return gpu_share_of(record)


def _print(answer: "Answer") -> None:
    from carbonreport.cli.tables import saved_in_words, when_table
    from carbonreport.render.words import clock_name

    click.echo(when_table(answer), nl=False)
    click.echo(f"{answer.verdict}: {answer.because}")
    best = answer.best
    if best is not None:
        click.echo(saved_in_words(answer, best))
        if best.action != "cap":
            click.echo(_AVERAGE)
        local = datetime.fromtimestamp(best.start_s, UTC).astimezone()
        if best.cap_watts is not None:
            click.echo(
                f"    carbonreport run --power-cap {best.cap_watts:g} -- …    (needs the right to set caps: carbonreport doctor; taken back at the end)"
            )
        if best.start_s > answer.now.start_s:
            click.echo(f"start it by this machine's clock, {clock_name(local)}, with one of:")
            click.echo(f"    sbatch --begin={local:%Y-%m-%dT%H:%M} …")
            click.echo(f"    at -t {local:%Y%m%d%H%M}")
            click.echo(f"    cron: {local:%M %H %d %m} *    (fires every year: take it out afterwards)")
    told = best or answer.shift
    second = None if told is None or told.runs == answer.now.runs else answer.second(told)
    if second is not None:
        click.echo(second.line)
    for slug, text in answer.notes:
        click.echo(f"{slug}: {text}")
