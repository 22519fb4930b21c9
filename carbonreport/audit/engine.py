"""One year in a DuckDB that holds the tables of the ledger: the aggregations are written once, with Ibis, each in a file of its own."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from carbonreport.audit import asides, pricing
from carbonreport.audit import hourly as by_hour
from carbonreport.audit.groups import NOBODY as NOBODY
from carbonreport.audit.groups import THERE, energies_by, groups_of, held_by_month, missing_of, renamed
from carbonreport.audit.pieces import Found
from carbonreport.audit.queries import Queries
from carbonreport.audit.reconcile import reconcile
from carbonreport.audit.top import top_jobs
from carbonreport.audit.window import Window
from carbonreport.model.audit import DIMENSIONS, Energy, Finding, Group, Year, agreed
from carbonreport.model.series import Array


class Engine:
    """A year: first reconciled, then priced, then grouped."""

    def __init__(self, con: Any, window: Window) -> None:
        self._db, self.window = Queries(con), window
        self._found: tuple[Found, ...] = ()

    def reconcile(self, rated_watts: Callable[[str], float | None], default_board: str = "") -> None:
        """Find out whose the energy is."""
        self._found = reconcile(self._db.con, self.window, rated_watts, default_board)

    def has_jobs(self) -> bool:
        """Whether any job touches the window."""
        return bool(self._db.con.execute("SELECT count(*) FROM audit_jobs").fetchall()[0][0])

    def hourly(self) -> dict[tuple[str, str], Array]:
        """Energy of each UTC hour of the window, by how it is known and with what method. [J] Shape (n,) each."""
        return by_hour.hourly(self._db, self.window)

    def hourly_joules(self) -> Array:
        """Energy of each UTC hour of the window, however it is known. [J] Shape (n,)."""
        total: Array = np.sum([np.zeros(by_hour.count_hours(self.window)), *self.hourly().values()], axis=0)
        return total

    def weekday_hours(self, joules: Array) -> Array:
        """Energy of each UTC hour by local weekday, Monday first, and hour. [J] Shape (n,) to (7, 24)."""
        return by_hour.weekday_hours(joules, self.window)

    def price(self, edges_s: Array, pue: Array, grams_per_kwh: Array) -> None:
        """Give every piece its facility energy and emissions, moment by moment. Shape (n + 1,), (n,), (n,)."""
        pricing.price(self._db, self.window, edges_s, pue, grams_per_kwh)

    def year(self, people: Callable[[str, bool], str]) -> Year:
        """The groups.

        Args:
            people: How a person of the ledger is written in the report: (text, is it a pseudonym).
        """
        db = self._db
        jobs = held_by_month(db)
        groups = {dimension: groups_of(db, jobs, dimension) for dimension in DIMENSIONS}
        groups["person"] = renamed(db.con, groups["person"], people)
        priced = db.table("audit_priced")
        by_use = {str(use): energy for use, energy in energies_by(db, priced, "use").items()}
        unattributed = energies_by(db, priced.filter(priced.use == "unattributed"), "why")
        (whole,) = groups_of(db, jobs.mutate(everything=db.ibis.literal("all jobs")), "everything") or (
            Group("all jobs", 0, 0, 0, 0, Energy()),
        )
        months = energies_by(db, priced, "month")
        idle_us, room_us, busy_us = db.con.execute(
            "SELECT coalesce(sum(greatest(room_us - held_us, 0)), 0), coalesce(sum(room_us), 0), coalesce(sum(least(room_us, held_us)), 0) FROM audit_use"
        ).fetchall()[0]
        return Year(
            groups=groups,
            months=tuple((month, months.get(month, Energy())) for month in self.window.months),
            jobs=whole,
            idle=by_use.get("idle", Energy()),
            unattributed=tuple(sorted(unattributed.items())),
            idle_gpu_us=int(idle_us),
            metered_gpu_us=int(room_us),
            busy_gpu_us=int(busy_us),
            top=top_jobs(db, people),
            running=_count_running(db),
            findings=tuple(Finding(f.slug, agreed(f.text, f.count), f.count, f.energy_mj) for f in self._found),
            missing=missing_of(db, jobs),
        )

    def spreads(self) -> Mapping[str, tuple[float, float]]:
        """How far single jobs and idle hours are from the means that stand for the unmeasured ones: 5th and 95th percentile over the mean."""
        return asides.spreads(self._db)

    def board_energy(self) -> dict[str, tuple[float, float]]:
        """Facility energy [J] and emissions [g] of jobs by board."""
        return asides.board_energy(self._db)

    def rated_energy(self) -> dict[str, int]:
        """Energy that was estimated at the rated power of boards, by board. [mJ]"""
        return asides.rated_energy(self._db)

    def short_jobs_share(self, longest_h: float) -> float:
        """Part of the jobs' energy that is of jobs shorter than so many hours."""
        return asides.short_jobs_share(self._db, longest_h)


def _count_running(db: Queries) -> int:
    (count,) = db.con.execute(f"SELECT count(*) FROM audit_jobs WHERE state IN ({', '.join(repr(s) for s in THERE)})").fetchall()[0]
    return int(count)
