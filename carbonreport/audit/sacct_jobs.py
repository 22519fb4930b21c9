"""One row a job and start out of sacct's cells: its times, its energy, its texts by the rules; and what cannot be used, by reason."""

from typing import Any
from zoneinfo import ZoneInfo

from carbonreport.audit.sacct_cells import MOST_GPUS, SlurmRules, keep_table, listed
from carbonreport.audit.tables import MOST_MILLIJOULES, SUSPENSION_US
from carbonreport.combine.seasonal import offsets
from carbonreport.errors import BadTime
from carbonreport.units import MINUTE_US, MJ_PER_J, SECONDS_PER_DAY, US_PER_S

NOT_BEGUN = "not begun"
NO_TIME = "ran for no time"
UNDATED = "no start, or neither an end nor a length"
UNREAD = "[time|times] that cannot be read, such as"  # and one of them
BACKWARDS = "[ends before its|end before their] start, without a length"
HUGE = "[has|have] more GPUs, nodes or hours than any job"
_LOST = "its start or end does not exist or comes twice in the time zone"
_USABLE = "NOT is_torn AND NOT is_cut AND NOT is_far AND NOT is_huge AND NOT is_step"
LEAST_JOBS = 5  # that tell whether a file's times have lost their seconds
_KEY = "hash(cluster, job_id, start_z, start_l)"
_IS_ODD = """start_z IS NULL AND start_l IS NOT NULL AND (sacct_utc(start_l) IS NULL OR (end_l > start_l AND end_z IS NULL AND sacct_utc(end_l) IS NULL))"""


def tell_jobs(con: Any, name: str, rules: SlurmRules, zone: ZoneInfo | None) -> int:
    """The table `sacct_jobs` in the order of its starts, of `sacct_rows` and the texts; how many rows were of a job and start that stands there.

    Args:
        con: DuckDB.
        name: What the file is called in messages.
        rules: What the fields mean.
        zone: Time zone of stamps that name none, or None.

    Raises:
        BadTime: Its stamps name no zone, and nobody gave one.
    """
    odd = _tell_times(con, name, rules, zone)
    steps = _tell_steps(con)
    rounding_us = _tell_rounding(con)
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE sacct_twins AS SELECT {_KEY} AS twin FROM sacct_rows WHERE {_USABLE} GROUP BY 1 HAVING count(*) > 1"
    )
    (twins,) = con.execute("SELECT count(*) FROM sacct_twins").fetchall()[0]
    is_twin = f"{_KEY} IN (FROM sacct_twins)"
    con.execute("DROP TABLE IF EXISTS sacct_jobs")
    con.execute(
        f"CREATE TABLE sacct_jobs AS {_jobs(rules, odd > 0, steps > 0, rounding_us, f'NOT ({is_twin})' if twins else 'true')} ORDER BY start_us"
    )
    if twins:  # the row with a user is the job's, then the longest
        con.execute(f"""
            INSERT INTO sacct_jobs {_jobs(rules, odd > 0, steps > 0, rounding_us, is_twin)}
            QUALIFY row_number() OVER (PARTITION BY k.cluster, k.job_id, k.start_z, k.start_l ORDER BY k.username = '', length_s DESC NULLS LAST, any_joules DESC NULLS LAST) = 1""")
    (before,) = con.execute(f"SELECT count(*) FROM sacct_rows WHERE {_USABLE}").fetchall()[0]
    (after,) = con.execute("SELECT count(*) FROM sacct_jobs").fetchall()[0]
    return int(before - after)


