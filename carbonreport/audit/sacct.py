"""sacct's parsable text in bulk: DuckDB cuts and casts, and the field rules decide, each of them once for each distinct text."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from carbonreport.audit.sacct_cells import MOST_GPUS, SlurmRules, header_of, keep_table, listed, read_cells
from carbonreport.audit.tables import MOST_MILLIJOULES, SUSPENSION_US
from carbonreport.audit.window import FIRST_YEAR, LAST_YEAR
from carbonreport.combine.seasonal import offsets
from carbonreport.errors import BadTime, RecordError
from carbonreport.model.audit import agreed
from carbonreport.model.slices import is_slice
from carbonreport.units import MJ_PER_J, SECONDS_PER_DAY, US_PER_S


@dataclass(frozen=True, slots=True)
class Taken:
    """What an import found.

    Attributes:
        rows: Rows that became part of the ledger.
        not_used: How many rows were not, or not wholly, by reason; a row has one.
        noted: How many rows were used with something that must be known, and what.
    """

    rows: int
    not_used: tuple[tuple[str, int], ...] = ()
    noted: tuple[tuple[str, int], ...] = ()

    def in_words(self, done: str = "rows used") -> str:
        """1,204 rows used; 3 not begun."""
        rows = done.replace("rows", "row", 1) if self.rows == 1 else done
        return "; ".join([f"{self.rows:,} {rows}", *(f"{n:,} {why}" for why, n in (*self.not_used, *self.noted))])


NOT_BEGUN = "not begun"
NO_TIME = "ran for no time"
UNDATED = "no start, or neither an end nor a length"
BACKWARDS = "[ends before its|end before their] start, without a length"
SLICES = (
    "had slices of boards (MIG); a slice counts as its part of a board where its name tells how large that is, and no power is known of one"
)
BY_LENGTH = "[ends before its start; its|end before their start; their] length is taken from Elapsed"
TORN = "[line is|lines are] torn: fewer cells than the header has, more of them, or no line end"
FAR = f"[begins or ends|begin or end] outside any year that can be audited, {FIRST_YEAR} to {LAST_YEAR}"
HUGE = "[has|have] more GPUs, nodes or hours than any job"
_LOST = "its start or end does not exist or comes twice in the time zone"
_USABLE = "NOT is_torn AND NOT is_cut AND NOT is_far AND NOT is_huge"


def jobs_query(
    con: Any,
    path: Path,
    rules: SlurmRules,
    zone: ZoneInfo | None,
    people: Callable[[Iterable[str]], dict[str, str]],
    source: str,
    name: str = "",
) -> tuple[str, Taken]:
    """A query of the ledger's columns, one row a job and start, and what was left out.

    Args:
        con: DuckDB.
        path: The file; its header must be that of parsable text.
        rules: What the fields mean.
        zone: Time zone of stamps that name none, or None.
        people: How people are written.
        source: Hash of the file.
        name: What it is called in messages; its path by default.

    Raises:
        RecordError: It is no parsable text.
        BadTime: Its stamps name no zone, and nobody gave one.
    """
    found = header_of(path)
    if found is None:
        raise RecordError(f"{name or path} is no parsable text of sacct: give --parsable2 and Start and State in --format")
    skip, names = found
    read_cells(con, path, skip, names, rules)
    slices = _tell_texts(con, rules, people)
    _times(con, name or str(path), rules, zone)
    _energies(con, rules)
    repeated = _one_each(con, rules)
    (unread,) = con.execute("SELECT count(DISTINCT line) FROM reject_errors").fetchall()[0]
    torn, cut, far, huge = con.execute("""
        SELECT count(*) FILTER (is_torn), count(*) FILTER (NOT is_torn AND is_cut), count(*) FILTER (NOT is_torn AND NOT is_cut AND NOT is_step AND is_far),
            count(*) FILTER (NOT is_torn AND NOT is_cut AND NOT is_step AND NOT is_far AND is_huge) FROM sacct_rows""").fetchall()[0]
    whys = dict(con.execute("SELECT why, count(*) FROM sacct_jobs GROUP BY 1").fetchall())
    rows = whys.pop(None, 0)
    whys[HUGE] = whys.get(HUGE, 0) + huge
    impossible, backwards, sliced = con.execute(
        f"SELECT count(*) FILTER (is_impossible), count(*) FILTER (is_backwards), count(*) FILTER (gpu_model IN ({listed(slices)}) AND gpus > 0) FROM sacct_jobs WHERE why IS NULL"
    ).fetchall()[0]
    least, most = rules.node_watts
    counts = [
        *sorted(whys.items()),
        ("the same job again", repeated),
        ("[line|lines] that cannot be read: not UTF-8, or too long", unread),
        (TORN, torn),
        ("its id is cut by the fixed width; ask sacct for --parsable2", cut),
        (FAR, far),
        (f"its energy is not that of a node, {least:g} to {most:g} W; the energy is left out", impossible),
    ]
    noted = [(BY_LENGTH, backwards), *([(SLICES, sliced)] if slices else [])]
    query = f"""
        SELECT cluster, job_id, submit_us, start_us, end_us, project, person, is_pseudonym, partition, state, gpu_model, gpus, nodes, hosts,
               exclusive, energy_mj, CASE WHEN energy_mj IS NULL THEN '' ELSE 'reported' END AS method, '{source}' AS source, array_id, suspended_us
        FROM sacct_jobs WHERE why IS NULL"""
    told = [tuple((agreed(why, count), int(count)) for why, count in one if count) for one in (counts, noted)]
    return query, Taken(int(rows), told[0], told[1])


def _tell_texts(con: Any, rules: SlurmRules, people: Callable[[Iterable[str]], dict[str, str]]) -> list[str]:
    """States, GPUs and people: each distinct text goes through its rule once. The types that are slices of boards."""
    states = [text for (text,) in con.execute("SELECT DISTINCT state_text FROM sacct_rows WHERE NOT is_step").fetchall()]
    keep_table(con, "sacct_states", "text VARCHAR, state VARCHAR", [(text, rules.state(text)) for text in states])
    gpus = []
    for (text,) in con.execute("SELECT DISTINCT gpu_text FROM sacct_rows WHERE NOT is_step").fetchall():
        by_type = rules.gpus(text)
        gpus.append((text, "+".join(sorted(name for name in by_type if name)), min(sum(by_type.values()), MOST_GPUS + 1)))
    keep_table(con, "sacct_gpus", "text VARCHAR, gpu_model VARCHAR, gpus BIGINT", gpus)
    names = [name for (name,) in con.execute("SELECT DISTINCT username FROM sacct_rows WHERE NOT is_step").fetchall()]
    keep_table(con, "sacct_people", "text VARCHAR, person VARCHAR", list(people(names).items()))
    return sorted({model for _, model, _ in gpus if is_slice(model)})


def _times(con: Any, name: str, rules: SlurmRules, zone: ZoneInfo | None) -> None:
    """The table `sacct_timed`: rows of jobs with POSIX microseconds."""
    low, high, local = con.execute(
        f"SELECT min(start_l), max(greatest(start_l, end_l)), count(*) FILTER (start_z IS NULL AND start_l IS NOT NULL) FROM sacct_rows WHERE {_USABLE} AND NOT is_step"
    ).fetchall()[0]
    utc = "NULL"
    if local:
        if zone is None:
            raise BadTime(
                f"{name}: its times name no time zone; pull it with SLURM_TIME_FORMAT=%s, or give --time-zone, such as --time-zone Europe/Berlin"
            )
        utc = _unambiguous(zone, low / US_PER_S, high / US_PER_S)
    con.execute(f"CREATE OR REPLACE MACRO sacct_utc(l) AS {utc}")
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE sacct_timed AS SELECT * EXCLUDE (submit_z, start_z, end_z, submit_l, is_cut, is_step, is_torn, is_last, is_far, is_huge), rowid AS row_id, coalesce(end_z < start_z, false) AS is_backwards, coalesce(submit_z, sacct_utc(submit_l)) AS submit_us, coalesce(start_z, sacct_utc(start_l)) AS start_u,
            CASE WHEN coalesce(end_z, end_l) > coalesce(start_z, start_l) THEN coalesce(end_z, sacct_utc(end_l)) END AS end_u,
            start_z IS NULL AND start_l IS NOT NULL AND (sacct_utc(start_l) IS NULL OR (end_l > start_l AND end_z IS NULL AND sacct_utc(end_l) IS NULL)) AS is_odd
        FROM sacct_rows WHERE {_USABLE} AND NOT is_step""")
    told = []
    if zone is not None:
        for row_id, start, end, elapsed_s in con.execute(
            "SELECT row_id, start_l, end_l, elapsed_s FROM sacct_timed WHERE is_odd"
        ).fetchall():
            start_s = start / US_PER_S
            end_s = end / US_PER_S if end is not None and end > start else start_s + (elapsed_s or 0.0)
            pair = rules.period(start_s, end_s, elapsed_s if elapsed_s is not None else end_s - start_s, zone)
            told.append((row_id, *((None, None) if pair is None else (round(pair[0] * US_PER_S), round(pair[1] * US_PER_S)))))
    keep_table(con, "sacct_told", "row_id BIGINT, start_t BIGINT, end_t BIGINT", told)


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


