"""Job ledger against meter ledger: what of the metered energy is whose, what was idle, and what nobody accounts for.

Everything becomes pieces: so many millijoules, evenly within a time, of a job or of none. Shares are differences of one rounded
cumulative sum, so the pieces of a reading add up to it to the millijoule, however it is cut.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from carbonreport.audit.tables import HOUR_US, MJ_PER_J, US_PER_S
from carbonreport.audit.window import Window, board_names, expanded

OWN_CLUSTER = "carbonreport"  # of jobs that are records
_SLACK_US = 60 * US_PER_S  # a run begins after its job and ends before it, by two clocks
_LEAST_MEASURED_US = 10 * HOUR_US  # GPU time that a measured mean power must rest on


@dataclass(frozen=True, slots=True)
class Found:
    """Something that would have been counted twice or wrongly.

    Attributes:
        slug: What it is, for programs.
        text: The same in words.
        count: How many rows, jobs or hours.
        energy_mj: Energy that it concerns, None where that is not known. [mJ]
    """

    slug: str
    text: str
    count: int
    energy_mj: int | None = None


def reconcile(con: Any, window: Window, rated_watts: Callable[[str], float | None], default_board: str = "") -> tuple[Found, ...]:
    """Make the tables `audit_jobs`, `audit_pieces` and `audit_hosts` of the window out of `jobs` and `meters`.

    Args:
        con: DuckDB with the two tables.
        window: Year that is audited.
        rated_watts: What a board of that name draws typically, for hours that nobody measured; None where nobody knows.
        default_board: The board of jobs whose type nobody says, as somebody says now.
    """
    found: list[Found] = []
    _prepare(con, window, default_board)
    found += _clip_meters(con, window)
    found += _link_records(con)
    con.execute("""
        CREATE OR REPLACE TABLE audit_pieces (use VARCHAR, known VARCHAR, method VARCHAR, job_no BIGINT, gpu_model VARCHAR, start_us BIGINT, end_us BIGINT,
            energy_mj BIGINT, covered_us BIGINT, is_split BOOLEAN, why VARCHAR)""")
    found += _of_jobs(con)
    found += _of_hosts(con)
    found += _reported(con)
    _estimated(con, rated_watts)
    found += _without_boards(con)
    return tuple(one for one in found if one.count)


def _share(energy: str, start: str, end: str, a: str, b: str) -> str:
    """SQL of the whole millijoules of [start, end] that lie in [a, b]; of adjoining stretches they add up exactly."""
    length = f"greatest({end} - {start}, 1)::DOUBLE"

    def upto(t: str) -> str:
        return f"round({energy} * ((least(greatest({t}, {start}), {end}) - {start}) / {length}))::BIGINT"

    return f"({upto(b)} - {upto(a)})"


def _prepare(con: Any, window: Window, default_board: str) -> None:
    """Jobs by number with their time in the window, their boards' one name, and their hosts one by one."""
    names = [name for (name,) in con.execute("SELECT DISTINCT gpu_model FROM jobs UNION SELECT DISTINCT gpu_model FROM meters").fetchall()]
    _table(con, "audit_boards", "text VARCHAR, board VARCHAR", list({"": "", **board_names([*names, default_board])}.items()))
    con.execute(f"""
        CREATE OR REPLACE TABLE audit_jobs AS
        SELECT row_number() OVER (ORDER BY start_us, cluster, job_id) AS job_no, j.* EXCLUDE (gpu_model),
            CASE WHEN b.board = '' AND gpus > 0 THEN '{default_board.replace("'", "''")}' ELSE b.board END AS gpu_model,
            greatest(start_us, {window.from_us}) AS begin_us, least(end_us, {window.until_us}) AS until_us
        FROM jobs j JOIN audit_boards b ON b.text = j.gpu_model WHERE end_us > {window.from_us} AND start_us < {window.until_us} AND end_us > start_us""")
    lists = [text for (text,) in con.execute("SELECT DISTINCT hosts FROM audit_jobs WHERE hosts <> ''").fetchall()]
    _table(
        con,
        "audit_host_lists",
        "hosts VARCHAR, host VARCHAR, hosts_in_list BIGINT",
        [(t, _short(h), len(e)) for t in lists for e in [expanded(t)] for h in e],
    )


