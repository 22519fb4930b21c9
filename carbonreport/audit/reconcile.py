"""Job ledger against meter ledger: what of the metered energy is whose, what was idle, and what nobody accounts for.

Everything becomes pieces: so many millijoules, evenly within a time, of a job or of none. Shares are differences of one rounded
cumulative sum, so the pieces of a reading add up to it to the millijoule, however it is cut.
"""

from collections.abc import Callable
from typing import Any

from carbonreport.audit.estimates import estimated
from carbonreport.audit.hosts import of_hosts, reported
from carbonreport.audit.once import clip_meters
from carbonreport.audit.pieces import Found, share, short, table
from carbonreport.audit.tables import OWN_CLUSTER
from carbonreport.audit.window import Window, board_names, expanded
from carbonreport.model.slices import board_share
from carbonreport.units import HOUR_US, MINUTE_US, hours_from_microseconds

MOST_GPUS = 100_000  # of one job; twice the boards of the largest machine of 2025
_SLACK_US = MINUTE_US  # a run begins after its job and ends before it, by two clocks


def reconcile(con: Any, window: Window, rated_watts: Callable[[str], float | None], default_board: str = "") -> tuple[Found, ...]:
    """Make the tables `audit_jobs`, `audit_pieces` and `audit_hosts` of the window out of `jobs` and `meters`.

    Args:
        con: DuckDB with the two tables.
        window: Year that is audited.
        rated_watts: What a board of that name draws typically, for hours that nobody measured; None where nobody knows.
        default_board: The board of jobs whose type nobody says, as somebody says now.
    """
    found: list[Found] = []
    found += _prepare(con, window, default_board)
    found += clip_meters(con, window)
    found += _link_records(con)
    con.execute("""
        CREATE OR REPLACE TABLE audit_pieces (use VARCHAR, known VARCHAR, method VARCHAR, job_no BIGINT, gpu_model VARCHAR, start_us BIGINT, end_us BIGINT,
            energy_mj BIGINT, covered_us BIGINT, is_split BOOLEAN, why VARCHAR)""")
    found += _of_jobs(con)
    found += of_hosts(con)
    found += reported(con)
    found += estimated(con, rated_watts)
    found += _without_boards(con)
    return tuple(one for one in found if one.count)


def _prepare(con: Any, window: Window, default_board: str) -> list[Found]:
    """Jobs by number with their time in the window, their boards' one name, and their hosts one by one.

    `boards` is how many boards a job has while it runs, a slice (MIG) being its part of one; `ran_share` the part of its time in which it
    ran; `held_us` its GPU time in the window. When it was suspended within its time is not known, so that is taken as even.
    """
    names = [name for (name,) in con.execute("SELECT DISTINCT gpu_model FROM jobs UNION SELECT DISTINCT gpu_model FROM meters").fetchall()]
    one_name = {"": "", **board_names([*names, default_board])}
    rows = [(text, board, board_share(text or default_board)) for text, board in one_name.items()]
    table(con, "audit_boards", "text VARCHAR, board VARCHAR, board_share DOUBLE", rows)
    inside = f"end_us > {window.from_us} AND start_us < {window.until_us} AND end_us > start_us"
    away = share("suspended_us", "start_us", "end_us", "begin_us", "until_us")
    con.execute(f"""
        CREATE OR REPLACE TABLE audit_jobs AS
        WITH inside AS (
            SELECT row_number() OVER (ORDER BY start_us, cluster, job_id) AS job_no, j.* EXCLUDE (gpu_model, suspended_us, gpus), CASE WHEN gpus > {MOST_GPUS} THEN 0 ELSE gpus END AS gpus,
                CASE WHEN b.board = '' AND j.gpus > 0 THEN '{default_board.replace("'", "''")}' ELSE b.board END AS gpu_model, coalesce(b.board_share, 1) AS board_share,
                least(greatest(coalesce(suspended_us, 0), 0), end_us - start_us) AS suspended_us, greatest(start_us, {window.from_us}) AS begin_us, least(end_us, {window.until_us}) AS until_us
            FROM jobs j JOIN audit_boards b ON b.text = j.gpu_model WHERE {inside})
        SELECT * EXCLUDE (board_share), gpus * board_share AS boards, 1 - suspended_us / (end_us - start_us) AS ran_share,
            CASE WHEN board_share = 1 THEN gpus * (until_us - begin_us - {away}) ELSE round(gpus * board_share * (until_us - begin_us - {away}))::BIGINT END AS held_us
        FROM inside""")
    lists = [text for (text,) in con.execute("SELECT DISTINCT hosts FROM audit_jobs WHERE hosts <> ''").fetchall()]
    table(
        con,
        "audit_host_lists",
        "hosts VARCHAR, host VARCHAR, hosts_in_list BIGINT",
        [(t, short(h), len(e)) for t in lists for e in [expanded(t)] for h in e],
    )
    count, first = con.execute(f"SELECT count(*), min(job_id) FROM jobs WHERE gpus > {MOST_GPUS} AND {inside}").fetchall()[0]
    impossible = f"[job|jobs] with more than {MOST_GPUS:,} GPUs, such as job {first}: no job has so many, [its|their] GPU time is left out"
    return [Found("gpus-impossible", impossible, count), *_suspensions(con, inside), *_slices(con)]


