"""The tables of an audit as Ibis sees them, in the DuckDB that holds them."""

from importlib import import_module
from typing import Any

from carbonreport.errors import MissingExtra


class Queries:
    """Expressions over the tables of a DuckDB, and what they give."""

    def __init__(self, con: Any) -> None:
        """Take a DuckDB.

        Raises:
            MissingExtra: Ibis is not installed.
        """
        try:
            self.ibis = import_module("ibis")
        except ImportError as error:
            raise MissingExtra("the audit", "audit") from error
        self.con = con
        self._db = self.ibis.duckdb.from_connection(con)

    def table(self, name: str) -> Any:
        """A table, such as audit_jobs."""
        return self._db.table(name)

    def rows(self, expression: Any) -> list[tuple[Any, ...]]:
        """What an expression gives."""
        rows: list[tuple[Any, ...]] = self.con.execute(self.sql(expression)).fetchall()
        return rows

    def sql(self, expression: Any) -> str:
        """An expression as DuckDB reads it."""
        return str(self.ibis.to_sql(expression, dialect="duckdb"))

    def keep(self, name: str, columns: dict[str, Any]) -> None:
        """Make a table of columns."""
        self.con.register("audit_in", import_module("pyarrow").table(columns))
        self.con.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM audit_in")
        self.con.unregister("audit_in")