def _clip_meters(con: Any, window: Window) -> list[Found]:
    """The table `audit_meters`: readings in the window, each moment of a device once."""
    con.execute(f"""
        CREATE OR REPLACE TABLE audit_clipped AS
        SELECT device, kind, lower(split_part(host, '.', 1)) AS host, method, b.board AS gpu_model, job_id, coalesce(job_id, '') = '' AS is_free,
            greatest(start_us, {window.from_us}) AS start_us, least(end_us, {window.until_us}) AS end_us, read_us / greatest(end_us - start_us, 1) AS read_share,
            {_share("energy_mj", "start_us", "end_us", str(window.from_us), str(window.until_us))} AS energy_mj
        FROM meters m JOIN audit_boards b ON b.text = m.gpu_model
        WHERE end_us > {window.from_us} AND start_us < {window.until_us} AND end_us > start_us AND energy_mj IS NOT NULL""")
    (unknown,) = con.execute("SELECT count(*) FROM meters WHERE energy_mj IS NULL").fetchall()[0]
    con.execute(f"""
        CREATE OR REPLACE TABLE audit_once AS
        WITH seen AS (SELECT *, max(end_us) OVER (PARTITION BY device, kind, is_free ORDER BY start_us, end_us DESC, method, energy_mj
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS seen_us FROM audit_clipped)
        SELECT * EXCLUDE (start_us, energy_mj, seen_us), least(greatest(start_us, coalesce(seen_us, start_us)), end_us) AS start_us,
            energy_mj - {_share("energy_mj", "start_us", "end_us", "start_us", "coalesce(seen_us, start_us)")} AS energy_mj, energy_mj AS whole_mj
        FROM seen""")
    twice, twice_mj = con.execute(
        "SELECT count(*), coalesce(sum(whole_mj - energy_mj), 0) FROM audit_once WHERE energy_mj < whole_mj"
    ).fetchall()[0]
    # What a record measured of a board is in that board's hours too: it is taken out of the hours.
    con.execute(f"""
        CREATE OR REPLACE TABLE audit_meters AS
        WITH inside AS (
            SELECT f.device, f.kind, f.start_us, sum({_share("o.energy_mj", "o.start_us", "o.end_us", "f.start_us", "f.end_us")}) AS inside_mj,
                sum(least(o.end_us, f.end_us) - greatest(o.start_us, f.start_us)) AS inside_us
            FROM audit_once f JOIN audit_once o ON o.device = f.device AND o.kind = f.kind AND f.is_free AND NOT o.is_free AND o.start_us < f.end_us AND o.end_us > f.start_us
            GROUP BY ALL)
        SELECT f.* EXCLUDE (energy_mj, whole_mj), greatest(f.energy_mj - coalesce(inside_mj, 0), 0)::BIGINT AS energy_mj, least(coalesce(inside_mj, 0), f.energy_mj)::BIGINT AS taken_mj,
            greatest(f.end_us - f.start_us - coalesce(inside_us, 0), 0)::BIGINT AS free_us
        FROM audit_once f LEFT JOIN inside i ON f.is_free AND i.device = f.device AND i.kind = f.kind AND i.start_us = f.start_us WHERE f.end_us > f.start_us""")
    nested, nested_mj = con.execute("SELECT count(*), coalesce(sum(taken_mj), 0) FROM audit_meters WHERE taken_mj > 0").fetchall()[0]
    for name in ("audit_clipped", "audit_once"):
        con.execute(f"DROP TABLE {name}")
    return [
        Found("meter-unknown", "readings of a device without an energy; they are unknown, not 0", unknown),
        Found("meter-twice", "readings of a device for a time that another reading of it has; counted once", twice, int(twice_mj)),
        Found("record-in-meter", "hours of a board that hold what a record measured of it; counted once", nested, int(nested_mj)),
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
        Found("record-in-job", "records of runs inside a job of Slurm; their energy is that job's, once", linked),
        Found(
            "record-in-jobs",
            "records that lie inside several jobs of Slurm; which one is not known, so those jobs' own figures stand",
            unclear,
            int(unclear_mj),
        ),
    ]