def _tell_times(con: Any, name: str, rules: SlurmRules, zone: ZoneInfo | None) -> int:
    """The macro `sacct_utc` of local microseconds, and the table `sacct_told` of stamps that come twice or never; how many those are."""
    low, high, local = con.execute(
        f"SELECT min(start_l), max(greatest(start_l, end_l)), count(*) FILTER (start_z IS NULL AND start_l IS NOT NULL) FROM sacct_rows WHERE {_USABLE}"
    ).fetchall()[0]
    utc = "NULL::BIGINT"
    told = []
    if local and zone is None:
        raise BadTime(
            f"{name}: its times name no time zone; pull it with SLURM_TIME_FORMAT=%s, or give --time-zone, such as --time-zone Europe/Berlin"
        )
    if local and zone is not None:
        utc = _unambiguous(zone, low / US_PER_S, high / US_PER_S)
    con.execute(f"CREATE OR REPLACE MACRO sacct_utc(l) AS {utc}")
    if local and zone is not None:
        odd = con.execute(f"SELECT rowid, start_l, end_l, elapsed_s FROM sacct_rows WHERE {_USABLE} AND {_IS_ODD}").fetchall()
        for row_id, start, end, elapsed_s in odd:
            start_s = start / US_PER_S
            end_s = end / US_PER_S if end is not None and end > start else start_s + (elapsed_s or 0.0)
            pair = rules.period(start_s, end_s, elapsed_s if elapsed_s is not None else end_s - start_s, zone)
            told.append((row_id, *((None, None) if pair is None else (round(pair[0] * US_PER_S), round(pair[1] * US_PER_S)))))
    keep_table(con, "sacct_told", "row_id BIGINT, start_t BIGINT, end_t BIGINT", told)
    return len(told)


def _unambiguous(zone: ZoneInfo, low_s: float, high_s: float) -> str:
    """SQL that turns local microseconds into POSIX ones; null in the hours that come twice or never."""
    stretches = offsets(str(zone), low_s - 2 * SECONDS_PER_DAY, high_s + 2 * SECONDS_PER_DAY)
    cases = []
    for i, (begin_s, until_s, offset_s) in enumerate(stretches):
        first, last = begin_s + offset_s, until_s + offset_s
        if i:
            first = max(first, begin_s + stretches[i - 1][2])
        if i + 1 < len(stretches):
            last = min(last, until_s + stretches[i + 1][2])
        cases.append(f"WHEN l >= {round(first * US_PER_S)} AND l < {round(last * US_PER_S)} THEN l - {round(offset_s * US_PER_S)}")
    return f"CASE {' '.join(cases)} END"


def _tell_steps(con: Any) -> int:
    """The table `sacct_steps` of energies that only a step has; how many those are."""
    con.execute("""
        CREATE OR REPLACE TEMP TABLE sacct_steps AS
        SELECT cluster, split_part(job_id, '.', 1) AS job_id, coalesce(start_z, start_l) AS start, max(joules) AS joules, max(mean_watts * elapsed_s) AS by_power
        FROM sacct_rows WHERE is_step AND NOT is_torn AND (joules > 0 OR mean_watts > 0) GROUP BY ALL""")
    (steps,) = con.execute("SELECT count(*) FROM sacct_steps").fetchall()[0]
    return int(steps)


def _tell_rounding(con: Any) -> int:
    """How much Elapsed may lack of the time from start to end without a suspension. [µs] More where all times of a file have lost their seconds."""
    jobs, whole = con.execute(
        f"SELECT count(*), coalesce(bool_and(coalesce(start_z, start_l) % {MINUTE_US} = 0 AND coalesce(end_z, end_l) % {MINUTE_US} = 0), false) FROM sacct_rows WHERE {_USABLE} AND coalesce(end_z, end_l) IS NOT NULL"
    ).fetchall()[0]
    return 2 * MINUTE_US if whole and jobs >= LEAST_JOBS else SUSPENSION_US