def _suspensions(con: Any, inside: str) -> list[Found]:
    """What was left out of the GPU time of jobs that were suspended, and of how many jobs nobody can tell."""
    count, away_us = con.execute(
        "SELECT count(*), coalesce(sum(boards * (until_us - begin_us) - held_us), 0) FROM audit_jobs WHERE suspended_us > 0 AND gpus > 0"
    ).fetchall()[0]
    (unknown,) = con.execute(f"SELECT count(*) FROM jobs WHERE suspended_us IS NULL AND gpus > 0 AND {inside}").fetchall()[0]
    why = (
        f"[job that was suspended for a part of its|jobs that were suspended for a part of their] time: {_few(hours_from_microseconds(away_us))} GPU-hours of it are not [its own|theirs]; "
        "when it was is not known, so it is taken as even over [its|their] time, on metered hosts where other jobs left no room"
    )
    whole = "[job of which nobody says how long it|jobs of which nobody says how long they] ran (Elapsed), only when [it|they] began and ended: a suspension would not be seen, [its|their] whole time counts"
    return [Found("suspended", why, count), Found("suspension-unknown", whole, unknown)]


def _few(hours: float) -> str:
    """12.5, or 0.0033 of a few seconds."""
    return f"{hours:,.1f}" if hours >= 0.1 else f"{hours:.2g}"


def _slices(con: Any) -> list[Found]:
    """How many jobs had slices of boards, and of how many the profile does not tell how much of a board that is."""
    told, unclear = con.execute(
        "SELECT count(*) FILTER (board_share < 1), count(*) FILTER (board_share IS NULL) FROM audit_jobs j JOIN audit_boards b ON b.text = j.gpu_model WHERE gpus > 0"
    ).fetchall()[0]
    return [
        Found("slices-as-parts", "[job|jobs] that had slices of boards (MIG); a slice counts as its part of the board's compute", told),
        Found(
            "slices-as-boards",
            "[job|jobs] that had slices of boards (MIG) of which nobody knows how much of a board they are, or of several sizes; each counts as a board",
            unclear,
        ),
    ]


