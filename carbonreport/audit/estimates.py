"""GPU time that nobody measured, and what of it boards were metered for that name neither its job nor its host."""

from collections.abc import Callable
from typing import Any

from carbonreport.audit.pieces import Found, table
from carbonreport.audit.tables import OWN_CLUSTER
from carbonreport.model.slices import is_slice
from carbonreport.units import HOUR_US, MJ_PER_J, US_PER_S

_LEAST_MEASURED_US = 10 * HOUR_US  # GPU time that a measured mean power must rest on
_NEARLY = 0.99  # of a job's GPU time is all of it, by two clocks
_ROUNDED = 1e-6  # of a job's GPU time: parts by the hour are whole microseconds
_ROUNDS = 3  # of sharing boards out among jobs that may have had them


def estimated(con: Any, rated_watts: Callable[[str], float | None]) -> list[Found]:
    """GPU time that nobody measured, at the mean power that the lab measured of that board, else at what such a board draws typically."""
    con.execute("""
        CREATE OR REPLACE TABLE audit_covered AS
        SELECT job_no, sum(covered_us)::BIGINT AS covered_us, sum(energy_mj) FILTER (covered_us > 0) AS covered_mj, bool_or(known = 'reported') AS has_node
        FROM audit_pieces WHERE use = 'job' GROUP BY 1""")
    # A record may stand for a part of its job's time alone, and for processors alone: what a model says of boards is for its own time.
    con.execute(f"""
        CREATE OR REPLACE TABLE audit_open AS
        WITH modelled AS (
            SELECT coalesce(l.around_no, n.job_no) AS job_no, sum((n.end_us - n.start_us) * least(n.read_share, 1))::BIGINT AS us
            FROM audit_named n LEFT JOIN audit_links l USING (job_no) WHERE n.kind = 'gpu' AND n.method = 'model' GROUP BY 1),
        had AS (
            SELECT j.job_no, j.begin_us, j.until_us, coalesce(nullif(j.gpu_model, ''), h.gpu_model, '') AS gpu_model, j.held_us AS gpu_us,
                CASE WHEN coalesce(has_node, false) OR j.held_us - covered_us BETWEEN 0 AND j.held_us * {_ROUNDED!r} THEN j.held_us ELSE least(coalesce(covered_us, 0), j.held_us) END AS covered_us,
                coalesce(covered_us, 0) AS metered_us, covered_mj, coalesce(m.us, 0) AS modelled_us, j.ran_share < 1 AS is_placed  -- nobody knows which of its metered hours it ran in
            FROM audit_jobs j LEFT JOIN audit_covered USING (job_no) LEFT JOIN modelled m USING (job_no)
                LEFT JOIN (SELECT l.hosts, max(u.gpu_model) AS gpu_model FROM audit_host_lists l JOIN audit_hosts u USING (host) GROUP BY 1) h USING (hosts)
            WHERE j.gpus > 0)
        SELECT * EXCLUDE (modelled_us), greatest(gpu_us - covered_us - modelled_us, 0) AS open_us FROM had WHERE modelled_us = 0 OR modelled_us < {_NEARLY} * gpu_us""")
    measured = dict(
        con.execute(
            f"SELECT gpu_model, sum(covered_mj) / sum(metered_us) FROM audit_open WHERE metered_us > 0 AND NOT is_placed GROUP BY 1 HAVING sum(metered_us) >= {_LEAST_MEASURED_US}"
        ).fetchall()
    )
    powers = []
    for (model,) in con.execute("SELECT DISTINCT gpu_model FROM audit_open").fetchall():
        typical = rated_watts(model) if model else None
        if is_slice(model):
            continue  # whoever had one had a host's other boards on its meter, too
        if model in measured:
            powers.append((model, measured[model], "mean of the lab"))
        elif typical is not None:
            powers.append((model, typical * MJ_PER_J / US_PER_S, "rated power"))
    table(con, "audit_powers", "gpu_model VARCHAR, mj_per_us DOUBLE, basis VARCHAR", powers)
    apart = _strays(con)
    is_own = "metered_us >= gpu_us / 2 AND NOT is_placed"
    rate = f"CASE WHEN {is_own} THEN covered_mj / metered_us ELSE mj_per_us END"
    con.execute(f"""
        INSERT INTO audit_pieces
        SELECT 'job', 'estimated', CASE WHEN {is_own} THEN 'mean of the lab' ELSE basis END, job_no, o.gpu_model, begin_us, until_us,
            round(greatest(o.open_us - coalesce(left_us, 0), 0) * {rate})::BIGINT, 0, false, ''
        FROM audit_open o JOIN audit_powers USING (gpu_model) LEFT JOIN audit_left USING (job_no) WHERE o.open_us > coalesce(left_us, 0)""")
    left, left_mj = con.execute(
        f"SELECT count(*), coalesce(sum(round(left_us * {rate})), 0) FROM audit_left JOIN audit_open o USING (job_no) JOIN audit_powers USING (gpu_model)"
    ).fetchall()[0]
    why = "[job|jobs] whose GPU time may be that of boards metered at the same time, whose readings name no host or job that is known; its estimate is left out, the metered energy stands as unattributed"
    return [Found("estimate-or-stray", why, left, int(left_mj)), apart]