def _of_jobs(con: Any) -> list[Found]:
    """Readings that name their job."""
    con.execute("""
        INSERT INTO audit_pieces
        WITH named AS (SELECT rowid AS reading, * FROM audit_meters WHERE NOT is_free AND NOT is_left_out),
        matched AS (
            SELECT n.*, j.job_no FROM named n LEFT JOIN audit_jobs j ON j.job_id = n.job_id AND j.start_us < n.end_us AND j.end_us > n.start_us
            QUALIFY row_number() OVER (PARTITION BY n.reading ORDER BY least(j.end_us, n.end_us) - greatest(j.start_us, n.start_us) DESC NULLS LAST, j.job_no) = 1)
        SELECT CASE WHEN job_no IS NULL THEN 'unattributed' ELSE 'job' END, CASE method WHEN 'model' THEN 'estimated' WHEN 'reported' THEN 'reported' ELSE 'measured' END,
            method, coalesce(l.around_no, job_no), gpu_model, start_us, end_us, energy_mj,
            CASE WHEN kind = 'gpu' AND method <> 'model' THEN ((end_us - start_us) * least(read_share, 1))::BIGINT ELSE 0 END, false,
            CASE WHEN job_no IS NULL THEN 'its job is not in the ledger' ELSE '' END
        FROM matched LEFT JOIN audit_links l USING (job_no)""")
    con.execute("DELETE FROM audit_jobs WHERE job_no IN (SELECT job_no FROM audit_links)")
    return []


def _of_hosts(con: Any) -> list[Found]:
    """Readings of boards by host and hour: of the jobs that had the host then, by their GPU time; what no job had was idle."""
    con.execute("""
        CREATE OR REPLACE TABLE audit_known_hosts AS SELECT DISTINCT host FROM audit_host_lists""")
    con.execute("""
        INSERT INTO audit_pieces
        SELECT 'unattributed', 'measured', method, NULL, m.gpu_model, start_us, end_us, energy_mj, 0, false,
            CASE WHEN host = '' THEN 'the reading names no host' WHEN kind <> 'gpu' THEN 'the rest of the host' ELSE 'no job was accounted on its host' END
        FROM audit_meters m LEFT JOIN audit_known_hosts k USING (host) WHERE is_free AND energy_mj > 0 AND (k.host IS NULL OR host = '' OR kind <> 'gpu')""")
    con.execute(f"""
        CREATE OR REPLACE TABLE audit_hosts AS
        SELECT host, start_us // {HOUR_US} AS hour, min(start_us) AS start_us, max(end_us) AS end_us, sum(energy_mj)::BIGINT AS energy_mj, sum(free_us)::BIGINT AS room_us,
            max(m.gpu_model) AS gpu_model, count(DISTINCT device) AS boards, min(method) AS method
        FROM audit_meters m JOIN audit_known_hosts USING (host) WHERE is_free AND kind = 'gpu' GROUP BY 1, 2""")
    con.execute(f"""
        CREATE OR REPLACE TABLE audit_held AS
        WITH spans AS (
            SELECT l.host, j.job_no, j.begin_us, j.until_us, j.gpus / l.hosts_in_list AS gpus_here, unnest(range(j.begin_us // {HOUR_US}, (j.until_us - 1) // {HOUR_US} + 1)) AS hour
            FROM audit_jobs j JOIN audit_host_lists l ON l.hosts = j.hosts WHERE j.gpus > 0 AND j.cluster <> '{OWN_CLUSTER}' AND l.host IN (SELECT host FROM audit_hosts))
        SELECT s.host, s.hour, s.job_no, (s.gpus_here * (least(s.until_us, h.end_us) - greatest(s.begin_us, h.start_us)))::BIGINT AS held_us,
            greatest(s.begin_us, h.start_us) AS start_us, least(s.until_us, h.end_us) AS end_us
        FROM spans s JOIN audit_hosts h ON h.host = s.host AND h.hour = s.hour WHERE s.until_us > h.start_us AND s.begin_us < h.end_us""")
    con.execute("""
        CREATE OR REPLACE TABLE audit_use AS
        WITH held AS (SELECT host, hour, sum(held_us)::BIGINT AS held_us, count(*) AS jobs FROM audit_held GROUP BY 1, 2),
        idle AS (SELECT gpu_model, sum(energy_mj) / sum(room_us) AS mj_per_us FROM audit_hosts h WHERE room_us > 0 AND NOT EXISTS (SELECT 1 FROM held WHERE held.host = h.host AND held.hour = h.hour) GROUP BY 1)
        SELECT h.*, coalesce(held_us, 0) AS held_us, coalesce(jobs, 0) AS jobs, idle.mj_per_us,
            CASE WHEN coalesce(held_us, 0) = 0 THEN energy_mj
                ELSE least(round(greatest(room_us - held_us, 0) * coalesce(mj_per_us, 0))::BIGINT, energy_mj) END AS idle_mj
        FROM audit_hosts h LEFT JOIN held USING (host, hour) LEFT JOIN idle USING (gpu_model)""")
    con.execute("""
        INSERT INTO audit_pieces
        SELECT 'idle', CASE WHEN held_us = 0 THEN 'measured' ELSE 'estimated' END, CASE WHEN held_us = 0 THEN method ELSE 'idle power' END, NULL, gpu_model, start_us, end_us, idle_mj, 0, false, ''
        FROM audit_use WHERE idle_mj > 0""")
    con.execute("""
        INSERT INTO audit_pieces
        WITH shared AS (
            SELECT d.*, u.energy_mj - u.idle_mj AS left_mj, u.gpu_model, u.method, u.jobs, u.room_us, u.held_us AS whole_us,
                sum(d.held_us) OVER (PARTITION BY d.host, d.hour ORDER BY d.job_no ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS upto_us
            FROM audit_held d JOIN audit_use u ON u.host = d.host AND u.hour = d.hour WHERE d.held_us > 0)
        SELECT 'job', 'measured', method, job_no, gpu_model, start_us, end_us,
            round(left_mj * (upto_us / whole_us))::BIGINT - round(left_mj * ((upto_us - held_us) / whole_us))::BIGINT,
            (held_us * least(1.0, room_us / greatest(whole_us, 1)))::BIGINT, jobs > 1 OR room_us > whole_us * 1.001, ''
        FROM shared""")
    over, over_mj = con.execute("SELECT count(*), coalesce(sum(energy_mj), 0) FROM audit_use WHERE held_us > room_us * 1.01").fetchall()[0]
    con.execute("DROP TABLE audit_held")
    return [Found("host-overfull", "hours in which the jobs of a host held more GPU time than was metered there", over, int(over_mj))]


