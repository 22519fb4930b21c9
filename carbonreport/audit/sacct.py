"""sacct's parsable text in bulk: DuckDB cuts and casts, and the field rules decide, each of them once for each distinct text."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from carbonreport.audit.sacct_cells import MOST_GPUS, SlurmRules, header_of, keep_table, listed, read_cells
from carbonreport.audit.sacct_jobs import HUGE, UNREAD, tell_jobs
from carbonreport.audit.window import FIRST_YEAR, LAST_YEAR
from carbonreport.errors import RecordError
from carbonreport.model.audit import agreed, row_reason
from carbonreport.model.slices import is_slice


@dataclass(frozen=True, slots=True)
class Taken:
    """What an import found.

    Attributes:
        rows: Rows that became part of the ledger.
        not_used: How many rows were not, or not wholly, by reason; a row has one.
        noted: How many rows were used with something that must be known, and what.
    """

    rows: int
    not_used: tuple[tuple[str, int], ...] = ()
    noted: tuple[tuple[str, int], ...] = ()

    def in_words(self, done: str = "rows used") -> str:
        """1,204 rows used; 3 not begun."""
        rows = done.replace("rows", "row", 1) if self.rows == 1 else done
        return "; ".join([f"{self.rows:,} {rows}", *(row_reason(n, why) for why, n in (*self.not_used, *self.noted))])


SLICES = (
    "had slices of boards (MIG); a slice counts as its part of a board where its name tells how large that is, and no power is known of one"
)
BY_LENGTH = "[ends before its start; its|end before their start; their] length is taken from Elapsed"
ASK_FOR = "pull it with --parsable2 and"
TORN = "[line is|lines are] torn: fewer cells than the header has, more of them, or no line end"
FAR = f"[begins or ends|begin or end] outside any year that can be audited, {FIRST_YEAR} to {LAST_YEAR}"


def jobs_query(
    con: Any,
    path: Path,
    rules: SlurmRules,
    zone: ZoneInfo | None,
    people: Callable[[Iterable[str]], dict[str, str]],
    source: str,
    name: str = "",
) -> tuple[str, Taken]:
    """A query of the ledger's columns, one row a job and start, and what was left out.

    Args:
        con: DuckDB.
        path: The file; its header must be that of parsable text.
        rules: What the fields mean.
        zone: Time zone of stamps that name none, or None.
        people: How people are written.
        source: Hash of the file.
        name: What it is called in messages; its path by default.

    Raises:
        RecordError: It is no parsable text.
        BadTime: Its stamps name no zone, and nobody gave one.
    """
    found = header_of(path)
    if found is None:
        raise RecordError(f"{name or path} is no parsable text of sacct: give --parsable2 and Start and State in --format")
    skip, names = found
    if "alloctres" not in names:
        raise RecordError(f"{name or path} has no AllocTRES of its jobs, so that nobody knows their GPUs: {ASK_FOR} AllocTRES in --format")
    read_cells(con, path, skip, names, rules)
    slices = _tell_texts(con, rules, people)
    repeated = tell_jobs(con, name or str(path), rules, zone)
    (unread,) = con.execute("SELECT count(DISTINCT line) FROM reject_errors").fetchall()[0]
    torn, cut, far, huge = con.execute("""
        SELECT count(*) FILTER (is_torn), count(*) FILTER (NOT is_torn AND is_cut), count(*) FILTER (NOT is_torn AND NOT is_cut AND NOT is_step AND is_far),
            count(*) FILTER (NOT is_torn AND NOT is_cut AND NOT is_step AND NOT is_far AND is_huge) FROM sacct_rows""").fetchall()[0]
    whys = dict(con.execute("SELECT why, count(*) FROM sacct_jobs GROUP BY 1").fetchall())
    rows = whys.pop(None, 0)
    if UNREAD in whys:
        (first,) = con.execute("SELECT min(unread) FROM sacct_jobs WHERE why = ?", [UNREAD]).fetchall()[0]
        whys[f"{UNREAD} {first[:40]!r}"] = whys.pop(UNREAD)
    whys[HUGE] = whys.get(HUGE, 0) + huge
    impossible, backwards, sliced = con.execute(
        f"SELECT count(*) FILTER (is_impossible), count(*) FILTER (is_backwards), count(*) FILTER (gpu_model IN ({listed(slices)}) AND gpus > 0) FROM sacct_jobs WHERE why IS NULL"
    ).fetchall()[0]
    least, most = rules.node_watts
    counts = [
        *sorted(whys.items()),
        ("the same job again", repeated),
        ("[line|lines] that cannot be read: not UTF-8, or too long", unread),
        (TORN, torn),
        ("its id is cut by the fixed width; ask sacct for --parsable2", cut),
        (FAR, far),
        (f"its energy is not that of a node, {least:g} to {most:g} W; the energy is left out", impossible),
    ]
    noted = [(BY_LENGTH, backwards), *([(SLICES, sliced)] if slices else [])]
    query = f"""
        SELECT cluster, job_id, submit_us, start_us, end_us, project, person, is_pseudonym, partition, state, gpu_model, gpus, nodes, hosts,
               exclusive, energy_mj, CASE WHEN energy_mj IS NULL THEN '' ELSE 'reported' END AS method, '{source}' AS source, array_id, suspended_us
        FROM sacct_jobs WHERE why IS NULL"""
    told = [tuple((agreed(why, count), int(count)) for why, count in one if count) for one in (counts, noted)]
    con.execute("DROP TABLE sacct_rows")
    return query, Taken(int(rows), told[0], told[1])


def forget_jobs(con: Any) -> None:
    """Give back what the query of `jobs_query` reads."""
    con.execute("DROP TABLE IF EXISTS sacct_jobs")


def _tell_texts(con: Any, rules: SlurmRules, people: Callable[[Iterable[str]], dict[str, str]]) -> list[str]:
    """States, GPUs and people: each distinct text goes through its rule once. The types that are slices of boards."""
    states = [text for (text,) in con.execute("SELECT DISTINCT state_text FROM sacct_rows WHERE NOT is_step").fetchall()]
    keep_table(con, "sacct_states", "text VARCHAR, state VARCHAR", [(text, rules.state(text)) for text in states])
    gpus = []
    for (text,) in con.execute("SELECT DISTINCT gpu_text FROM sacct_rows WHERE NOT is_step").fetchall():
        by_type = rules.gpus(text)
        gpus.append((text, "+".join(sorted(name for name in by_type if name)), min(sum(by_type.values()), MOST_GPUS + 1)))
    keep_table(con, "sacct_gpus", "text VARCHAR, gpu_model VARCHAR, gpus BIGINT", gpus)
    names = [name for (name,) in con.execute("SELECT DISTINCT username FROM sacct_rows WHERE NOT is_step").fetchall()]
    keep_table(con, "sacct_people", "text VARCHAR, person VARCHAR", list(people(names).items()))
    return sorted({model for _, model, _ in gpus if is_slice(model)})
