"""A DuckDB of the audit's own."""

from importlib import import_module
from pathlib import Path
from typing import Any

from carbonreport.errors import MissingExtra


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
