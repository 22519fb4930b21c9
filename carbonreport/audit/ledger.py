"""The ledger: Parquet files by month, filled by many, read as two tables in which everything stands once.

A file's name is the hash of its rows, so that the same import twice is the same file; two processes never write the same temporary
name; a rename makes a file appear whole. What was reported twice in different files is dropped when it is read, by its key.
"""

import json
import tempfile
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from carbonreport.audit.folder import Folder, folder_at
from carbonreport.audit.people import MODES, People
from carbonreport.audit.sacct_cells import literally
from carbonreport.audit.tables import MOST_MILLIJOULES, OWN_CLUSTER, Row, TableName, cells, columns, key
from carbonreport.errors import CarbonreportError, MissingExtra, RecordError

FORMAT = 1  # of the tables' columns
_FORMAT_FILE = "ledger.json"
TABLES: tuple[TableName, ...] = ("jobs", "meters")
# Of two reports of one thing: the one that knows more. A job that was still running is known longer the next time.
_BEST = {
    "jobs": "end_us DESC, energy_mj IS NULL, exclusive IS NULL, hosts = '', source",
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
_KEPT: dict[People, str] = {"names": "names", "pseudonyms": "pseudonyms", "none": "nobody"}
# One names the task alone, the other the array's task alone, and all else agrees; or nobody says which cluster one of them is of.
_ALIKE = """
    WITH numbered AS (SELECT cluster, start_us, end_us, project, person, partition, gpus, hosts, count(*) AS n, sum(gpus * (end_us - start_us)) AS gpu_us FROM jobs
        WHERE array_id = '' AND regexp_full_match(job_id, '[0-9]+') GROUP BY ALL),
    tasks AS (SELECT cluster, start_us, end_us, project, person, partition, gpus, hosts, count(*) AS n, sum(gpus * (end_us - start_us)) AS gpu_us FROM jobs
        WHERE array_id <> '' AND array_id = job_id GROUP BY ALL),
    homeless AS (SELECT DISTINCT a.job_id, a.start_us, a.gpus * (a.end_us - a.start_us) AS gpu_us FROM jobs a JOIN jobs b ON a.job_id = b.job_id AND a.start_us = b.start_us
        WHERE a.cluster = '' AND b.cluster <> ''),
    alike AS (SELECT least(a.n, b.n) AS n, least(a.gpu_us, b.gpu_us) AS gpu_us FROM numbered a JOIN tasks b ON a.start_us = b.start_us AND a.end_us = b.end_us AND a.project = b.project
        AND a.person = b.person AND a.gpus = b.gpus AND (a.partition = b.partition OR '' IN (a.partition, b.partition)) AND (a.hosts = b.hosts OR '' IN (a.hosts, b.hosts))
        AND (a.cluster = b.cluster OR '' IN (a.cluster, b.cluster))
        UNION ALL SELECT 1, gpu_us FROM homeless)
    SELECT coalesce(sum(n), 0)::BIGINT, coalesce(sum(gpu_us), 0)::BIGINT FROM alike"""


def alike_jobs(con: Any) -> tuple[int, int]:
    """Jobs of the table `jobs` that may be another one of them under another id, and their GPU-microseconds."""
    (is_possible,) = con.execute(
        "SELECT coalesce(bool_or(cluster = '' OR (array_id <> '' AND array_id = job_id)), false) FROM jobs"
    ).fetchall()[0]
    if not is_possible:
        return 0, 0
    count, gpu_us = con.execute(_ALIKE).fetchall()[0]
    return int(count), int(gpu_us)


def connect(*, threads: int | None = None, memory: str | None = None, scratch: Path | None = None) -> Any:
    """A DuckDB of our own, in UTC.

    Args:
        threads: How many; all cores by default.
        memory: Most memory, such as "2GB".
        scratch: Folder for what does not fit.

    Raises:
        MissingExtra: DuckDB, or pyarrow that hands it tables, is not installed.
    """
    try:
        duckdb, _ = import_module("duckdb"), import_module("pyarrow")
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

    def claim(self, people: People | None = None) -> None:
        """Make the ledger's format file where there is none, and say in it how people are written where that is known now.

        Raises:
            CarbonreportError: People are written in another way there: one person would be two.
            RecordError: Another version has written it.
            OutputError: It cannot be written.
        """
        held = self._format()
        if held is None:
            self._write_format(people, is_new=True)
            held = self._format()
        kept = None if held is None else held.get("people")
        if people is None or kept == people:
            return
        if kept in MODES:
            raise CarbonreportError(
                f"the ledger {self.url} keeps people as {_KEPT[cast(People, kept)]}; --people {people} would mix both in it: give --people {kept}, or another ledger"
            )
        self._write_format(people, is_new=False)

    def _format(self) -> dict[str, Any] | None:
        content = self._folder.read(_FORMAT_FILE)
        if content is None:
            return None
        try:
            held = json.loads(content)
        except ValueError as error:
            raise RecordError(f"cannot read the ledger {self.url}: {_FORMAT_FILE} is no JSON") from error
        number = held.get("carbonreport_ledger") if isinstance(held, dict) else None
        if number != FORMAT:
            raise RecordError(
                f"the ledger {self.url} was written by another version of carbonreport: its format is {number}, this version has {FORMAT}"
            )
        return cast(dict[str, Any], held)

    def _write_format(self, people: People | None, *, is_new: bool) -> None:
        with tempfile.TemporaryDirectory(prefix="carbonreport-ledger-") as scratch:
            path = Path(scratch) / _FORMAT_FILE
            path.write_text(json.dumps({"carbonreport_ledger": FORMAT, "people": people}) + "\n")
            self._folder.put(path, _FORMAT_FILE, is_new=is_new)

    def add(self, rows: Iterable[Row], table: TableName, con: Any) -> int:
        """Keep rows; how many files are new or the same as before.

        Raises:
            OutputError: The ledger cannot be written.
        """
        pyarrow = import_module("pyarrow")  # `connect` has seen it
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
        self.claim()
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
        self._format()
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
        listed = ", ".join(f"'{_quoted(literally(path) if self._folder.filesystem is None else path)}'" for path in paths)
        bounds = [
            *([f"end_us > {from_us}"] if from_us is not None else []),
            *([f"start_us < {until_us}"] if until_us is not None else []),
        ]
        where = f" WHERE {' AND '.join(bounds)}" if bounds else ""
        duckdb = import_module("duckdb")
        try:
            con.execute(f"CREATE OR REPLACE TEMP TABLE ledger_read AS SELECT {', '.join(names)} FROM read_parquet([{listed}]){where}")
        except (duckdb.Error, OSError) as error:
            why = "it was written by another version of carbonreport: " if isinstance(error, duckdb.BinderException) else ""
            raise RecordError(f"cannot read the ledger {self.url}: {why}{str(error).splitlines()[0]}") from error
        (read,) = con.execute("SELECT count(*) FROM ledger_read").fetchall()[0]
        con.execute(
            f"CREATE OR REPLACE TABLE {table} AS SELECT * EXCLUDE (cluster_key, job_key) FROM ({_KEYED[table]}) "
            f"QUALIFY row_number() OVER (PARTITION BY {', '.join(key(table))} ORDER BY {_BEST[table]}) = 1"
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
