"""Readings of an energy counter that fall and come back: the counter did not begin again, so they are left out and bridged."""

from typing import Any

from carbonreport.units import MJ_PER_J, US_PER_S

_ROUNDS = 4  # a dip may be as many readings long
_NO_RESET = 0.99  # a counter that begins again begins at 0: what falls by less is jitter


def bridge_dips(con: Any, usable: str) -> int:
    """Take dips out of `power_samples`; how many readings that were.

    A reading below the one before is a dip where one of the next reaches that level again, and it cannot be a new begin: it
    fell by almost nothing, or the board cannot have used what it shows, or what the return would take.

    Args:
        con: DuckDB with power_samples, power_devices and power_limits.
        usable: SQL that tells readings that count.
    """
    total = 0
    for _ in range(_ROUNDS):
        con.execute(f"""
            CREATE OR REPLACE TEMP TABLE power_dips AS
            WITH seen AS (SELECT s.rowid AS sample, device_no, time_us, value, most_watts FROM power_samples s JOIN power_devices USING (device_no) JOIN power_limits USING (model) WHERE {usable}),
            around AS (SELECT *, lag(value) OVER w AS before, lag(time_us) OVER w AS before_us, max(value) OVER (w ROWS BETWEEN 1 FOLLOWING AND {_ROUNDS} FOLLOWING) AS after,
                max(time_us) OVER (w ROWS BETWEEN 1 FOLLOWING AND {_ROUNDS} FOLLOWING) AS after_us FROM seen WINDOW w AS (PARTITION BY device_no ORDER BY time_us, value))
            SELECT sample FROM around WHERE value < before AND after >= before AND (value >= before * {_NO_RESET!r}
                OR value > most_watts * (time_us - before_us) / {US_PER_S} * {MJ_PER_J} OR after - value > most_watts * (after_us - time_us) / {US_PER_S} * {MJ_PER_J})""")
        (count,) = con.execute("SELECT count(*) FROM power_dips").fetchall()[0]
        if not count:
            break
        total += count
        con.execute("DELETE FROM power_samples WHERE rowid IN (SELECT sample FROM power_dips)")
    con.execute("DROP TABLE power_dips")
    return int(total)
