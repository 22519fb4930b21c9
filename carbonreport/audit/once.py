"""Readings, each moment of a device once: records in meters, boards in nodes, and one board under two names."""

from typing import Any

from carbonreport.audit.pieces import Found, share
from carbonreport.audit.power import is_own
from carbonreport.audit.window import Window
from carbonreport.units import HOUR_US

_ALIKE = 0.02  # of two mean powers: the same board, read by two tools


def clip_meters(con: Any, window: Window) -> list[Found]:
    """The table `audit_meters`: readings in the window, each moment of a device once."""
    con.execute(f"""
        CREATE OR REPLACE TABLE audit_clipped AS
        SELECT device, kind, source, coalesce(lower(split_part(host, '.', 1)), '') AS host, method, b.board AS gpu_model, job_id, coalesce(job_id, '') = '' AS is_free,
            greatest(start_us, {window.from_us}) AS start_us, least(end_us, {window.until_us}) AS end_us, least(read_us / greatest(end_us - start_us, 1), 1.0) AS read_share,
            {share("energy_mj", "start_us", "end_us", str(window.from_us), str(window.until_us))} AS energy_mj
        FROM meters m JOIN audit_boards b ON b.text = m.gpu_model
        WHERE end_us > {window.from_us} AND start_us < {window.until_us} AND end_us > start_us AND energy_mj IS NOT NULL""")
    (unknown,) = con.execute("SELECT count(*) FROM meters WHERE energy_mj IS NULL").fetchall()[0]
    con.execute(f"""
        CREATE OR REPLACE TABLE audit_once AS
        WITH seen AS (SELECT *, max(end_us) OVER (PARTITION BY device, kind, is_free ORDER BY start_us, end_us DESC, method, energy_mj
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS seen_us FROM audit_clipped)
        SELECT * EXCLUDE (start_us, energy_mj, seen_us), least(greatest(start_us, coalesce(seen_us, start_us)), end_us) AS start_us,
            energy_mj - {share("energy_mj", "start_us", "end_us", "start_us", "coalesce(seen_us, start_us)")} AS energy_mj, energy_mj AS whole_mj
        FROM seen""")
    twice, twice_mj = con.execute(
        "SELECT count(*), coalesce(sum(whole_mj - energy_mj), 0) FROM audit_once WHERE energy_mj < whole_mj"
    ).fetchall()[0]
    # What a record measured of a board is in that board's hours too: it is taken out of the hours.
    con.execute(f"""
        CREATE OR REPLACE TABLE audit_meters AS
        WITH inside AS (
            SELECT f.device, f.kind, f.start_us, sum({share("o.energy_mj", "o.start_us", "o.end_us", "f.start_us", "f.end_us")}) AS inside_mj,
                sum(least(o.end_us, f.end_us) - greatest(o.start_us, f.start_us)) AS inside_us
            FROM audit_once f JOIN audit_once o ON o.device = f.device AND o.kind = f.kind AND f.is_free AND NOT o.is_free AND o.start_us < f.end_us AND o.end_us > f.start_us
            GROUP BY ALL)
        SELECT f.* EXCLUDE (energy_mj, whole_mj), greatest(f.energy_mj - coalesce(inside_mj, 0), 0)::BIGINT AS energy_mj, least(coalesce(inside_mj, 0), f.energy_mj)::BIGINT AS taken_mj,
            greatest(f.end_us - f.start_us - coalesce(inside_us, 0), 0)::BIGINT AS span_us, (span_us * read_share)::BIGINT AS free_us
        FROM audit_once f LEFT JOIN inside i ON f.is_free AND i.device = f.device AND i.kind = f.kind AND i.start_us = f.start_us WHERE f.end_us > f.start_us""")
    nested, nested_mj = con.execute("SELECT count(*), coalesce(sum(taken_mj), 0) FROM audit_meters WHERE taken_mj > 0").fetchall()[0]
    for name in ("audit_clipped", "audit_once"):
        con.execute(f"DROP TABLE {name}")
    return [
        Found("meter-unknown", "[reading|readings] of a device without an energy; [it is|they are] unknown, not 0", unknown),
        Found(
            "meter-twice", "[reading|readings] of a device for a time that another reading of it has; counted once", twice, int(twice_mj)
        ),
        Found(
            "record-in-meter",
            "[hour of a board that holds|hours of a board that hold] what a record measured of it; counted once",
            nested,
            int(nested_mj),
        ),
        *_twins(con),
        *_nodes(con),
    ]


