"""Energy of hosts: of the jobs that had them, of nobody, or idle; and what Slurm reports of whole nodes."""

from typing import Any

from carbonreport.audit.pieces import Found, share
from carbonreport.audit.tables import OWN_CLUSTER
from carbonreport.units import HOUR_US

_ALONE = "(coalesce(exclusive, is_alone, false) AND (suspended_us = 0 OR coalesce(is_alone, false)))"


def of_hosts(con: Any) -> list[Found]:
    """Readings of boards by host and hour: of the jobs that had the host then, by their GPU time; what no job had was idle."""
    con.execute("""
        CREATE OR REPLACE TABLE audit_known_hosts AS SELECT DISTINCT host FROM audit_host_lists""")
    con.execute("""
        INSERT INTO audit_pieces
        SELECT 'unattributed', 'measured', method, NULL, m.gpu_model, start_us, end_us, energy_mj, 0, false,
            CASE WHEN host = '' THEN 'the reading names no host' ELSE 'no job was accounted on its host' END
        FROM audit_meters m LEFT JOIN audit_known_hosts k USING (host) WHERE is_free AND energy_mj > 0 AND (host = '' OR (kind = 'gpu' AND k.host IS NULL))""")
    con.execute("""
        CREATE OR REPLACE TABLE audit_rest AS
        SELECT row_number() OVER () AS reading, host, method, gpu_model, start_us, end_us, energy_mj FROM audit_meters WHERE is_free AND energy_mj > 0 AND host <> '' AND kind <> 'gpu'""")
    con.execute(f"""
        CREATE OR REPLACE TABLE audit_hosts AS
        SELECT host, start_us // {HOUR_US} AS hour, min(start_us) AS start_us, max(end_us) AS end_us, sum(energy_mj)::BIGINT AS energy_mj, sum(free_us)::BIGINT AS room_us,
            sum(span_us)::BIGINT AS span_us,
            max(m.gpu_model) AS gpu_model, count(DISTINCT device) AS boards, min(method) AS method
        FROM audit_meters m JOIN audit_known_hosts USING (host) WHERE is_free AND kind = 'gpu' GROUP BY 1, 2""")
    con.execute(f"""
        CREATE OR REPLACE TABLE audit_held AS
        WITH spans AS (
            SELECT l.host, j.job_no, j.begin_us, j.until_us, j.boards / l.hosts_in_list AS boards_here, j.ran_share, l.hosts_in_list, j.cluster, unnest(range(j.begin_us // {HOUR_US}, (j.until_us - 1) // {HOUR_US} + 1)) AS hour
            FROM audit_jobs j JOIN audit_host_lists l ON l.hosts = j.hosts WHERE j.gpus > 0 AND j.cluster <> '{OWN_CLUSTER}' AND l.host IN (SELECT host FROM audit_hosts)),
        named AS (SELECT job_no, start_us // {HOUR_US} AS hour, sum(covered_us) AS named_us FROM audit_pieces WHERE use = 'job' AND covered_us > 0 GROUP BY 1, 2)
        SELECT s.host, s.hour, s.job_no, s.cluster, s.ran_share, s.ran_share * s.boards_here * (s.until_us - s.begin_us) AS ran_here_us, coalesce(named_us, 0) / s.hosts_in_list AS named_us, greatest(s.boards_here * (least(s.until_us, h.end_us) - greatest(s.begin_us, h.start_us)) * coalesce(h.room_us / nullif(h.span_us, 0), 1)
                - coalesce(named_us, 0) / s.hosts_in_list, 0)::BIGINT AS held_us,
            greatest(s.begin_us, h.start_us) AS start_us, least(s.until_us, h.end_us) AS end_us
        FROM spans s JOIN audit_hosts h ON h.host = s.host AND h.hour = s.hour LEFT JOIN named n ON n.job_no = s.job_no AND n.hour = s.hour
        WHERE s.until_us > h.start_us AND s.begin_us < h.end_us""")
    _place_suspensions(con)
    idle = _idle_power(con)
    con.execute("""
        CREATE OR REPLACE TABLE audit_use AS
        SELECT h.*, coalesce(held_us, 0) AS held_us, coalesce(jobs, 0) AS jobs, idle.mj_per_us,
            CASE WHEN coalesce(held_us, 0) = 0 THEN energy_mj
                ELSE least(round(greatest(room_us - held_us, 0) * coalesce(mj_per_us, 0))::BIGINT, energy_mj) END AS idle_mj
        FROM audit_hosts h LEFT JOIN audit_busy USING (host, hour) LEFT JOIN audit_idle idle USING (gpu_model)""")
    (nameless,) = con.execute(
        "SELECT count(*) FROM audit_use WHERE held_us > 0 AND room_us - held_us > room_us * 0.01 AND mj_per_us IS NULL"
    ).fetchall()[0]
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
            (held_us * least(1.0, room_us / greatest(whole_us, 1)))::BIGINT, jobs > 1, ''
        FROM shared""")
    over, over_mj = con.execute("SELECT count(*), coalesce(sum(energy_mj), 0) FROM audit_use WHERE held_us > room_us * 1.01").fetchall()[0]
    namesakes, namesakes_mj = con.execute("""
        WITH shared AS (SELECT host FROM audit_held WHERE held_us > 0 GROUP BY 1 HAVING count(DISTINCT cluster) > 1)
        SELECT count(DISTINCT host), coalesce(sum(energy_mj) FILTER (held_us > 0), 0) FROM audit_use JOIN shared USING (host)""").fetchall()[0]
    for name in ("held", "busy", "idle"):
        con.execute(f"DROP TABLE audit_{name}")
    return [
        *idle,
        Found(
            "idle-unknown",
            "[hour|hours] in which boards waited beside jobs, while nobody knows what such a board draws when it waits: no hour without a job was metered; that energy is the jobs'",
            nameless,
        ),
        Found("host-overfull", "[hour|hours] in which the jobs of a host held more GPU time than was metered there", over, int(over_mj)),
        Found(
            "host-of-several-clusters",
            "[host|hosts] that jobs of several clusters name; a reading names no cluster, so that [its|their] energy is shared by jobs of all of them",
            namesakes,
            int(namesakes_mj),
        ),
    ]


def _idle_power(con: Any) -> list[Found]:
    """The tables `audit_busy` of hours with jobs and `audit_idle` of idle powers: of hosts without a job; where there was no such hour, of the boards that drew least beside jobs."""
    con.execute(
        "CREATE OR REPLACE TABLE audit_busy AS SELECT host, hour, sum(held_us)::BIGINT AS held_us, count(*) AS jobs FROM audit_held WHERE held_us > 0 GROUP BY 1, 2"
    )
    con.execute("""
        CREATE OR REPLACE TABLE audit_idle AS
        SELECT gpu_model, sum(energy_mj) / sum(room_us) AS mj_per_us FROM audit_hosts h WHERE room_us > 0 AND NOT EXISTS (SELECT 1 FROM audit_busy b WHERE b.host = h.host AND b.hour = h.hour) GROUP BY 1""")
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE audit_waiting AS
        WITH room AS (
            SELECT h.host, h.hour, h.gpu_model, floor((h.room_us - b.held_us) * h.boards / h.room_us + 0.01) AS waiting FROM audit_hosts h JOIN audit_busy b USING (host, hour)
            WHERE h.room_us > b.held_us AND waiting >= 1 AND NOT EXISTS (SELECT 1 FROM audit_idle i WHERE i.gpu_model = h.gpu_model)),
        drawn AS (
            SELECT r.host, r.hour, any_value(r.gpu_model) AS gpu_model, any_value(r.waiting) AS waiting, sum(m.energy_mj) AS energy_mj, sum(m.free_us) AS us
            FROM audit_meters m JOIN room r ON r.host = m.host AND r.hour = m.start_us // {HOUR_US} WHERE m.is_free AND m.kind = 'gpu' GROUP BY r.host, r.hour, m.device HAVING sum(m.free_us) > 0),
        least_first AS (SELECT *, row_number() OVER (PARTITION BY host, hour ORDER BY energy_mj / us) AS place FROM drawn)
        SELECT gpu_model, sum(energy_mj) / sum(us) AS mj_per_us, count(*) AS hours FROM least_first WHERE place <= waiting GROUP BY 1""")
    con.execute("INSERT INTO audit_idle SELECT gpu_model, mj_per_us FROM audit_waiting")
    (hours,) = con.execute("SELECT coalesce(sum(hours), 0) FROM audit_waiting").fetchall()[0]
    con.execute("DROP TABLE audit_waiting")
    why = "[hour|hours] of boards that drew least beside jobs; they stand for what such a board draws when it waits, since no host of them was without a job while it was metered"
    return [Found("idle-beside-jobs", why, int(hours))]


