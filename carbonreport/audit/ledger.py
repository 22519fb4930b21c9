"""The ledger: Parquet files by month, filled by many, read as two tables in which everything stands once.

A file's name is the hash of its rows, so that the same import twice is the same file; two processes never write the same temporary
name; a rename makes a file appear whole. What was reported twice in different files is dropped when it is read, by its key.
"""

import tempfile
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from carbonreport.audit.folder import Folder, folder_at
from carbonreport.audit.tables import MOST_MILLIJOULES, Row, TableName, cells, columns, key
from carbonreport.errors import MissingExtra, RecordError

TABLES: tuple[TableName, ...] = ("jobs", "meters")
# Of two reports of one thing: the one that knows more. A job that was still running is known longer the next time.
_BEST = {
    "jobs": "end_us DESC, energy_mj IS NULL, exclusive IS NULL, hosts = '', source",
    "meters": "energy_mj IS NULL, list_position(['anchored', 'counter', 'instant', 'averaged', 'reported', 'model'], method), read_us DESC, source",
}


def connect(*, threads: int | None = None, memory: str | None = None, scratch: Path | None = None) -> Any:
    """A DuckDB of our own, in UTC.

    Args:
        threads: How many; all cores by default.
        memory: Most memory, such as "2GB".
        scratch: Folder for what does not fit.

    Raises:
        MissingExtra: DuckDB is not installed.
    """
    try:
        duckdb = import_module("duckdb")
    except ImportError as error:
        raise MissingExtra("the audit", "audit") from error
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    con.execute("SET preserve_insertion_order = false")
    con.execute("SET enable_progress_bar = false")
    con.execute("SET autoinstall_known_extensions = false")  # nothing is fetched behind anybody's back
    for name, value in (("threads", threads), ("memory_limit", memory), ("temp_directory", scratch)):
        if value is not None:
            con.execute(f"SET {name} = '{value}'")
    return con


class Ledger:
    """Jobs and meters under a folder or URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._folder: Folder = folder_at(url)

    def add(self, rows: Iterable[Row], table: TableName, con: Any) -> int:
        """Keep rows; how many files are new or the same as before.

        Raises:
            OutputError: The ledger cannot be written.
        """
        pyarrow = import_module("pyarrow")
        kinds = {"VARCHAR": pyarrow.string(), "BIGINT": pyarrow.int64(), "BOOLEAN": pyarrow.bool_()}
        held = cells(list(rows), table)
        con.register("ledger_rows", pyarrow.table({name: pyarrow.array(held[name], kinds[kind]) for name, kind in columns(table).items()}))
        try:
            return self.add_query("SELECT * FROM ledger_rows", table, con)
        finally:
            con.unregister("ledger_rows")

    def add_query(self, query: str, table: TableName, con: Any, *, is_distinct: bool = False) -> int:
        """Keep the rows of a query that has the table's columns; how many files that are.

        Args:
            query: SQL.
            table: Which.
            con: DuckDB.
            is_distinct: Whether no row of it comes twice.

        Raises:
            OutputError: The ledger cannot be written.
        """
        names = ", ".join(columns(table))
        month = "strftime(make_timestamp(start_us), '%Y-%m')"
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE ledger_new AS SELECT {'' if is_distinct else 'DISTINCT'} {names}, {month} AS ledger_month FROM ({query})"
        )
        months = con.execute(
            f"SELECT ledger_month, printf('%016x%016x', bit_xor(hash({names})), bit_xor(hash(1, {names}))) FROM ledger_new GROUP BY 1 ORDER BY 1"
        ).fetchall()
        with tempfile.TemporaryDirectory(prefix="carbonreport-ledger-") as scratch:
            for month_name, digest in months:
                path = Path(scratch) / f"{digest}.parquet"
                con.execute(
                    f"COPY (SELECT {names} FROM ledger_new WHERE ledger_month = ? ORDER BY start_us) TO '{path}' (FORMAT parquet, COMPRESSION zstd)",
                    [month_name],
                )
                self._folder.put(path, f"{table}/month={month_name}/{digest}.parquet")
        con.execute("DROP TABLE ledger_new")
        return len(months)

    def open(self, con: Any, *, from_us: int | None = None, until_us: int | None = None) -> dict[TableName, int]:
        """Make the tables `jobs` and `meters` of what touches a period; how many rows were reports of something that stands there already.

        Raises:
            RecordError: A file is none of the ledger's.
        """
        filesystem = self._folder.filesystem
        if filesystem is not None:
            protocols = {filesystem.protocol} if isinstance(filesystem.protocol, str) else set(filesystem.protocol)
            if not protocols & set(con.list_filesystems()):
                con.register_filesystem(filesystem)
        return {table: self._open(con, table, from_us, until_us) for table in TABLES}

    def _open(self, con: Any, table: TableName, from_us: int | None, until_us: int | None) -> int:
        names = columns(table)
        paths = self._folder.paths(f"{table}/month=*/*.parquet")
        if until_us is not None:
            last = _month_of(until_us, con)
            paths = [path for path in paths if _month_in(path) <= last]
        if not paths:
            con.execute(f"CREATE OR REPLACE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in names.items())})")
            return 0
        listed = ", ".join(f"'{_quoted(path)}'" for path in paths)
        bounds = [
            *([f"end_us > {from_us}"] if from_us is not None else []),
            *([f"start_us < {until_us}"] if until_us is not None else []),
        ]
        where = f" WHERE {' AND '.join(bounds)}" if bounds else ""
        duckdb = import_module("duckdb")
        keys = ", ".join(key(table)).replace("job_key", "coalesce(job_id, '')")
        try:
            con.execute(f"CREATE OR REPLACE TEMP TABLE ledger_read AS SELECT {', '.join(names)} FROM read_parquet([{listed}]){where}")
        except (duckdb.Error, OSError) as error:
            raise RecordError(f"cannot read the ledger {self.url}: {str(error).splitlines()[0]}") from error
        (read,) = con.execute("SELECT count(*) FROM ledger_read").fetchall()[0]
        con.execute(
            f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM ledger_read "
            f"QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {_BEST[table]}) = 1"
        )
        con.execute("DROP TABLE ledger_read")
        (kept,) = con.execute(f"SELECT count(*) FROM {table}").fetchall()[0]
        (odd,) = con.execute(f"SELECT count(*) FROM {table} WHERE energy_mj < 0 OR energy_mj > {MOST_MILLIJOULES}").fetchall()[0]
        if odd:
            raise RecordError(
                f"the ledger {self.url} holds {odd} rows of {table} with energies that cannot be; it was not written by carbonreport"
            )
        return int(read - kept)


def _month_of(until_us: int, con: Any) -> str:
    (month,) = con.execute("SELECT strftime(make_timestamp(?::BIGINT), '%Y-%m')", [max(until_us - 1, 0)]).fetchall()[0]
    return str(month)


def _month_in(path: str) -> str:
    return path.rpartition("month=")[2].partition("/")[0]


def _quoted(path: str) -> str:
    return path.replace("'", "''")