def _energies(con: Any, rules: SlurmRules) -> None:
    """The table `sacct_told_jobs`: job rows with their energy, or that of a step where the job row has none; what cannot be is unknown."""
    least, most = rules.node_watts
    con.execute("""
        CREATE OR REPLACE TEMP TABLE sacct_steps AS
        SELECT cluster, split_part(job_id, '.', 1) AS job_id, start, max(joules) AS joules, max(mean_watts * elapsed_s) AS by_power
        FROM sacct_rows WHERE is_step AND NOT is_torn AND (joules > 0 OR mean_watts > 0) GROUP BY ALL""")
    (steps,) = con.execute("SELECT count(*) FROM sacct_steps").fetchall()[0]
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE sacct_lasting AS
        SELECT t.* EXCLUDE (start_u, end_u, start_l, end_l, is_odd), is_odd AND told.start_t IS NULL AS is_lost, coalesce(told.start_t, CASE WHEN is_odd THEN NULL ELSE start_u END) AS start_us,
            coalesce(told.end_t, CASE WHEN is_odd THEN NULL ELSE end_u END) AS end_or_none,
            coalesce(end_or_none, start_us + round(elapsed_s * {US_PER_S})::BIGINT) AS end_us,
            coalesce(elapsed_s, (end_us - start_us) / {US_PER_S}) AS length_s
        FROM sacct_timed t LEFT JOIN sacct_told told USING (row_id)""")
    con.execute("DROP TABLE sacct_timed")
    joined = """sacct_lasting j LEFT JOIN sacct_steps s ON s.cluster = j.cluster AND s.job_id = split_part(j.job_id, '.', 1) AND s.start >= j.start
                AND (s.start <= j."end" OR j.end_or_none IS NULL)
            QUALIFY row_number() OVER (PARTITION BY j.row_id ORDER BY s.joules DESC NULLS LAST) = 1"""
    of_step = ("s.joules", "s.by_power") if steps else ("NULL::DOUBLE", "NULL::DOUBLE")
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE sacct_known AS
        SELECT j.*, coalesce(j.joules, {of_step[0]}, j.mean_watts * elapsed_s, {of_step[1]}) AS any_joules,
            coalesce(j.joules, {of_step[0]}) IS NULL AS is_power, any_joules / elapsed_s / coalesce(nullif(nodes, 0), 1) AS watts,
            any_joules IS NOT NULL AND (any_joules > {rules.most_joules!r} OR coalesce(elapsed_s, 0) <= 0
            OR (nodes IS NOT NULL AND NOT is_power AND (watts < {least!r} OR watts > {most!r}))) AS is_impossible
        FROM {joined if steps else "sacct_lasting j"}""")
    con.execute("DROP TABLE sacct_lasting")


