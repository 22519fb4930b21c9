"""A table of the ledger out of its files: what was reported twice in different files is dropped, by its key."""

from importlib import import_module
from typing import Any

from carbonreport.audit.folder import Folder
from carbonreport.audit.sacct_cells import literally
from carbonreport.audit.tables import LATER_COLUMNS, MOST_MILLIJOULES, OWN_CLUSTER, TableName, columns, key
from carbonreport.errors import RecordError

# Of two reports of one thing: the one that knows more. A job that was still running is known longer the next time.
_BEST = {
    "jobs": "end_us DESC, energy_mj IS NULL, exclusive IS NULL, suspended_us IS NULL, hosts = '', source",
    "meters": "energy_mj IS NULL, list_position(['anchored', 'counter', 'instant', 'averaged', 'reported', 'model'], method), read_us DESC, source",
}

# Files of sacct differ in what they say: one without clusters is of the only one that is known, and a task of an array is told by its
# own number or by the array's, where one file knows both.
_KEYED = {
    "jobs": f"""
        WITH clusters AS (SELECT CASE WHEN count(DISTINCT cluster) = 1 THEN min(cluster) END AS only_one FROM ledger_read WHERE cluster NOT IN ('', '{OWN_CLUSTER}')),
        placed AS (SELECT r.*, CASE WHEN cluster = '' THEN coalesce(only_one, '') ELSE cluster END AS cluster_key FROM ledger_read r, clusters),
        told AS (SELECT cluster_key, job_id, start_us, min(array_id) AS known_id FROM placed WHERE array_id <> '' GROUP BY ALL)
        SELECT p.* REPLACE (cluster_key AS cluster, coalesce(nullif(array_id, ''), known_id, '') AS array_id), coalesce(nullif(array_id, ''), known_id, job_id) AS job_key FROM placed p LEFT JOIN told USING (cluster_key, job_id, start_us)""",
    "meters": "SELECT *, '' AS cluster_key, coalesce(job_id, '') AS job_key FROM ledger_read",
}


def read_table(con: Any, folder: Folder, url: str, table: TableName, from_us: int | None, until_us: int | None) -> int:
    """Make a table of what touches a period; how many rows were reports of something that stands there already.

    Args:
        con: DuckDB.
        folder: Where its files lie.
        url: What the ledger is called in messages.
        table: Which.
        from_us: Begin of the period, or None.
        until_us: End of it, or None.

    Raises:
        RecordError: A file is none of the ledger's.
    """
    names = columns(table)
    paths = folder.paths(f"{table}/month=*/*.parquet")
    if until_us is not None:
        last = _month_of(until_us, con)
        paths = [path for path in paths if _month_in(path) <= last]
    if not paths:
        con.execute(f"CREATE OR REPLACE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in names.items())})")
        return 0
    listed = ", ".join(f"'{_quoted(literally(path) if folder.filesystem is None else path)}'" for path in paths)
    bounds = [
        *([f"end_us > {from_us}"] if from_us is not None else []),
        *([f"start_us < {until_us}"] if until_us is not None else []),
    ]
    where = f" WHERE {' AND '.join(bounds)}" if bounds else ""
    duckdb = import_module("duckdb")
    try:
        _check_columns(con, url, table, listed)
        later = ", ".join(f"NULL::{names[name]} AS {name}" for name in sorted(LATER_COLUMNS[table])) or "NULL AS nothing"
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE ledger_read AS SELECT {', '.join(names)} FROM "
            f"(SELECT * FROM read_parquet([{listed}], union_by_name=true) UNION ALL BY NAME SELECT {later} WHERE false){where}"
        )
    except (duckdb.Error, OSError) as error:
        raise RecordError(f"cannot read the ledger {url}: {str(error).splitlines()[0]}") from error
    (read,) = con.execute("SELECT count(*) FROM ledger_read").fetchall()[0]
    con.execute(
        f"CREATE OR REPLACE TABLE {table} AS SELECT * EXCLUDE (cluster_key, job_key) FROM ({_KEYED[table]}) "
        f"QUALIFY row_number() OVER (PARTITION BY {', '.join(key(table))} ORDER BY {_BEST[table]}) = 1"
    )
    con.execute("DROP TABLE ledger_read")
    (kept,) = con.execute(f"SELECT count(*) FROM {table}").fetchall()[0]
    (odd,) = con.execute(f"SELECT count(*) FROM {table} WHERE energy_mj < 0 OR energy_mj > {MOST_MILLIJOULES}").fetchall()[0]
    if odd:
        raise RecordError(f"the ledger {url} holds {odd} rows of {table} with energies that cannot be; it was not written by carbonreport")
    return int(read - kept)


def _check_columns(con: Any, url: str, table: TableName, listed: str) -> None:
    """Refuse files that lack a column that was there from the first."""
    needed = set(columns(table)) - LATER_COLUMNS[table]
    for path, held in con.execute(f"SELECT file_name, list(name) FROM parquet_schema([{listed}]) GROUP BY 1 ORDER BY 1").fetchall():
        if missing := sorted(needed - set(held)):
            raise RecordError(
                f"cannot read the ledger {url}: it was written by another version of carbonreport: {path} has no {', '.join(missing)}"
            )


def _month_of(until_us: int, con: Any) -> str:
    (month,) = con.execute("SELECT strftime(make_timestamp(?::BIGINT), '%Y-%m')", [max(until_us - 1, 0)]).fetchall()[0]
    return str(month)


def _month_in(path: str) -> str:
    return path.rpartition("month=")[2].partition("/")[0]


def _quoted(path: str) -> str:
    return path.replace("'", "''")
