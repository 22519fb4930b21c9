"""Bulk samples of power or of energy counters: integrated per device and hour between real stamps; gaps, resets and wild values stay out."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from carbonreport.audit.power_columns import Columns, columns_of
from carbonreport.audit.power_hours import LONGEST_GAP_S, integrate
from carbonreport.audit.sacct import Taken
from carbonreport.errors import BadTime, RecordError
from carbonreport.model.audit import agreed
from carbonreport.units import NS_PER_US, US_PER_MS, US_PER_S

_NOBODYS = ("", "0", "none", "null", "n/a", "[n/a]")
# Beyond five usual steps nobody knows what happened between two samples; a step longer than an hour is no sampling.
_GAP_STEPS, _LEAST_GAP_S = 5.0, 10.0
_OVER_LIMIT = 1.2  # as the counter's rule has it: a difference that implies more than this times the limit is rejected
_LIMIT_OF_UNKNOWN = 1500.0  # W; above any single board on sale
_EPOCHS = (
    (1e8, 1e10, float(US_PER_S)),
    (1e11, 1e13, float(US_PER_MS)),
    (1e14, 1e16, 1.0),
    (1e17, 1e19, 1 / NS_PER_US),
)  # of s, ms, µs, ns to µs


def meters_query(con: Any, path: Path, source: str, limit_watts: Callable[[str], float | None]) -> tuple[str, Taken]:
    """A query of the ledger's columns, one row a device, hour and job, and what was left out.

    Args:
        con: DuckDB.
        path: CSV or Parquet with a device, a time with an offset or in POSIX seconds, and watts or a counter.
        source: Hash of the file.
        limit_watts: Rated power of a board by its name, or None.

    Raises:
        RecordError: A column is missing, or most values cannot be of a board.
        BadTime: The times name no zone.
    """
    quoted = str(path).replace("'", "''")
    is_parquet = path.suffix.lower() in (".parquet", ".pq")
    reader = (
        f"read_parquet('{quoted}')"
        if is_parquet
        else f"read_csv('{quoted}', all_varchar=true, header=true, ignore_errors=true, null_padding=true)"
    )
    duckdb = import_module("duckdb")
    try:
        names, kinds = zip(*((row[0], row[1]) for row in con.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()), strict=True)
        roles = columns_of(names, str(path))
        _stage(con, reader, roles, dict(zip(names, kinds, strict=True)), path)
    except duckdb.Error as error:
        raise RecordError(f"cannot read {path}: {str(error).splitlines()[0]}") from error
    _limits(con, limit_watts)
    steps = con.execute(
        "SELECT approx_quantile(step, 0.5) FROM (SELECT time_us - lag(time_us) OVER (PARTITION BY device_no ORDER BY time_us) AS step FROM (SELECT * FROM power_samples WHERE device_no < 8)) WHERE step > 0"
    ).fetchall()[0][0]
    gap_us = round(min(max(_GAP_STEPS * (steps or 0), _LEAST_GAP_S * US_PER_S), LONGEST_GAP_S * US_PER_S))
    counts = integrate(con, roles.role, gap_us)
    method = "counter" if roles.role == "counter" else "averaged"
    query = f"""
        SELECT d.device, d.kind, coalesce(nullif(l.host, ''), d.host) AS host, h.start_us, h.end_us, h.read_us, h.energy_mj, '{method}' AS method, d.model AS gpu_model,
            CASE WHEN l.job IS NULL OR lower(l.job) IN ({", ".join(f"'{text}'" for text in _NOBODYS)}) OR contains(l.job, 'dcgm-exporter') THEN NULL ELSE l.job END AS job_id,
            '{source}' AS source
        FROM power_hours h JOIN power_devices d USING (device_no) LEFT JOIN power_labels l USING (label_no) WHERE h.end_us > h.start_us"""
    (rows,) = con.execute("SELECT count(*) FROM power_hours").fetchall()[0]
    return query, Taken(int(rows), tuple((agreed(why, n), int(n)) for why, n in counts if n))


def _stage(con: Any, reader: str, roles: Columns, kinds: dict[str, str], path: Path) -> None:
    """The tables of devices and labels by number, and of samples with numbers alone: a year of them fits into memory.

    A label is the host and the job of a sample, where the file names jobs or a board moves between hosts. An index or a bus id
    is no device's own: it stands behind its host.
    """

    def text(name: str) -> str:
        return f"coalesce(trim(s.\"{name}\"::VARCHAR), '')" if name else "''"

    host = text(roles.host)
    device = text(roles.device)
    if roles.host:
        device = f"CASE WHEN {is_own(device)} OR {host} = '' OR {device} = '' THEN {device} ELSE {host} || '/' || {device} END"
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE power_devices AS
        SELECT (row_number() OVER (ORDER BY device) - 1)::INTEGER AS device_no, * FROM (
            SELECT {device} AS device, max({host}) AS host, min(nullif({host}, '')) <> max({host}) AS has_moved, max({text(roles.model)}) AS model,
                coalesce(nullif(max({text(roles.kind)}), ''), 'gpu') AS kind FROM {reader} s WHERE {text(roles.device)} <> '' GROUP BY 1)""")
    (has_moved,) = con.execute("SELECT coalesce(bool_or(has_moved), false) FROM power_devices").fetchall()[0]
    moved_host, job = host if has_moved else "''", text(roles.job)
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE power_labels AS SELECT (row_number() OVER (ORDER BY job = '', job, host))::INTEGER AS label_no, host, job
        FROM (SELECT DISTINCT {moved_host} AS host, {job} AS job FROM {reader} s WHERE {str(bool(has_moved or roles.job)).lower()}) WHERE job <> '' OR host <> ''""")
    at = f's."{roles.time}"'
    if kinds[roles.time].startswith("TIMESTAMP"):
        time_us = f"epoch_us({at})"
    else:
        number = f"try_cast({at} AS DOUBLE)"
        epochs = " ".join(
            f"WHEN {number} >= {low!r} AND {number} < {high!r} THEN ({number} * {factor!r})::BIGINT" for low, high, factor in _EPOCHS
        )
        stamp = f"trim({at}::VARCHAR)"
        zoned = f"regexp_matches({stamp}, '(?:Z|UTC|[+-][0-9]{{2}}:?[0-9]{{2}})$') AND contains({stamp}, ':')"
        time_us = f"CASE WHEN {number} IS NOT NULL THEN CASE {epochs} END WHEN {zoned} THEN epoch_us(try_cast({stamp} AS TIMESTAMPTZ)) END"
    if kinds[roles.value] == "VARCHAR":
        value = f"""coalesce(try_cast(s."{roles.value}" AS DOUBLE), try_cast(regexp_extract(s."{roles.value}", '^ *([0-9.eE+]+) *(?:W|mJ)? *$', 1) AS DOUBLE))"""
    else:
        value = f's."{roles.value}"::DOUBLE'
    is_labelled = bool(has_moved or roles.job)
    labels = f"LEFT JOIN power_labels l ON l.job = {job} AND l.host = {moved_host}" if is_labelled else ""
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE power_samples AS
        SELECT d.device_no, {time_us} AS time_us, {value} * {roles.factor!r} AS value, {"l.label_no" if is_labelled else "NULL::INTEGER"} AS label_no
        FROM {reader} s JOIN power_devices d ON d.device = {device} {labels}""")
    count, dated = con.execute("SELECT count(*), count(time_us) FROM power_samples").fetchall()[0]
    if count and not dated:
        (first,) = con.execute(f"SELECT {at}::VARCHAR FROM {reader} s LIMIT 1").fetchall()[0]
        raise BadTime(f"{path}: its times name no zone or cannot be read ({first!r}); write POSIX seconds, or 2026-01-14T18:20:00Z")


def is_own(device: str) -> str:
    """SQL that tells whether an id is a board's own, wherever it is, as a UUID is."""
    return f"(lower({device}) LIKE 'gpu-%' OR lower({device}) LIKE 'mig-%' OR regexp_full_match({device}, '[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}'))"


def _limits(con: Any, limit_watts: Callable[[str], float | None]) -> None:
    models = [model for (model,) in con.execute("SELECT DISTINCT model FROM power_devices").fetchall()]
    con.execute("CREATE OR REPLACE TEMP TABLE power_limits (model VARCHAR, most_watts DOUBLE)")
    if models:
        con.executemany(
            "INSERT INTO power_limits VALUES (?, ?)",
            [(m, _OVER_LIMIT * ((limit_watts(m) if m else None) or _LIMIT_OF_UNKNOWN)) for m in models],
        )