def _one_each(con: Any, rules: SlurmRules) -> int:
    """The table `sacct_jobs`: each job and start once; how many rows were repeats. The row with a user is the job's, then the longest."""
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE sacct_jobs AS
        SELECT k.cluster, k.job_id, k.array_id, k.submit_us, k.start_us, k.end_us, is_impossible, is_backwards,
            CASE WHEN st.state IN ({listed(rules.not_started)}) THEN '{NOT_BEGUN}' WHEN is_lost THEN '{_LOST}' WHEN g.gpus > {MOST_GPUS} THEN '{HUGE}'
                WHEN k.start_us IS NULL OR (k.end_us IS NULL AND NOT is_backwards) THEN '{UNDATED}'
                WHEN k.end_us IS NULL THEN '{BACKWARDS}' WHEN k.end_us <= k.start_us THEN '{NO_TIME}' END AS why, k.project, p.person AS person,
            p.person <> k.username AS is_pseudonym, k.partition, st.state AS state, g.gpu_model AS gpu_model, g.gpus AS gpus, k.nodes,
            CASE WHEN lower(k.hosts) IN ('none assigned', 'none', '(null)') THEN '' ELSE k.hosts END AS hosts,
            CASE WHEN lower(exclusive_text) IN ('', 'unknown', 'none') THEN NULL ELSE lower(exclusive_text) IN ('yes', 'true', '1', 'exclusive', 'node') END AS exclusive,
            CASE WHEN elapsed_s IS NULL THEN NULL WHEN k.end_us - k.start_us - round(elapsed_s * {US_PER_S})::BIGINT > {SUSPENSION_US} THEN k.end_us - k.start_us - round(elapsed_s * {US_PER_S})::BIGINT
                ELSE 0 END AS suspended_us,
            CASE WHEN NOT is_impossible AND any_joules * {MJ_PER_J} <= {MOST_MILLIJOULES} THEN round(any_joules * {MJ_PER_J})::BIGINT END AS energy_mj
        FROM sacct_known k JOIN sacct_states st ON st.text = k.state_text JOIN sacct_gpus g ON g.text = k.gpu_text
            JOIN sacct_people p ON p.text = k.username
        QUALIFY row_number() OVER (PARTITION BY k.cluster, k.job_id, k.start ORDER BY k.username = '', length_s DESC NULLS LAST, any_joules DESC NULLS LAST) = 1""")
    (before,) = con.execute("SELECT count(*) FROM sacct_known").fetchall()[0]
    (after,) = con.execute("SELECT count(*) FROM sacct_jobs").fetchall()[0]
    con.execute("DROP TABLE sacct_known")
    return int(before - after)
