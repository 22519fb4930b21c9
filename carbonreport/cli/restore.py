"""`carbonreport restore [--dry-run] [--user UID]`."""

import os

import click

from carbonreport.errors import CarbonreportError


@click.command("restore")
@click.option("--dry-run", is_flag=True, help="Say what would be put back; set nothing.")
@click.option("--user", "uid", metavar="UID", type=int, help="As root: what this user's runs left, as in the epilog of a job.")
def command(dry_run: bool, uid: int | None) -> int:
    """Put power limits and clocks back as they were before runs that ended without doing it themselves.

    Boards of runs that still live are left alone. Exit code 1 where a board could not be put back.
    """
    if not hasattr(os, "getuid"):
        raise CarbonreportError("caps and clocks are set on Linux alone: there is nothing to put back here")
    from carbonreport.workflows.restore import restore

    done = restore(os.getuid() if uid is None else uid, own_uid=os.getuid(), environ=os.environ, is_dry=dry_run)
    for one in done:
        click.echo(f"{one.outcome}: {one.text}", err=one.outcome in ("failed", "refused"))
    if not done:
        click.echo("nothing is left to put back")
    return 1 if any(one.outcome in ("failed", "refused") for one in done) else 0
