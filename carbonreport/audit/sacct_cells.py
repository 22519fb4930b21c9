"""The cells of sacct's parsable text as a table of texts and numbers, by the field rules of the importer."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from carbonreport.audit.window import FIRST_YEAR, LAST_YEAR, year_begin_us
from carbonreport.units import SECONDS_PER_DAY, SECONDS_PER_HOUR, US_PER_S

_HEAD_LINES = 40
_NEEDED = ("start", "state")
_LONGEST_S = 100 * 366 * SECONDS_PER_DAY  # beyond these a number is a marker or a fault, and products of several overflow
MOST_GPUS, _MOST_NODES = 100_000, 1_000_000
_LONGEST_LINE = 4_194_304
_SPREADSHEET = re.compile(r"\|\d{1,2}([-/.])\d{1,2}\1\d{4}[ T,]")  # a date with the year last
_MORE = tuple(f"more {i}" for i in range(64))  # where a job's name, the last column, has the delimiter inside


@dataclass(frozen=True, slots=True)
class SlurmRules:
    """What single fields of sacct mean; the tables and functions of the importer of single files.

    Attributes:
        state: A state in full.
        gpus: GPUs by type out of AllocTRES, "" for those without one.
        period: POSIX start and end of local stamps that come twice or never: (start, end, length, zone).
        no_values: Numbers that mean "not set".
        nothing: Texts that mean "not measured", in lower case.
        suffixes: Decimal suffixes of energies.
        most_joules: What no job uses. [J]
        node_watts: Least and most power of a node. [W]
        not_started: States of jobs that have not begun.
    """

    state: Callable[[str], str]
    gpus: Callable[[str], Mapping[str, int]]
    period: Callable[[float, float, float, ZoneInfo], tuple[float, float] | None]
    no_values: Collection[int]
    nothing: Collection[str]
    suffixes: Mapping[str, float]
    most_joules: float
    node_watts: tuple[float, float]
    not_started: Collection[str]


def header_of(path: Path) -> tuple[int, list[str]] | None:
    """Line number, from 0, and lower-case columns of the header of parsable text; None where the file is of another shape, or has dates of a spreadsheet."""
    with path.open("rb") as file:
        for number in range(_HEAD_LINES):
            line = file.readline(1 << 16).decode("utf-8-sig", errors="replace").strip()
            names = [name.strip().casefold() for name in line.split("|")]
            if not line.startswith("|") and len(names) > 2 and {"jobid", "jobidraw"} & set(names) and set(_NEEDED) <= set(names):
                return None if _SPREADSHEET.search(file.read(1 << 16).decode(errors="replace")) else (number, names)
    return None


def unfinished_line(path: Path) -> str:
    """The last line where no line end closes it, so that nobody knows whether it is whole; "" where all are closed."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - _LONGEST_LINE, 0))
        tail = file.read()
    return "" if tail.endswith((b"\n", b"\r")) else tail.rpartition(b"\n")[2].decode(errors="replace")


def literally(path: str) -> str:
    """A path in which DuckDB takes no character for a pattern of names."""
    return re.sub(r"([*?\[])", r"[\1]", path)