def _reported(con: Any) -> list[Found]:
    """Slurm's energy of whole nodes, where the job had them alone: what the meters have of it stays, the rest of the node comes on top."""
    con.execute("""
        CREATE OR REPLACE TABLE audit_alone AS
        WITH placed AS (
            SELECT j.job_no, j.start_us, j.end_us, l.host FROM audit_jobs j JOIN audit_host_lists l ON l.hosts = j.hosts
            WHERE l.host IN (SELECT host FROM audit_host_lists JOIN audit_jobs USING (hosts) WHERE energy_mj IS NOT NULL AND exclusive IS NULL)),
        met AS (SELECT job_no, coalesce(max(end_us) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) > start_us, false)
            OR coalesce(lead(start_us) OVER w < end_us, false) AS is_met FROM placed WINDOW w AS (PARTITION BY host ORDER BY start_us, job_no))
        SELECT job_no, NOT bool_or(is_met) AS is_alone FROM met GROUP BY 1""")
    shared, shared_mj = con.execute(
        "SELECT count(*), coalesce(sum(energy_mj), 0) FROM audit_jobs LEFT JOIN audit_alone USING (job_no) WHERE energy_mj IS NOT NULL AND method = 'reported' "
        f"AND cluster <> '{OWN_CLUSTER}' AND NOT coalesce(exclusive, is_alone, false)"
    ).fetchall()[0]
    con.execute(f"""
        CREATE OR REPLACE TABLE audit_nodes AS
        WITH metered AS (SELECT job_no, sum(energy_mj) AS metered_mj FROM audit_pieces WHERE use = 'job' GROUP BY 1)
        SELECT j.job_no, j.gpu_model, j.begin_us, j.until_us, coalesce(metered_mj, 0)::BIGINT AS metered_mj,
            {_share("energy_mj", "start_us", "end_us", "begin_us", "until_us")} AS node_mj
        FROM audit_jobs j LEFT JOIN audit_alone USING (job_no) LEFT JOIN metered USING (job_no)
        WHERE energy_mj IS NOT NULL AND method = 'reported' AND cluster <> '{OWN_CLUSTER}' AND coalesce(exclusive, is_alone, false)""")
    con.execute("""
        INSERT INTO audit_pieces SELECT 'job', 'reported', 'reported', job_no, gpu_model, begin_us, until_us, node_mj - metered_mj, 0, false, ''
        FROM audit_nodes WHERE node_mj > metered_mj""")
    below, below_mj = con.execute(
        "SELECT count(*), coalesce(sum(metered_mj - node_mj), 0) FROM audit_nodes WHERE node_mj < metered_mj"
    ).fetchall()[0]
    return [
        Found("node-shared", "jobs whose node energy holds other jobs too, or may: it is not used", shared, int(shared_mj)),
        Found(
            "node-below-boards",
            "jobs whose node is said to have used less than its boards were metered at; the meters count",
            below,
            int(below_mj),
        ),
    ]