def _twins(con: Any) -> list[Found]:
    """One board under two ids, as two tools name it: its UUID stays, and the bus id or index that draws the same beside it goes.

    Where neither or both are UUIDs nobody can tell two boards that wait alike from one board twice: it is said and nothing is left out.
    """
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE audit_board_hours AS
        SELECT host, device, {is_own("device")} AS is_own, start_us // {HOUR_US} AS hour, min(source) AS source, sum(energy_mj) AS energy_mj, sum(span_us * read_share) AS read_us
        FROM audit_meters WHERE kind = 'gpu' AND host <> '' AND host IN (
            SELECT host FROM audit_meters WHERE kind = 'gpu' GROUP BY 1 HAVING count(DISTINCT {is_own("device")}) > 1 OR count(DISTINCT source) > 1) GROUP BY ALL""")
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE audit_twins AS
        WITH boards AS (SELECT host, count(DISTINCT device) AS boards FROM audit_board_hours GROUP BY 1),
        spans AS (SELECT l.host, j.boards * j.ran_share / l.hosts_in_list AS gpus, begin_us, until_us, unnest(range(begin_us // {HOUR_US}, (until_us - 1) // {HOUR_US} + 1)) AS hour
            FROM audit_jobs j JOIN audit_host_lists l USING (hosts) JOIN boards USING (host) WHERE gpus > 0),
        held AS (SELECT host, max(gpus) AS gpus FROM (
            SELECT host, hour, sum(gpus * (least(until_us, (hour + 1) * {HOUR_US}) - greatest(begin_us, hour * {HOUR_US}))) / {HOUR_US} AS gpus FROM spans GROUP BY 1, 2) GROUP BY 1)
        SELECT a.host, a.device, b.device AS twin, a.is_own AND NOT b.is_own AS is_sure, sum(b.energy_mj)::BIGINT AS energy_mj
        FROM audit_board_hours a JOIN audit_board_hours b ON b.host = a.host AND b.hour = a.hour AND b.device <> a.device
            AND ((a.is_own AND NOT b.is_own) OR (a.is_own = b.is_own AND a.device < b.device AND a.source <> b.source))
            JOIN boards ON boards.host = a.host LEFT JOIN held ON held.host = a.host
        WHERE a.read_us > 0 AND b.read_us > 0 AND boards.boards > coalesce(held.gpus, 0) + 0.01
        GROUP BY ALL HAVING bool_and(abs(a.energy_mj / a.read_us - b.energy_mj / b.read_us) <= {_ALIKE!r} * greatest(a.energy_mj / a.read_us, b.energy_mj / b.read_us))
            AND sum(b.energy_mj) > 0""")
    # Boards that wait draw alike, so that many ids match many UUIDs: no more ids go than there are UUIDs for them.
    con.execute("""
        CREATE OR REPLACE TEMP TABLE audit_gone AS
        WITH ids AS (SELECT host, twin, dense_rank() OVER (PARTITION BY host ORDER BY twin) AS place FROM audit_twins WHERE is_sure),
        own AS (SELECT host, count(DISTINCT device) AS devices FROM audit_twins WHERE is_sure GROUP BY 1)
        SELECT DISTINCT t.host, t.device, t.twin FROM audit_twins t JOIN ids USING (host, twin) JOIN own USING (host) WHERE t.is_sure AND place <= devices""")
    condition = f"""EXISTS (SELECT 1 FROM audit_gone g JOIN audit_board_hours h ON h.host = g.host AND h.device = g.device
            WHERE g.host = m.host AND g.twin = m.device AND h.hour = m.start_us // {HOUR_US}) AND m.kind = 'gpu'"""
    gone, gone_mj = con.execute(
        f"SELECT count(DISTINCT device), coalesce(sum(energy_mj), 0) FROM audit_meters m WHERE {condition}"
    ).fetchall()[0]
    if gone:
        con.execute(f"DELETE FROM audit_meters AS m WHERE {condition}")
    perhaps, perhaps_mj = con.execute(
        "SELECT count(DISTINCT (host, twin)), coalesce(sum(energy_mj), 0) FROM (SELECT host, twin, max(energy_mj) AS energy_mj FROM audit_twins WHERE NOT is_sure GROUP BY 1, 2)"
    ).fetchall()[0]
    for name in ("board_hours", "twins", "gone"):
        con.execute(f"DROP TABLE audit_{name}")
    return [
        Found("board-twice", "[board|boards] that two tools read under two ids, a UUID and another, with the same power in every hour; the UUID counts", gone, int(gone_mj)),
        Found("board-maybe-twice", "[board that draws|boards that draw] what another board of their host draws in every hour, in another file; if that is one board under two ids, this is counted twice", perhaps, int(perhaps_mj)),
    ]  # fmt: skip


def _nodes(con: Any) -> list[Found]:
    """A node's meter holds its boards and processors: what they were metered at is taken out of it, and the rest of the host is left."""
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE audit_held_by_nodes AS
        WITH places AS (SELECT device, max(host) AS host FROM audit_meters WHERE host <> '' GROUP BY 1),
        parts AS (SELECT coalesce(nullif(m.host, ''), p.host) AS host, start_us, end_us, energy_mj FROM audit_meters m LEFT JOIN places p USING (device) WHERE kind <> 'node')
        SELECT n.rowid AS reading, sum({share("p.energy_mj", "p.start_us", "p.end_us", "n.start_us", "n.end_us")})::BIGINT AS parts_mj
        FROM audit_meters n JOIN parts p ON p.host = n.host AND p.start_us < n.end_us AND p.end_us > n.start_us
        WHERE n.kind = 'node' AND n.is_free AND n.host <> '' GROUP BY 1""")
    held, held_mj, below, below_mj = con.execute(
        "SELECT count(*), coalesce(sum(least(parts_mj, energy_mj)), 0), count(*) FILTER (parts_mj > energy_mj), coalesce(sum(parts_mj - energy_mj) FILTER (parts_mj > energy_mj), 0) "
        "FROM audit_held_by_nodes JOIN audit_meters m ON m.rowid = reading"
    ).fetchall()[0]
    if held:
        con.execute(
            "UPDATE audit_meters SET energy_mj = greatest(energy_mj - parts_mj, 0) FROM audit_held_by_nodes WHERE audit_meters.rowid = reading"
        )
    con.execute("DROP TABLE audit_held_by_nodes")
    return [
        Found("board-in-node", "[reading of a node's meter that holds|readings of a node's meter that hold] its boards' own; counted once", held, int(held_mj)),
        Found("node-meter-below-boards", "[reading of a node's meter that is|readings of a node's meter that are] below those of its boards; the boards count", below, int(below_mj)),
    ]  # fmt: skip