def read_cells(con: Any, path: Path, skip: int, names: list[str], rules: SlurmRules) -> None:
    """Rows as texts, cut once; what comes after the last column belongs to a job's name and is not kept.

    A line with fewer cells than the header is torn, and so is a last line that nothing closes; one with more is shifted, unless the
    name of the job comes last.
    """
    columns = [f"{name}" if name not in names[:i] and name else f"column {i}" for i, name in enumerate(names)]
    last_name = next(name for name in reversed(names) if name)
    last = unfinished_line(path).split("|")
    is_last = " AND ".join(f"coalesce({_named(name)}, '') = '{_escaped(cell)}'" for name, cell in zip(columns, last, strict=False))
    shifted = "false" if last_name == "jobname" else f"coalesce({_named(_MORE[0])}, '') <> '' OR {_named(_MORE[1])} IS NOT NULL"

    def cell(*wanted: str) -> str:
        texts = [f'"{name}"' for name in wanted if name in columns]
        known = [*(f"nullif({text}, '')" for text in texts[:-1]), *texts[-1:], "''"]
        return f"coalesce({', '.join(known)})"

    no_values = listed(map(str, rules.no_values))
    cases = " ".join(f"WHEN '{suffix}' THEN {factor!r}" for suffix, factor in rules.suffixes.items())
    ceiling = repr(2 * rules.most_joules)
    macros = {  # what most rows hold first: a cast is fifty times faster than a pattern
        "sacct_elapsed(t)": f"""CASE WHEN t = '' THEN NULL
            WHEN (try_cast(t AS UBIGINT) IS NOT NULL AND NOT contains(t, '.') AND NOT contains(lower(t), 'e')) THEN CASE WHEN t NOT IN ({no_values}) THEN try_cast(t AS DOUBLE) END
            WHEN regexp_full_match(t, '(?:[0-9]+-)?(?:[0-9]+:)?[0-9]+:[0-9]+(?:[.][0-9]+)?') THEN
                coalesce(try_cast(nullif(regexp_extract(t, '^([0-9]+)-', 1), '') AS DOUBLE), 0) * {SECONDS_PER_DAY!r}
                + coalesce(try_cast(nullif(regexp_extract(t, '(?:^|-)([0-9]+):[0-9]+:', 1), '') AS DOUBLE), 0) * {SECONDS_PER_HOUR!r}
                + try_cast(regexp_extract(t, '([0-9]+):[0-9.]+$', 1) AS DOUBLE) * 60 + try_cast(regexp_extract(t, ':([0-9.]+)$', 1) AS DOUBLE)
            END""",
        "sacct_joules(t)": f"""CASE WHEN t = '' OR t = '0' THEN NULL
            WHEN (try_cast(t AS UBIGINT) IS NOT NULL AND NOT contains(t, '.') AND NOT contains(lower(t), 'e')) THEN
                CASE WHEN t NOT IN ({no_values}) THEN nullif(nullif(least(try_cast(t AS DOUBLE), {ceiling}), 0), {ceiling}) END
            WHEN lower(t) IN ({listed(rules.nothing)}) THEN NULL
            WHEN regexp_full_match(t, '[0-9]+(?:[.][0-9]+)?[KMGTPkmgtp]?') THEN
                nullif(nullif(least(try_cast(regexp_extract(t, '^[0-9.]+') AS DOUBLE) * CASE upper(regexp_extract(t, '[A-Za-z]?$')) {cases} END,
                    {ceiling}), 0), {ceiling})
            END""",
        "sacct_tres(t, name, id)": "coalesce(nullif(split_part(split_part(',' || t, ',' || name || '=', 2), ',', 1), ''), split_part(split_part(',' || t, ',' || id || '=', 2), ',', 1))",
        "sacct_count(t)": f"CASE WHEN (try_cast(t AS UBIGINT) IS NOT NULL AND NOT contains(t, '.') AND NOT contains(lower(t), 'e')) AND t NOT IN ({no_values}) THEN try_cast(t AS BIGINT) END",
        # From the first GPU on; what follows it makes few texts more, unless the job's energy does.
        "sacct_gpus(t)": """CASE WHEN NOT contains(t, 'gres/gpu') THEN ''
            WHEN contains(substr(t, strpos(t, 'gres/gpu')), 'energy=') THEN array_to_string(regexp_extract_all(t, 'gres/gpu[^,]*'), ',')
            ELSE substr(t, strpos(t, 'gres/gpu')) END""",
    }
    begin_us, end_us = year_begin_us(FIRST_YEAR), year_begin_us(LAST_YEAR + 1)
    macros |= {
        "sacct_beyond(t)": f"""CASE WHEN contains(t, ':') THEN t >= '0' AND t < ':' AND (t < '{FIRST_YEAR}' OR t >= '{LAST_YEAR + 1}')
            WHEN t = '' OR t = '0' THEN false WHEN length(t) = 10 AND t < '{end_us // US_PER_S}' THEN false
            ELSE try_cast(t AS DOUBLE) IS NOT NULL AND try_cast(t AS DOUBLE) NOT BETWEEN {begin_us // US_PER_S} AND {end_us // US_PER_S} END""",
        # Years outside the bounds stay out of every sum: a far one would overflow, and one row would cost the whole file.
        "sacct_zoned(t)": f"""CASE WHEN t = '' THEN NULL WHEN NOT contains(t, ':') THEN
                CASE WHEN length(t) IN (9, 10) AND try_cast(t AS UBIGINT) BETWEEN {begin_us // US_PER_S} AND {end_us // US_PER_S} AND NOT contains(t, '.') AND NOT contains(lower(t), 'e') THEN try_cast(t AS BIGINT) * {US_PER_S} END
            WHEN sacct_beyond(t) THEN NULL WHEN ends_with(t, 'Z') THEN epoch_us(try_cast(substr(t, 1, length(t) - 1) AS TIMESTAMP))
            WHEN length(t) = 19 THEN NULL
            WHEN regexp_matches(t, '[+-][0-9]{{2}}:?[0-9]{{2}}$') THEN epoch_us(try_cast(t AS TIMESTAMPTZ)) END""",
        "sacct_local(t)": "CASE WHEN length(t) = 19 AND NOT sacct_beyond(t) THEN epoch_us(try_cast(t AS TIMESTAMP)) END",
    }
    for head, body in macros.items():
        con.execute(f"CREATE OR REPLACE MACRO {head} AS {body}")
    kept = {
        "cluster": cell("cluster"),
        "raw": cell("jobidraw"),
        "shown": cell("jobid"),
        "submit": cell("submit"),
        "start": cell("start"),
        "end": cell("end"),
        "project": cell("account"),
        "username": cell("user"),
        "partition": cell("partition"),
        "state_text": cell("state"),
        "hosts": cell("nodelist"),
        "exclusive_text": cell("exclusive"),
        "tres": cell("alloctres"),
        "elapsedraw": cell("elapsedraw"),
        "elapsed": cell("elapsed"),
        "suspended": cell("suspended"),
        "nnodes": cell("nnodes", "allocnodes"),
        "consumed_raw": cell("consumedenergyraw"),
        "consumed": cell("consumedenergy"),
        "in_tot": cell("tresusageintot"),
        "out_ave": cell("tresusageoutave"),
    }

    def is_unread(name: str) -> str:
        return f'{name}_z IS NULL AND {name}_l IS NULL AND lower("{name}") NOT IN ({listed(rules.nothing)})'

    quoted = _escaped(literally(str(path)))
    for table in ("reject_errors", "reject_scans"):
        con.execute(f"DROP TABLE IF EXISTS {table}")
    # Level by level, so that each macro is given a column: given another macro, it would evaluate that once for each of its mentions.
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE sacct_rows AS
        WITH cut AS (
            SELECT {", ".join(f'{text} AS "{name}"' for name, text in kept.items())},
                (coalesce({_named(columns[0])}, '') <> '' OR {_named(columns[1])} IS NOT NULL) AND ({_named(columns[-1])} IS NULL OR {shifted}) AS is_torn, {is_last if last != [""] else "false"} AS is_last
            FROM read_csv('{quoted}', delim='|', quote='', escape='', header=false, skip={skip + 1}, auto_detect=false, null_padding=true, strict_mode=false,
                nullstr='\x01', store_rejects=true, max_line_size={_LONGEST_LINE}, columns={{{", ".join(f"'{_escaped(name)}': 'VARCHAR'" for name in [*columns, *_MORE])}}})),
        found AS (
            SELECT * EXCLUDE (tres, in_tot, out_ave, raw, shown, nnodes, exclusive_text, suspended),
                CASE WHEN raw <> '' AND NOT contains(shown, '_[') THEN raw WHEN shown <> '' THEN shown ELSE raw END AS job_id,
                CASE WHEN shown <> raw AND (contains(shown, '_') OR contains(shown, '+')) AND NOT contains(shown, '_[') THEN shown ELSE '' END AS array_id,
                CASE WHEN contains(tres, 'energy=') OR contains(tres, '3=') THEN sacct_tres(tres, 'energy', '3') ELSE '' END AS tres_energy, sacct_gpus(tres) AS gpu_text,
                sacct_count(nnodes) AS counted, CASE WHEN counted IS NULL THEN sacct_tres(tres, 'node', '4') ELSE '' END AS node_text,
                CASE WHEN in_tot <> '' THEN sacct_tres(in_tot, 'energy', '3') ELSE '' END AS in_energy,
                CASE WHEN out_ave <> '' THEN sacct_tres(out_ave, 'energy', '3') ELSE '' END AS out_watts,
                CASE WHEN lower(exclusive_text) IN ('', 'unknown', 'none') THEN NULL ELSE lower(exclusive_text) IN ('yes', 'true', '1', 'exclusive', 'node') END AS exclusive,
                CASE WHEN suspended IN ('', '00:00:00') THEN 0 ELSE coalesce(sacct_elapsed(suspended), 0) END AS suspended_s
            FROM cut)
        SELECT * EXCLUDE (start, "end"), CASE WHEN {is_unread("start")} THEN start WHEN {is_unread("end")} THEN "end" END AS unread FROM (
        SELECT * EXCLUDE (tres_energy, node_text, counted, in_energy, out_watts, consumed_raw, consumed, elapsedraw, elapsed, submit, hosts),
            sacct_zoned(submit) AS submit_z, sacct_zoned(start) AS start_z, sacct_zoned("end") AS end_z,
            sacct_local(submit) AS submit_l, sacct_local(start) AS start_l, sacct_local("end") AS end_l,
            coalesce(sacct_elapsed(elapsedraw), CASE WHEN elapsed <> '' THEN sacct_elapsed(elapsed) END) AS elapsed_s,
            coalesce(counted, sacct_count(node_text)) AS nodes,
            coalesce(sacct_joules(consumed_raw), sacct_joules(tres_energy), sacct_joules(consumed), sacct_joules(in_energy)) AS joules,
            sacct_joules(out_watts) AS mean_watts,
            CASE WHEN lower(hosts) IN ('none assigned', 'none', '(null)') THEN '' ELSE hosts END AS hosts,
            contains(job_id, '.') AS is_step, ends_with(job_id, '+') AND NOT is_step AS is_cut,
            sacct_beyond(start) OR sacct_beyond("end") AS is_far,
            coalesce(elapsed_s, 0) > {_LONGEST_S} OR coalesce(nodes, 0) > {_MOST_NODES} AS is_huge
        FROM found WHERE is_torn OR (job_id <> '' AND lower(job_id) NOT IN ('jobid', 'jobidraw')))""")
    if last != [""]:  # one row, where a whole line says the same
        con.execute("UPDATE sacct_rows SET is_torn = true WHERE rowid = (SELECT max(rowid) FROM sacct_rows WHERE is_last)")


def keep_table(con: Any, name: str, kinds: str, rows: list[tuple[Any, ...]]) -> None:
    """A temporary table of rows."""
    con.execute(f"CREATE OR REPLACE TEMP TABLE {name} ({kinds})")
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        con.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)


def _named(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _escaped(text: str) -> str:
    return text.replace("'", "''")


def listed(texts: Iterable[str]) -> str:
    """Texts as a list in SQL."""
    return ", ".join("'" + text.replace("'", "''") + "'" for text in texts) or "''"