def _estimated(con: Any, rated_watts: Callable[[str], float | None]) -> None:
    """GPU time that nobody measured, at the mean power that the lab measured of that board, else at what such a board draws typically."""
    con.execute("""
        CREATE OR REPLACE TABLE audit_covered AS
        SELECT job_no, sum(covered_us)::BIGINT AS covered_us, sum(energy_mj) FILTER (covered_us > 0) AS covered_mj, bool_or(known = 'reported') AS has_node,
            bool_or(known = 'estimated') AS has_model
        FROM audit_pieces WHERE use = 'job' GROUP BY 1""")
    con.execute("""
        CREATE OR REPLACE TABLE audit_open AS
        SELECT j.job_no, j.begin_us, j.until_us, coalesce(nullif(j.gpu_model, ''), h.gpu_model, '') AS gpu_model, j.gpus * (j.until_us - j.begin_us) AS gpu_us,
            CASE WHEN coalesce(has_node, false) THEN j.gpus * (j.until_us - j.begin_us) ELSE least(coalesce(covered_us, 0), j.gpus * (j.until_us - j.begin_us)) END AS covered_us,
            coalesce(covered_us, 0) AS metered_us, covered_mj
        FROM audit_jobs j LEFT JOIN audit_covered USING (job_no)
            LEFT JOIN (SELECT l.hosts, max(u.gpu_model) AS gpu_model FROM audit_host_lists l JOIN audit_hosts u USING (host) GROUP BY 1) h USING (hosts)
        WHERE j.gpus > 0 AND NOT coalesce(has_model, false)""")
    measured = dict(
        con.execute(
            f"SELECT gpu_model, sum(covered_mj) / sum(metered_us) FROM audit_open WHERE metered_us > 0 GROUP BY 1 HAVING sum(metered_us) >= {_LEAST_MEASURED_US}"
        ).fetchall()
    )
    powers = []
    for (model,) in con.execute("SELECT DISTINCT gpu_model FROM audit_open").fetchall():
        typical = rated_watts(model) if model else None
        if model in measured:
            powers.append((model, measured[model], "mean of the lab"))
        elif typical is not None:
            powers.append((model, typical * MJ_PER_J / US_PER_S, "rated power"))
    _table(con, "audit_powers", "gpu_model VARCHAR, mj_per_us DOUBLE, basis VARCHAR", powers)
    con.execute("""
        INSERT INTO audit_pieces
        SELECT 'job', 'estimated', CASE WHEN metered_us > gpu_us / 2 THEN 'mean of the lab' ELSE basis END, job_no, o.gpu_model, begin_us, until_us,
            round((gpu_us - o.covered_us) * CASE WHEN metered_us > gpu_us / 2 THEN covered_mj / metered_us ELSE mj_per_us END)::BIGINT, 0, false, ''
        FROM audit_open o JOIN audit_powers USING (gpu_model) WHERE gpu_us > o.covered_us""")


def _without_boards(con: Any) -> list[Found]:
    (count,) = con.execute(
        "SELECT count(*) FROM audit_jobs j WHERE gpus = 0 AND NOT EXISTS (SELECT 1 FROM audit_pieces p WHERE p.job_no = j.job_no)"
    ).fetchall()[0]
    return [Found("no-gpu", "jobs without a GPU and without an energy; they are not in the figures", count)]


def _short(host: str) -> str:
    return host.partition(".")[0].lower()


def _table(con: Any, name: str, kinds: str, rows: list[tuple[Any, ...]]) -> None:
    con.execute(f"CREATE OR REPLACE TABLE {name} ({kinds})")
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        con.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