def _place_suspensions(con: Any) -> None:
    """GPU time of suspended jobs on metered hosts, first into the hours in which the other jobs left room there, the rest evenly.

    Even everywhere, a host would seem to wait while such a job ran, and to be overfull while another one ran in its place. Where a part of
    the job's time was metered, that takes as much as it can hold: what was drawn there would otherwise seem to be of half the time.
    """
    con.execute("""
        UPDATE audit_held SET held_us = p.held_us FROM (
            WITH others AS (SELECT host, hour, sum(held_us) AS us FROM audit_held WHERE ran_share = 1 GROUP BY 1, 2),
            rooms AS (SELECT d.*, least(d.held_us, greatest(h.room_us - coalesce(o.us, 0), 0)) AS room_us
                FROM audit_held d JOIN audit_hosts h ON h.host = d.host AND h.hour = d.hour LEFT JOIN others o ON o.host = d.host AND o.hour = d.hour WHERE d.ran_share < 1),
            sums AS (SELECT *, least(greatest(ran_here_us - sum(named_us) OVER w, 0), sum(held_us) OVER w) AS ran_us, sum(held_us) OVER w AS most_us, sum(room_us) OVER w AS rooms_us
                FROM rooms WINDOW w AS (PARTITION BY host, job_no))
            SELECT host, hour, job_no, round(CASE WHEN ran_us <= rooms_us THEN room_us * coalesce(ran_us / nullif(rooms_us, 0), 0)
                ELSE room_us + (held_us - room_us) * least((ran_us - rooms_us) / (most_us - rooms_us), 1) END)::BIGINT AS held_us FROM sums) p
        WHERE p.host = audit_held.host AND p.hour = audit_held.hour AND p.job_no = audit_held.job_no""")


