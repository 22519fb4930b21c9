"""Samples integrated between real stamps, by device, label and hour."""

from typing import Any

from carbonreport.audit.power_dips import bridge_dips
from carbonreport.errors import RecordError
from carbonreport.units import HOUR_US, MJ_PER_J, SECONDS_PER_HOUR, US_PER_S, WATT_US_PER_MJ

LONGEST_GAP_S = SECONDS_PER_HOUR  # that a counter bridges
_MOST_REJECTED = 0.5
_HOUR = "device_no, label_no, hour, min(from_us) AS start_us, max(until_us) AS end_us, sum(until_us - from_us)::BIGINT AS read_us, round(sum(energy_mj))::BIGINT AS energy_mj"


def integrate(con: Any, role: str, gap_us: int) -> list[tuple[str, int]]:
    """The table `power_hours`, and how many intervals and values were left out, by reason.

    An interval between two samples belongs to the job of the second; one over a full hour is cut there. A counter that falls
    has begun again: what it shows then is what was used since, if a board can have used that in the time.
    """
    (bad,) = con.execute(
        "SELECT count(*) FROM power_samples s JOIN power_devices USING (device_no) JOIN power_limits USING (model) "
        f"WHERE s.value IS NULL OR time_us IS NULL OR s.value < 0 {'OR s.value > most_watts' if role == 'watts' else ''}"
    ).fetchall()[0]
    (count,) = con.execute("SELECT count(*) FROM power_samples").fetchall()[0]
    if count and bad > _MOST_REJECTED * count and role == "watts":
        (missing,) = con.execute("SELECT count(*) FROM power_samples WHERE value IS NULL").fetchall()[0]
        why = "no readings" if missing > bad / 2 else "more than such a board can draw; are they milliwatts?"
        raise RecordError(f"{bad} of {count} samples are {why}")
    usable = f"value IS NOT NULL AND time_us IS NOT NULL AND value >= 0 {'AND value <= most_watts' if role == 'watts' else ''}"
    (count_labels,) = con.execute("SELECT count(*) FROM power_labels").fetchall()[0]
    dips = bridge_dips(con, usable) if role != "watts" else 0
    whole = (
        f"(value + before) / 2 * step_us / {WATT_US_PER_MJ}"
        if role == "watts"
        else "CASE WHEN value >= before THEN value - before ELSE value END"
    )
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE power_steps AS
        WITH usable AS (SELECT device_no, time_us, value, label_no, most_watts FROM power_samples JOIN power_devices USING (device_no) JOIN power_limits USING (model) WHERE {usable}),
        paired AS (SELECT *, lag(time_us) OVER w AS from_us, lag(value) OVER w AS before FROM usable WINDOW w AS (PARTITION BY device_no ORDER BY time_us, value, label_no)),
        steps AS (SELECT *, time_us - from_us AS step_us FROM paired WHERE from_us IS NOT NULL)
        SELECT device_no, label_no, from_us, time_us AS until_us, step_us, {whole} AS energy_mj, before, value, most_watts,
            step_us = 0 AS is_repeat, step_us = 0 AND value <> before AS is_conflict, step_us > {gap_us} AS is_gap,
            {"false" if role == "watts" else "value < before AND step_us > 0"} AS is_reset FROM steps""")
    con.execute("DROP TABLE power_samples")
    if role == "watts":
        con.execute("ALTER TABLE power_steps ADD COLUMN is_wild BOOLEAN DEFAULT false")
    else:
        con.execute("ALTER TABLE power_steps ADD COLUMN is_wild BOOLEAN")
        con.execute(f"UPDATE power_steps SET is_wild = energy_mj > most_watts * step_us / {US_PER_S} * {MJ_PER_J} AND step_us > 0")
    # The power at the edge of an hour lies on the line between the samples; a counter's difference is spread evenly.
    edge = "(time_edge - from_us)::DOUBLE / step_us"
    first = (
        f"(before + (before + (value - before) * {edge})) / 2 * (time_edge - from_us) / {WATT_US_PER_MJ}"
        if role == "watts"
        else f"energy_mj * {edge}"
    )
    good = f"NOT is_repeat AND NOT is_wild AND {'NOT is_gap' if role == 'watts' else f'step_us <= {round(LONGEST_GAP_S * US_PER_S)}'}"
    parts = f"""good AS (SELECT *, from_us // {HOUR_US} AS from_hour, (until_us - 1) // {HOUR_US} AS until_hour FROM power_steps WHERE {good}),
        crossing AS (SELECT *, until_hour * {HOUR_US} AS time_edge FROM good WHERE from_hour <> until_hour),
        parts AS (
            SELECT device_no, label_no, from_hour AS hour, from_us, until_us, energy_mj FROM good WHERE from_hour = until_hour
            UNION ALL SELECT device_no, label_no, from_hour, from_us, time_edge, {first} FROM crossing
            UNION ALL SELECT device_no, label_no, until_hour, time_edge, until_us, energy_mj - {first} FROM crossing)"""
    con.execute(f"CREATE OR REPLACE TEMP TABLE power_hours AS WITH {parts} SELECT {_HOUR} FROM parts GROUP BY device_no, label_no, hour")
    if count_labels:
        _unravel(con, parts)
    repeats, conflicts, gaps, resets, wild = con.execute(
        "SELECT count(*) FILTER (is_repeat AND NOT is_conflict), count(*) FILTER (is_conflict), count(*) FILTER (is_gap AND NOT is_repeat), count(*) FILTER (is_reset AND NOT is_wild), "
        "count(*) FILTER (is_wild) FROM power_steps"
    ).fetchall()[0]
    con.execute("DROP TABLE power_steps")
    return [
        ("[value that is|values that are] missing, below 0 or more than such a board can draw", bad),
        ("the same device and moment again, as MIG instances repeat their board", repeats),
        ("the same device and moment with two values; the time between them and their neighbours is kept", conflicts),
        ("[gap|gaps] without a reading" + ("" if role == "watts" else ", bridged by the counter up to an hour"), gaps),
        ("[dip|dips] of the counter that came back; bridged", dips),
        ("the counter began again", resets),
        ("[step|steps] of the counter that no such board can have used", wild),
    ]


def _unravel(con: Any, parts: str) -> None:
    """Where the job or the host of a board changes within an hour and comes back, each stretch has its own begin and end."""
    con.execute("""
        CREATE OR REPLACE TEMP TABLE power_tangled AS
        SELECT DISTINCT device_no, hour FROM (SELECT device_no, hour, max(end_us) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) > start_us AS is_within
            FROM power_hours WINDOW w AS (PARTITION BY device_no, hour ORDER BY start_us, end_us)) WHERE is_within""")
    (count,) = con.execute("SELECT count(*) FROM power_tangled").fetchall()[0]
    if count:
        con.execute("DELETE FROM power_hours h USING power_tangled t WHERE h.device_no = t.device_no AND h.hour = t.hour")
        con.execute(f"""
            INSERT INTO power_hours
            WITH {parts},
            changes AS (SELECT p.*, coalesce(label_no, 0) <> lag(coalesce(label_no, 0), 1, -1) OVER w AS is_other FROM parts p JOIN power_tangled t ON t.device_no = p.device_no AND t.hour = p.hour
                WINDOW w AS (PARTITION BY p.device_no, p.hour ORDER BY from_us, until_us)),
            stretches AS (SELECT * EXCLUDE (is_other), sum(is_other::INTEGER) OVER (PARTITION BY device_no, hour ORDER BY from_us, until_us ROWS UNBOUNDED PRECEDING) AS stretch FROM changes)
            SELECT {_HOUR} FROM stretches GROUP BY device_no, label_no, hour, stretch""")
    con.execute("DROP TABLE power_tangled")
