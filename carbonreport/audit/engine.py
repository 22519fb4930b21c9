"""The aggregations of an audit, written once with Ibis and run on DuckDB."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from carbonreport.audit.reconcile import OWN_CLUSTER, Found, reconcile
from carbonreport.audit.tables import HOUR_US, MJ_PER_J, US_PER_S
from carbonreport.audit.window import Window
from carbonreport.errors import MissingExtra
from carbonreport.model.audit import DIMENSIONS, Dimension, Energy, Finding, Group, TopJob, Year
from carbonreport.model.series import Array
from carbonreport.units import JOULES_PER_KWH

QUARTER_US = 900 * US_PER_S
_TOP = 15
_LOST = ("BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REQUEUED", "TIMEOUT")
_THERE = ("RUNNING", "SUSPENDED", "COMPLETING", "RESIZING")
NOBODY = "not said"


class Engine:
    """One year in a DuckDB that holds the tables of the ledger."""

    def __init__(self, con: Any, window: Window) -> None:
        try:
            ibis = import_module("ibis")
        except ImportError as error:
            raise MissingExtra("the audit", "audit") from error
        self._ibis, self._con, self.window = ibis, con, window
        self._db = ibis.duckdb.from_connection(con)
        self._found: tuple[Found, ...] = ()

    def reconcile(self, rated_watts: Callable[[str], float | None], default_board: str = "") -> None:
        """Find out whose the energy is."""
        self._found = reconcile(self._con, self.window, rated_watts, default_board)

    def hourly(self) -> dict[tuple[str, str], Array]:
        """Energy of each UTC hour of the window, by how it is known and with what method. [J] Shape (n,) each."""
        t = self._db.table("audit_pieces")
        first = self.window.from_us // HOUR_US
        count = (self.window.until_us - 1) // HOUR_US - first + 1
        t = t.mutate(
            h0=t.start_us // HOUR_US - first,
            h1=(t.end_us - 1) // HOUR_US - first,
            per_us=t.energy_mj.cast("float64") / (t.end_us - t.start_us),
        )
        inside = t.filter(t.h0 == t.h1)
        across = t.filter(t.h0 < t.h1)
        parts = {
            "inside": inside.group_by("known", "method", h=inside.h0).agg(x=inside.energy_mj.cast("float64").sum()),
            "begins": across.group_by("known", "method", h=across.h0).agg(
                x=(((across.h0 + 1 + first) * HOUR_US - across.start_us) * across.per_us).sum()
            ),
            "ends": across.group_by("known", "method", h=across.h1).agg(
                x=((across.end_us - (across.h1 + first) * HOUR_US) * across.per_us).sum()
            ),
            "up": across.group_by("known", "method", h=across.h0 + 1).agg(x=(across.per_us * HOUR_US).sum()),
            "down": across.group_by("known", "method", h=across.h1).agg(x=(across.per_us * -HOUR_US).sum()),
        }
        found: dict[tuple[str, str], Array] = {}
        steps: dict[tuple[str, str], Array] = {}
        for name, part in parts.items():
            into = steps if name in ("up", "down") else found
            for known, method, hour, millijoules in self._rows(part):
                into.setdefault((known, method), np.zeros(count))[int(hour)] += millijoules / MJ_PER_J
        for key, step in steps.items():
            found[key] = np.maximum(found.get(key, np.zeros(count)) + np.cumsum(step), 0.0)
        return found

    def hourly_joules(self) -> Array:
        """Energy of each UTC hour of the window, however it is known. [J] Shape (n,)."""
        count = (self.window.until_us - 1) // HOUR_US - self.window.from_us // HOUR_US + 1
        total: Array = np.sum([np.zeros(count), *self.hourly().values()], axis=0)
        return total

    def has_jobs(self) -> bool:
        """Whether any job touches the window."""
        return bool(self._con.execute("SELECT count(*) FROM audit_jobs").fetchall()[0][0])

    def price(self, edges_s: Array, pue: Array, grams_per_kwh: Array) -> None:
        """Give every piece its facility energy and emissions, moment by moment. Shape (n + 1,), (n,), (n,).

        The integrals of PUE and of PUE times intensity at quarter hours make it a difference of two look-ups for each piece.
        """
        base = self.window.from_us // QUARTER_US
        count = -(-self.window.until_us // QUARTER_US) - base
        ticks_s = (base + np.arange(count + 1)) * (QUARTER_US / US_PER_S)
        lengths = np.diff(edges_s)
        sums = [np.interp(ticks_s, edges_s, np.concatenate([[0.0], np.cumsum(lengths * values)])) for values in (pue, pue * grams_per_kwh)]
        # The window's ends need not be quarters: beyond them the first and last value go on.
        for cumulative, values in zip(sums, (pue, pue * grams_per_kwh), strict=True):
            cumulative += np.where(ticks_s < edges_s[0], (ticks_s - edges_s[0]) * values[0], 0.0) + np.where(
                ticks_s > edges_s[-1], (ticks_s - edges_s[-1]) * values[-1], 0.0
            )
        pyarrow = import_module("pyarrow")
        columns = {
            "q": base + np.arange(count),
            "facility": sums[0][:-1],
            "facility_slope": np.diff(sums[0]) / QUARTER_US,
            "grams": sums[1][:-1],
            "grams_slope": np.diff(sums[1]) / QUARTER_US,
        }
        self._con.register("audit_ticks_in", pyarrow.table(columns))
        self._con.execute("CREATE OR REPLACE TABLE audit_ticks AS SELECT * FROM audit_ticks_in")
        self._con.unregister("audit_ticks_in")
        months = pyarrow.table(
            {"month": list(self.window.months), "m_from": list(self.window.edges_us[:-1]), "m_until": list(self.window.edges_us[1:])}
        )
        self._con.register("audit_months_in", months)
        self._con.execute("CREATE OR REPLACE TABLE audit_months AS SELECT * FROM audit_months_in")
        self._con.unregister("audit_months_in")
        self._con.execute(f"CREATE OR REPLACE TABLE audit_priced AS {self._sql(self._priced())}")

    def _priced(self) -> Any:
        ibis = self._ibis
        pieces, months, ticks = (self._db.table(f"audit_{name}") for name in ("pieces", "months", "ticks"))
        cut = pieces.join(months, [pieces.start_us < months.m_until, pieces.end_us > months.m_from])
        cut = cut.mutate(a=ibis.greatest(cut.start_us, cut.m_from), b=ibis.least(cut.end_us, cut.m_until))
        length = (cut.end_us - cut.start_us).cast("float64")

        def upto(t: Any) -> Any:
            return (cut.energy_mj * ((t - cut.start_us) / length)).round().cast("int64")

        cut = cut.mutate(
            mj=upto(cut.b) - upto(cut.a),
            covered=(cut.covered_us * ((cut.b - cut.a) / length)).round().cast("int64"),
            qa=cut.a // QUARTER_US,
            qb=(cut.b - 1) // QUARTER_US,
        )
        begin = ticks.rename(a_facility="facility", a_facility_slope="facility_slope", a_grams="grams", a_grams_slope="grams_slope", qa="q")
        end = ticks.rename(b_facility="facility", b_facility_slope="facility_slope", b_grams="grams", b_grams_slope="grams_slope", qb="q")
        t = cut.join(begin, "qa").join(end, "qb")

        def between(name: str) -> Any:
            at_b = t[f"b_{name}"] + t[f"b_{name}_slope"] * (t.b - t.qb * QUARTER_US)
            return at_b - (t[f"a_{name}"] + t[f"a_{name}_slope"] * (t.a - t.qa * QUARTER_US))

        seconds = (t.b - t.a) / float(US_PER_S)
        joules = t.mj / float(MJ_PER_J)
        return t.select(
            "use",
            "known",
            "method",
            "job_no",
            "gpu_model",
            "month",
            "mj",
            "covered",
            "is_split",
            "why",
            facility_joules=joules * between("facility") / seconds,
            grams=joules * between("grams") / seconds / JOULES_PER_KWH,
        )

    def year(self, people: Callable[[str, bool], str]) -> Year:
        """The groups.

        Args:
            people: How a person of the ledger is written in the report: (text, is it a pseudonym).
        """
        jobs = self._held()
        groups = {dimension: self._groups(jobs, dimension) for dimension in DIMENSIONS}
        groups["person"] = _renamed(self._con, groups["person"], people)
        priced = self._db.table("audit_priced")
        by_use = {str(use): energy for use, energy in self._energies(priced, "use").items()}
        unattributed = self._energies(priced.filter(priced.use == "unattributed"), "why")
        (whole,) = self._groups(jobs.mutate(everything=self._ibis.literal("all jobs")), "everything") or (
            Group("all jobs", 0, 0, 0, 0, Energy()),
        )
        months = self._energies(priced, "month")
        idle_us, room_us, busy_us = self._con.execute(
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
            top=self._top(people),
            running=self._count_running(),
            findings=tuple(Finding(f.slug, f.text, f.count, f.energy_mj) for f in self._found),
        )

    def spreads(self) -> Mapping[str, tuple[float, float]]:
        """How far single jobs and idle hours are from the means that stand for the unmeasured ones: 5th and 95th percentile over the mean."""
        rows = self._con.execute("""
            WITH jobs AS (SELECT gpu_model, covered_mj / metered_us AS mj_per_us FROM audit_open WHERE metered_us > 1800000000 AND covered_mj > 0),
            means AS (SELECT gpu_model, avg(mj_per_us) AS mean FROM jobs GROUP BY 1),
            idle AS (SELECT gpu_model, energy_mj / room_us / nullif(avg(energy_mj / room_us) OVER (PARTITION BY gpu_model), 0) AS ratio FROM audit_use WHERE held_us = 0 AND room_us > 0)
            SELECT 'mean of the lab' AS name, quantile_cont(mj_per_us / mean, 0.05), quantile_cont(mj_per_us / mean, 0.95) FROM jobs JOIN means USING (gpu_model)
            UNION ALL SELECT 'idle power', quantile_cont(ratio, 0.05), quantile_cont(ratio, 0.95) FROM idle""").fetchall()
        return {name: (min(low, 1.0), max(high, 1.0)) for name, low, high in rows if low is not None and low > 0}

    def weekday_hours(self, hourly: Array) -> Array:
        """Energy by local weekday, Monday first, and hour. Shape (7, 24)."""
        from carbonreport.combine.seasonal import calendar, local_hours

        first = self.window.from_us // HOUR_US
        starts_s = (first + np.arange(hourly.size)) * 3600.0
        known_s, local_s = local_hours(self.window.time_zone, float(starts_s[0]), float(starts_s[-1] + 3600))
        local = local_s[np.searchsorted(known_s[:-1], starts_s, side="right") - 1] + (
            starts_s - known_s[:-1][np.searchsorted(known_s[:-1], starts_s, side="right") - 1]
        )
        _, _, hours = calendar(local)
        weekdays = (np.floor_divide(local, 86_400.0).astype(np.int64) + 3) % 7  # 1970 began on a Thursday
        grid: Array = np.zeros((7, 24))
        np.add.at(grid, (weekdays, hours), hourly)
        return grid

    def board_energy(self) -> dict[str, tuple[float, float]]:
        """Facility energy [J] and emissions [g] of jobs by board."""
        t = self._db.table("audit_priced")
        t = t.filter(t.use == "job")
        rows = t.group_by("gpu_model").agg(j=t.facility_joules.sum(), g=t.grams.sum())
        return {model: (float(j), float(g)) for model, j, g in self._rows(rows)}

    def short_jobs_share(self, longest_h: float) -> float:
        """Part of the jobs' energy that is of jobs shorter than so many hours."""
        t, jobs = self._db.table("audit_priced"), self._db.table("audit_jobs")
        joined = t.filter(t.use == "job").join(jobs, "job_no")
        is_short = (joined.end_us - joined.start_us) <= round(longest_h * HOUR_US)
        ((short, whole),) = self._rows(joined.agg(s=is_short.ifelse(joined.mj, 0).sum(), w=joined.mj.sum()))
        return float(short or 0) / whole if whole else 0.0

    # Groups

    def _held(self) -> Any:
        """Jobs by month with their dimensions and GPU time; parts of a job add up to it exactly."""
        ibis = self._ibis
        jobs, months, opened, powers = (self._db.table(f"audit_{name}") for name in ("jobs", "months", "open", "powers"))
        known = opened.left_join(powers, "gpu_model").select(
            "job_no", "covered_us", gpu_us="gpu_us", model="gpu_model", has_power=lambda t: t.mj_per_us.notnull()
        )
        t = jobs.left_join(known, "job_no")
        lost = t.state.isin(_LOST).ifelse(t.state, t.state.isin(_THERE).ifelse("still running", "COMPLETED"))
        t = t.mutate(
            project=_said(t.project),
            person=_said(t.person),
            partition=_said(t.partition),
            gpu_model=_said(t.model.coalesce(t.gpu_model)),
            outcome=(t.state == "").ifelse(NOBODY, lost),
            known_us=t.covered_us.coalesce(0),
            has_power=t.has_power.coalesce(True),
            whole_us=t.gpu_us.coalesce(0),
        )
        cut = t.join(months, [t.begin_us < months.m_until, t.until_us > months.m_from])
        a, b = ibis.greatest(cut.begin_us, cut.m_from), ibis.least(cut.until_us, cut.m_until)
        length = (cut.until_us - cut.begin_us).cast("float64")

        def part(amount: Any) -> Any:
            return (amount * ((b - cut.begin_us) / length)).round().cast("int64") - (amount * ((a - cut.begin_us) / length)).round().cast(
                "int64"
            )

        held = part(cut.gpus * (cut.until_us - cut.begin_us))
        known_us = part(cut.known_us)
        return cut.select(
            "job_no",
            "project",
            "person",
            "partition",
            "gpu_model",
            "outcome",
            "month",
            held_us=held,
            known_us=known_us,
            unknown_us=cut.has_power.ifelse(0, held - known_us),
        )

    def _groups(self, jobs: Any, dimension: str) -> tuple[Group, ...]:
        held = jobs.group_by(name=jobs[dimension]).agg(
            jobs=jobs.job_no.nunique(), held=jobs.held_us.sum(), known=jobs.known_us.sum(), unknown=jobs.unknown_us.sum()
        )
        priced = self._db.table("audit_priced")
        priced = priced.filter(priced.use == "job")
        if dimension == "month":
            energies = self._energies(priced, "month")
        else:
            names = jobs.select("job_no", name=jobs[dimension]).distinct()
            energies = self._energies(priced.drop("gpu_model").join(names, "job_no"), "name")
        groups = [
            Group(str(name), int(n), int(us), int(known), int(unknown), energies.get(str(name), Energy()))
            for name, n, us, known, unknown in self._rows(held)
        ]
        if dimension == "month":
            return tuple(sorted(groups, key=lambda group: group.name))
        return tuple(sorted(groups, key=lambda group: (-group.energy.it_mj, -group.gpu_us, group.name)))

    def _energies(self, t: Any, name: str) -> dict[str, Energy]:
        def of(known: str) -> Any:
            return (t.known == known).ifelse(t.mj, 0).sum()

        rows = t.group_by(group=t[name]).agg(
            measured=of("measured"),
            reported=of("reported"),
            estimated=of("estimated"),
            split=t.is_split.ifelse(t.mj, 0).sum(),
            facility=t.facility_joules.sum(),
            grams=t.grams.sum(),
        )
        return {str(group): Energy(int(m), int(r), int(e), int(s), float(f), float(g)) for group, m, r, e, s, f, g in self._rows(rows)}

    def _top(self, people: Callable[[str, bool], str]) -> tuple[TopJob, ...]:
        t = self._db.table("audit_priced")
        t = t.filter(t.use == "job")
        sums = t.group_by("job_no").agg(mj=t.mj.sum())
        best = [int(job_no) for job_no, _ in self._rows(sums.order_by([self._ibis.desc("mj"), "job_no"]).limit(_TOP))]
        energies = self._energies(t.filter(t.job_no.isin(best)).mutate(key=t.job_no.cast("string")), "key") if best else {}
        found = []
        for no, cluster, job_id, project, person, is_pseudonym, model, gpus, state, start_us, begin_us, until_us in self._con.execute(
            "SELECT job_no, cluster, job_id, project, person, is_pseudonym, coalesce(nullif(o.gpu_model, ''), j.gpu_model), gpus, state, start_us, j.begin_us, j.until_us "
            "FROM audit_jobs j LEFT JOIN audit_open o USING (job_no) WHERE job_no IN (SELECT unnest(?::BIGINT[]))",
            [best],
        ).fetchall():
            name = f"{cluster} {job_id}".strip() if cluster != OWN_CLUSTER else f"record {job_id}"
            found.append(
                TopJob(
                    name,
                    project,
                    people(person, is_pseudonym),
                    model,
                    int(gpus),
                    state,
                    int(start_us),
                    (until_us - begin_us) / HOUR_US,
                    energies[str(no)],
                )
            )
        return tuple(sorted(found, key=lambda job: (-job.energy.it_mj, job.start_us, job.job_id)))

    def _count_running(self) -> int:
        (count,) = self._con.execute(f"SELECT count(*) FROM audit_jobs WHERE state IN ({', '.join(repr(s) for s in _THERE)})").fetchall()[0]
        return int(count)

    def _rows(self, expression: Any) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._con.execute(self._sql(expression)).fetchall()
        return rows

    def _sql(self, expression: Any) -> str:
        return str(self._ibis.to_sql(expression, dialect="duckdb"))


def _said(column: Any) -> Any:
    return (column == "").ifelse(NOBODY, column)


def _renamed(con: Any, groups: tuple[Group, ...], people: Callable[[str, bool], str]) -> tuple[Group, ...]:
    """Groups of people under the names that the report may show; those that become one are added."""
    kinds = dict(con.execute("SELECT person, bool_and(is_pseudonym) FROM audit_jobs GROUP BY 1").fetchall())
    merged: dict[str, Group] = {}
    for group in groups:
        name = group.name if group.name == NOBODY and "" in kinds else people(group.name, bool(kinds.get(group.name, False))) or NOBODY
        one = merged.get(name)
        merged[name] = Group(
            name,
            group.jobs + (one.jobs if one else 0),
            group.gpu_us + (one.gpu_us if one else 0),
            group.known_gpu_us + (one.known_gpu_us if one else 0),
            group.unknown_gpu_us + (one.unknown_gpu_us if one else 0),
            group.energy + (one.energy if one else Energy()),
        )
    return tuple(merged.values())


Dimensions = Mapping[Dimension, tuple[Group, ...]]