def reported(con: Any) -> list[Found]:
    """Slurm's energy of whole nodes, where the job had them alone: what the meters have of it stays, the rest of the node comes on top.

    A job that was suspended may have had its nodes for itself and still not alone: another one may have run there in its place.
    """
    con.execute("""
        CREATE OR REPLACE TABLE audit_alone AS
        WITH placed AS (
            SELECT j.job_no, j.start_us, j.end_us, l.host FROM audit_jobs j JOIN audit_host_lists l ON l.hosts = j.hosts
            WHERE l.host IN (SELECT host FROM audit_host_lists JOIN audit_jobs USING (hosts) WHERE energy_mj IS NOT NULL AND (exclusive IS NULL OR suspended_us > 0))),
        met AS (SELECT job_no, coalesce(max(end_us) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) > start_us, false)
            OR coalesce(lead(start_us) OVER w < end_us, false) AS is_met FROM placed WINDOW w AS (PARTITION BY host ORDER BY start_us, job_no))
        SELECT job_no, NOT bool_or(is_met) AS is_alone FROM met GROUP BY 1""")
    shared, shared_mj = con.execute(
        "SELECT count(*), coalesce(sum(energy_mj), 0) FROM audit_jobs LEFT JOIN audit_alone USING (job_no) WHERE energy_mj IS NOT NULL AND method = 'reported' "
        f"AND cluster <> '{OWN_CLUSTER}' AND NOT {_ALONE}"
    ).fetchall()[0]
    con.execute(f"""
        CREATE OR REPLACE TABLE audit_nodes AS
        WITH metered AS (SELECT job_no, sum(energy_mj) AS metered_mj FROM audit_pieces WHERE use = 'job' GROUP BY 1)
        SELECT j.job_no, j.gpu_model, j.begin_us, j.until_us, coalesce(metered_mj, 0)::BIGINT AS metered_mj,
            {share("energy_mj", "start_us", "end_us", "begin_us", "until_us")} AS node_mj
        FROM audit_jobs j LEFT JOIN audit_alone USING (job_no) LEFT JOIN metered USING (job_no)
        WHERE energy_mj IS NOT NULL AND method = 'reported' AND cluster <> '{OWN_CLUSTER}' AND {_ALONE}""")
    con.execute("""
        INSERT INTO audit_pieces SELECT 'job', 'reported', 'reported', job_no, gpu_model, begin_us, until_us, node_mj - metered_mj, 0, false, ''
        FROM audit_nodes WHERE node_mj > metered_mj""")
    rest, rest_mj = _rest_of_nodes(con)
    below, below_mj = con.execute(
        "SELECT count(*), coalesce(sum(metered_mj - node_mj), 0) FROM audit_nodes WHERE node_mj < metered_mj"
    ).fetchall()[0]
    return [
        Found(
            "rest-in-node",
            "[reading|readings] of the rest of a host that a job's node energy holds; counted once, for the job",
            rest,
            rest_mj,
        ),
        Found("node-shared", "[job|jobs] whose node energy holds other jobs too, or may: it is not used", shared, int(shared_mj)),
        Found(
            "node-below-boards",
            "[job|jobs] whose node is said to have used less than its boards were metered at; the meters count",
            below,
            int(below_mj),
        ),
    ]


def _rest_of_nodes(con: Any) -> tuple[int, int]:
    """The rest of hosts, less what the energy of nodes on top of their boards holds of it; how many readings and millijoules that is."""
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE audit_topped AS
        SELECT r.reading, least(r.energy_mj, sum({share("(n.node_mj - n.metered_mj) / l.hosts_in_list", "n.begin_us", "n.until_us", "r.start_us", "r.end_us")}))::BIGINT AS taken_mj
        FROM audit_rest r JOIN audit_host_lists l ON l.host = r.host JOIN audit_jobs j ON j.hosts = l.hosts JOIN audit_nodes n ON n.job_no = j.job_no
            AND n.node_mj > n.metered_mj AND n.begin_us < r.end_us AND n.until_us > r.start_us
        GROUP BY r.reading, r.energy_mj""")
    count, taken_mj = con.execute("SELECT count(*), coalesce(sum(taken_mj), 0) FROM audit_topped WHERE taken_mj > 0").fetchall()[0]
    con.execute("""
        INSERT INTO audit_pieces
        SELECT 'unattributed', 'measured', method, NULL, gpu_model, start_us, end_us, energy_mj - coalesce(taken_mj, 0), 0, false, 'the rest of the host'
        FROM audit_rest LEFT JOIN audit_topped USING (reading) WHERE energy_mj > coalesce(taken_mj, 0)""")
    for name in ("rest", "topped"):
        con.execute(f"DROP TABLE audit_{name}")
    return int(count), int(taken_mj)
