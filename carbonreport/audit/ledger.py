"""The ledger: Parquet files by month, filled by many, read as two tables in which everything stands once.

A file's name is the hash of its rows, so that the same import twice is the same file; two processes never write the same temporary
name; a rename makes a file appear whole. What was reported twice in different files is dropped when it is read, by its key.
"""

import json
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from carbonreport.audit.folder import Folder, folder_at
from carbonreport.audit.ledger_read import read_table
from carbonreport.audit.people import MODES, People
from carbonreport.audit.tables import Row, TableName, cells, columns
from carbonreport.errors import CarbonreportError, RecordError

FORMAT = 1  # of the tables' columns
_FORMAT_FILE = "ledger.json"
TABLES: tuple[TableName, ...] = ("jobs", "meters")
_KEPT: dict[People, str] = {"names": "names", "pseudonyms": "pseudonyms", "none": "nobody"}


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

    def check_people(self, people: People) -> None:
        """Refuse to show names out of a ledger that has none.

        Raises:
            CarbonreportError: It keeps people as pseudonyms, or not at all.
        """
        kept = (self._format() or {}).get("people")
        if people == "names" and kept in ("pseudonyms", "none"):
            raise CarbonreportError(
                f"the ledger {self.url} keeps people as {_KEPT[cast(People, kept)]}, so there are no names to show: give --people {kept}"
            )

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
            is_distinct: Whether no row of it comes twice; its tables are no temporary ones then, since months are written side by side.

        Raises:
            OutputError: The ledger cannot be written.
        """
        self.claim()
        names = ", ".join(columns(table))
        month = "strftime(make_timestamp(start_us), '%Y-%m')"
        if not is_distinct:
            con.execute(f"CREATE OR REPLACE TABLE ledger_new AS SELECT DISTINCT {names} FROM ({query}) ORDER BY start_us")
        source = f"({query})" if is_distinct else "ledger_new"
        months = con.execute(
            f"SELECT {month} AS m, printf('%016x%016x', bit_xor(hash({names})), bit_xor(hash(1, {names}))), min(start_us), max(start_us) FROM {source} GROUP BY 1 ORDER BY 1"
        ).fetchall()
        (cores,) = con.execute("SELECT current_setting('threads')").fetchall()[0]
        with tempfile.TemporaryDirectory(prefix="carbonreport-ledger-") as scratch, ThreadPoolExecutor(cores) as pool:

            def write(month: tuple[str, str, int, int]) -> Path:
                _, digest, first_us, last_us = month
                path = Path(scratch) / f"{digest}.parquet"
                con.cursor().execute(
                    f"COPY (SELECT {names} FROM {source} WHERE start_us BETWEEN {first_us} AND {last_us}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)"
                )
                return path

            for (month_name, digest, _, _), path in zip(months, pool.map(write, months), strict=True):
                self._folder.put(path, f"{table}/month={month_name}/{digest}.parquet")
        con.execute("DROP TABLE IF EXISTS ledger_new")
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
        return {table: read_table(con, self._folder, self.url, table, from_us, until_us) for table in TABLES}