def _link_records(con: Any) -> list[Found]:
    """Records of runs inside jobs of Slurm are those jobs' energy: found by the board's host and the time, else by the time alone."""
    con.execute(f"""
        CREATE OR REPLACE TABLE audit_links AS
        WITH own AS (SELECT job_no, job_id, start_us, end_us, gpus, gpu_model FROM audit_jobs WHERE cluster = '{OWN_CLUSTER}'),
        places AS (SELECT DISTINCT o.job_no, f.host FROM own o JOIN audit_meters m ON m.job_id = o.job_id JOIN audit_meters f ON f.device = m.device AND f.is_free AND f.host <> ''),
        around AS (SELECT o.job_no, j.job_no AS around_no, l.host FROM own o JOIN audit_jobs j ON j.cluster <> '{OWN_CLUSTER}' AND j.start_us <= o.start_us + {_SLACK_US}
            AND j.end_us >= o.end_us - {_SLACK_US} AND j.gpus >= o.gpus AND (j.gpu_model = '' OR o.gpu_model = '' OR j.gpu_model = o.gpu_model)
            LEFT JOIN audit_host_lists l ON l.hosts = j.hosts),
        known AS (SELECT DISTINCT a.job_no, a.around_no FROM around a LEFT JOIN places p ON p.job_no = a.job_no
            WHERE p.host IS NULL OR p.host = a.host)
        SELECT job_no, min(around_no) AS around_no, count(*) AS candidates FROM known GROUP BY 1""")
    linked, unclear = con.execute("SELECT count(*) FILTER (candidates = 1), count(*) FILTER (candidates > 1) FROM audit_links").fetchall()[
        0
    ]
    (unclear_mj,) = con.execute(
        "SELECT coalesce(sum(m.energy_mj), 0) FROM audit_meters m JOIN audit_jobs j ON j.job_id = m.job_id JOIN audit_links USING (job_no) WHERE candidates > 1"
    ).fetchall()[0]
    con.execute("ALTER TABLE audit_meters ADD COLUMN is_left_out BOOLEAN DEFAULT false")
    if unclear:
        con.execute(
            "UPDATE audit_meters SET is_left_out = true WHERE job_id IN (SELECT job_id FROM audit_jobs JOIN audit_links USING (job_no) WHERE candidates > 1)"
        )
    return [
        Found(
            "record-in-job",
            "[record of a run|records of runs] inside a job of Slurm; [its|their] energy is that job's for [its|their] own time, once",
            linked,
        ),
        Found(
            "record-in-jobs",
            "[record that lies|records that lie] inside several jobs of Slurm; which one is not known, so those jobs' own figures stand",
            unclear,
            int(unclear_mj),
        ),
    ]


def _of_jobs(con: Any) -> list[Found]:
    """Readings that name their job."""
    con.execute(f"""
        CREATE OR REPLACE TABLE audit_named AS
        WITH named AS (SELECT rowid AS reading, * FROM audit_meters WHERE NOT is_free AND NOT is_left_out)
        SELECT n.*, j.job_no, n.start_us // {HOUR_US} AS hour FROM named n LEFT JOIN audit_jobs j ON j.job_id = n.job_id AND j.start_us < n.end_us AND j.end_us > n.start_us
        QUALIFY row_number() OVER (PARTITION BY n.reading ORDER BY least(j.end_us, n.end_us) - greatest(j.start_us, n.start_us) DESC NULLS LAST, j.job_no) = 1""")
    con.execute("""
        INSERT INTO audit_pieces
        SELECT CASE WHEN job_no IS NULL THEN 'unattributed' ELSE 'job' END, CASE method WHEN 'model' THEN 'estimated' WHEN 'reported' THEN 'reported' ELSE 'measured' END,
            method, coalesce(l.around_no, job_no), gpu_model, start_us, end_us, energy_mj,
            CASE WHEN kind = 'gpu' AND method <> 'model' THEN ((end_us - start_us) * least(read_share, 1))::BIGINT ELSE 0 END, false,
            CASE WHEN job_no IS NULL THEN 'its job is not in the ledger' ELSE '' END
        FROM audit_named LEFT JOIN audit_links l USING (job_no)""")
    con.execute("DELETE FROM audit_jobs WHERE job_no IN (SELECT job_no FROM audit_links)")
    return []


def _without_boards(con: Any) -> list[Found]:
    (count,) = con.execute(
        "SELECT count(*) FROM audit_jobs j WHERE gpus = 0 AND NOT EXISTS (SELECT 1 FROM audit_pieces p WHERE p.job_no = j.job_no)"
    ).fetchall()[0]
    return [Found("no-gpu", "[job|jobs] without a GPU and without an energy; [it is|they are] not in the figures", count)]