def _jobs(rules: SlurmRules, has_odd: bool, has_steps: bool, rounding_us: int, condition: str) -> str:
    """A query of jobs with their energy, or that of a step where the job row has none; what cannot be is unknown.

    Args:
        rules: What the fields mean.
        has_odd: Whether there are stamps that come twice or never.
        has_steps: Whether steps have energies.
        rounding_us: What Elapsed may lack without a suspension.
        condition: Which rows.
    """
    least, most = rules.node_watts
    odd = (_IS_ODD, "told.start_t", "told.end_t") if has_odd else ("false", "NULL::BIGINT", "NULL::BIGINT")
    told = "LEFT JOIN sacct_told told ON told.row_id = r.rowid" if has_odd else ""
    of_step = ("s.joules", "s.by_power") if has_steps else ("NULL::DOUBLE", "NULL::DOUBLE")
    steps = """LEFT JOIN sacct_steps s ON s.cluster = j.cluster AND s.job_id = split_part(j.job_id, '.', 1) AND s.start >= coalesce(j.start_z, j.start_l)
                AND (s.start <= coalesce(j.end_z, j.end_l) OR j.end_or_none IS NULL)
            QUALIFY row_number() OVER (PARTITION BY j.row_id ORDER BY s.joules DESC NULLS LAST, s.by_power DESC NULLS LAST) = 1"""
    return f"""
        WITH timed AS (
            SELECT r.*, r.rowid AS row_id, {odd[0]} AS is_odd, {odd[1]} AS start_t, {odd[2]} AS end_t, coalesce(end_z < start_z, false) AS is_backwards,
                coalesce(submit_z, sacct_utc(submit_l)) AS submit_us, coalesce(start_z, sacct_utc(start_l)) AS start_u,
                CASE WHEN coalesce(end_z, end_l) > coalesce(start_z, start_l) THEN coalesce(end_z, sacct_utc(end_l)) END AS end_u
            FROM sacct_rows r {told} WHERE {_USABLE} AND {condition}),
        lasting AS (
            SELECT * EXCLUDE (start_u, end_u), is_odd AND start_t IS NULL AS is_lost, coalesce(start_t, CASE WHEN is_odd THEN NULL ELSE start_u END) AS start_us,
                coalesce(end_t, CASE WHEN is_odd THEN NULL ELSE end_u END) AS end_or_none,
                coalesce(end_or_none, start_us + round((elapsed_s + suspended_s) * {US_PER_S})::BIGINT) AS end_us,
                coalesce(elapsed_s, (end_us - start_us) / {US_PER_S}) AS length_s
            FROM timed),
        known AS (
            SELECT j.*, coalesce(j.joules, {of_step[0]}, j.mean_watts * elapsed_s, {of_step[1]}) AS any_joules,
                coalesce(j.joules, {of_step[0]}) IS NULL AS is_power, any_joules / elapsed_s / coalesce(nullif(nodes, 0), 1) AS watts,
                any_joules IS NOT NULL AND (any_joules > {rules.most_joules!r} OR coalesce(elapsed_s, 0) <= 0
                OR (nodes IS NOT NULL AND NOT is_power AND (watts < {least!r} OR watts > {most!r}))) AS is_impossible,
                end_us - start_us - round(elapsed_s * {US_PER_S})::BIGINT AS away_us
            FROM lasting j {steps if has_steps else ""})
        SELECT k.cluster, k.job_id, k.array_id, k.submit_us, k.start_us, k.end_us, k.unread, is_impossible, is_backwards,
            CASE WHEN st.state IN ({listed(rules.not_started)}) THEN '{NOT_BEGUN}' WHEN k.unread IS NOT NULL THEN '{UNREAD}' WHEN is_lost THEN '{_LOST}' WHEN g.gpus > {MOST_GPUS} THEN '{HUGE}'
                WHEN k.start_us IS NULL OR (k.end_us IS NULL AND NOT is_backwards) THEN '{UNDATED}'
                WHEN k.end_us IS NULL THEN '{BACKWARDS}' WHEN k.end_us <= k.start_us THEN '{NO_TIME}' END AS why, k.project, p.person AS person,
            p.person <> k.username AS is_pseudonym, k.partition, st.state AS state, g.gpu_model AS gpu_model, g.gpus AS gpus, k.nodes, k.hosts, k.exclusive,
            CASE WHEN elapsed_s IS NULL THEN NULL WHEN away_us > {rounding_us} THEN away_us ELSE 0 END AS suspended_us,
            CASE WHEN NOT is_impossible AND any_joules * {MJ_PER_J} <= {MOST_MILLIJOULES} THEN round(any_joules * {MJ_PER_J})::BIGINT END AS energy_mj
        FROM known k JOIN sacct_states st ON st.text = k.state_text JOIN sacct_gpus g ON g.text = k.gpu_text JOIN sacct_people p ON p.text = k.username"""