def _strays(con: Any) -> Found:
    """The table `audit_left`: GPU time of jobs that boards nobody could match may have been metered for. Counted to the hour."""
    con.execute("CREATE OR REPLACE TABLE audit_left (job_no BIGINT, left_us BIGINT)")
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE audit_spare AS
        WITH strays AS (
            SELECT start_us // {HOUR_US} AS hour, host, gpu_model, free_us AS us, energy_mj FROM audit_meters m LEFT JOIN audit_known_hosts k USING (host)
            WHERE is_free AND kind = 'gpu' AND energy_mj > 0 AND (host = '' OR k.host IS NULL)
            UNION ALL SELECT hour, host, gpu_model, free_us, energy_mj FROM audit_named WHERE job_no IS NULL AND kind = 'gpu' AND method <> 'model' AND energy_mj > 0)
        SELECT hour, host, gpu_model, sum(us)::DOUBLE AS us, sum(energy_mj) AS energy_mj FROM strays GROUP BY ALL""")
    hosts = [host for (host,) in con.execute("SELECT DISTINCT host FROM audit_spare WHERE host <> ''").fetchall()]
    lists = con.execute(
        "SELECT hosts, host FROM audit_host_lists WHERE host NOT IN (SELECT host FROM audit_hosts) OR host IN (SELECT host FROM audit_spare)"
    ).fetchall()
    table(con, "audit_alike", "host VARCHAR, hosts VARCHAR", sorted(_alike(hosts, lists)))
    # Hosts that no job's host is like are one: only jobs that name no host can have been there.
    con.execute("""
        CREATE OR REPLACE TEMP TABLE audit_spare AS
        SELECT row_number() OVER () AS no, hour, CASE WHEN host = '' OR host IN (SELECT host FROM audit_alike) THEN host ELSE '/' END AS host, gpu_model, sum(us) AS us, sum(energy_mj) AS energy_mj
        FROM audit_spare GROUP BY ALL""")
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE audit_wanting AS
        WITH spans AS (
            SELECT o.job_no, o.gpu_model, j.hosts, j.boards * j.ran_share AS boards, o.begin_us, o.until_us, o.open_us, unnest(range(o.begin_us // {HOUR_US}, (o.until_us - 1) // {HOUR_US} + 1)) AS hour
            FROM audit_open o JOIN audit_powers USING (gpu_model) JOIN audit_jobs j USING (job_no) WHERE o.open_us > 0 AND cluster <> '{OWN_CLUSTER}'
                AND o.until_us > (SELECT min(hour) * {HOUR_US} FROM audit_spare) AND o.begin_us < (SELECT (max(hour) + 1) * {HOUR_US} FROM audit_spare)),
        covered AS (SELECT job_no, start_us // {HOUR_US} AS hour, sum(covered_us) AS us FROM audit_pieces WHERE use = 'job' AND covered_us > 0 GROUP BY 1, 2)
        SELECT s.job_no, s.hour, s.gpu_model, s.hosts, s.open_us, greatest(boards * (least(until_us, (s.hour + 1) * {HOUR_US}) - greatest(begin_us, s.hour * {HOUR_US})) - coalesce(c.us, 0), 0)::DOUBLE AS us
        FROM spans s LEFT JOIN covered c ON c.job_no = s.job_no AND c.hour = s.hour WHERE s.hour IN (SELECT hour FROM audit_spare)""")
    con.execute("CREATE OR REPLACE TEMP TABLE audit_taken (no BIGINT, job_no BIGINT, hour BIGINT, us DOUBLE)")
    for turn in range(_ROUNDS):
        models = (
            "w.gpu_model = s.gpu_model AND s.gpu_model <> ''"
            if turn == 0
            else "(w.gpu_model = s.gpu_model OR w.gpu_model = '' OR s.gpu_model = '')"
        )
        con.execute(f"""
            INSERT INTO audit_taken
            WITH spare AS (SELECT s.* EXCLUDE (us), s.us - coalesce(t.us, 0) AS us FROM audit_spare s LEFT JOIN (SELECT no, sum(us) AS us FROM audit_taken GROUP BY 1) t USING (no)),
            wanting AS (SELECT w.* EXCLUDE (us), w.us - coalesce(t.us, 0) AS us FROM audit_wanting w LEFT JOIN (SELECT job_no, hour, sum(us) AS us FROM audit_taken GROUP BY 1, 2) t USING (job_no, hour)),
            offered AS (
                SELECT s.no, w.job_no, w.hour, w.us AS most_us, w.us * least(s.us / sum(w.us) OVER (PARTITION BY s.no), 1.0) AS us
                FROM spare s JOIN wanting w ON w.hour = s.hour AND {models} AND s.us > 1 AND w.us > 1
                    AND (s.host = '' OR w.hosts = '' OR EXISTS (SELECT 1 FROM audit_alike a WHERE a.host = s.host AND a.hosts = w.hosts)))
            SELECT no, job_no, hour, us * least(most_us / sum(us) OVER (PARTITION BY job_no, hour), 1.0) FROM offered""")
    con.execute(
        "INSERT INTO audit_left SELECT job_no, least(round(sum(t.us)), any_value(w.open_us))::BIGINT FROM audit_taken t JOIN audit_wanting w USING (job_no, hour) GROUP BY 1 HAVING sum(t.us) >= 1"
    )
    apart, apart_mj = con.execute("""
        SELECT count(*), coalesce(sum(energy_mj), 0) FROM audit_spare s WHERE host = '/' AND EXISTS (SELECT 1 FROM audit_wanting w WHERE w.hour = s.hour AND w.hosts <> ''
            AND NOT EXISTS (SELECT 1 FROM audit_left l WHERE l.job_no = w.job_no))""").fetchall()[0]
    for name in ("spare", "alike", "wanting", "taken"):
        con.execute(f"DROP TABLE audit_{name}")
    why = "[hour|hours] of boards on hosts that no job names, while jobs on hosts without a meter are estimated; if these are the same hosts under two names, both are counted"
    return Found("hosts-do-not-meet", why, apart, int(apart_mj))


def _alike(hosts: list[str], lists: list[tuple[str, str]]) -> set[tuple[str, str]]:
    """Hosts of readings and lists of jobs' hosts that may be one: the same name, or one that goes on after a sign, as n1-mgmt and n1 do."""
    by_stem: dict[str, set[str]] = {}
    by_name: dict[str, set[str]] = {}
    for text, name in lists:
        by_name.setdefault(name, set()).add(text)
        for stem in _stems(name):
            by_stem.setdefault(stem, set()).add(text)
    found = set()
    for host in hosts:
        texts = set(by_stem.get(host, ())).union(*(by_name.get(stem, set()) for stem in _stems(host)))
        found |= {(host, text) for text in texts}
    return found


def _stems(name: str) -> set[str]:
    return {name, *(name[:i] for i, c in enumerate(name) if i and not c.isalnum())}
