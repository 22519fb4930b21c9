"""Facts that the author gives: the site file's, with those of `--facts FILE` in front, and checked against the runs."""

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

from carbonreport.errors import SiteError
from carbonreport.model.statement import Facts
from carbonreport.site import facts_of, in_words
from carbonreport.units import hours
from carbonreport.workflows.charge import Charged

_ROUNDED = 0.95  # a total that the author rounded down is no contradiction


def facts_for(charged: Charged, given: str | Path | None) -> Facts:
    """The facts of the site file, each replaced by that of a file where it has one.

    Raises:
        SiteError: The file cannot be used, or the project is smaller than the runs of the statement.
    """
    facts = merged(charged.site.facts, read_facts(given)) if given is not None else charged.site.facts
    where = str(given) if given is not None else charged.site.path
    gpu_hours, runs = hours(charged.footprint.gpu_seconds), len(charged.counted)
    if facts.project_gpu_hours is not None and facts.project_gpu_hours < _ROUNDED * gpu_hours:
        raise SiteError(
            f"{where}: project_gpu_hours is {facts.project_gpu_hours:g}, less than the {gpu_hours:.3g} GPU-hours of these runs; give those of the whole project"
        )
    if facts.runs is not None and facts.runs < runs:
        raise SiteError(f"{where}: runs is {facts.runs}, less than the {runs} runs given; give those of the whole project")
    return facts


def read_facts(path: str | Path) -> Facts:
    """Read a TOML file of facts: the keys of the site file's [facts], with or without that heading.

    Raises:
        SiteError: It cannot be read, or a key is unknown or wrong.
    """
    try:
        table: dict[str, Any] = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        inner = table.get("facts")
        is_headed = isinstance(inner, dict) and len(table) == 1
        return facts_of(inner, "facts.") if is_headed and inner is not None else facts_of(table)
    except OSError as error:
        raise SiteError(f"cannot read the file of facts {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise SiteError(f"{path}: {in_words(error)}") from error


def merged(first: Facts, over: Facts) -> Facts:
    """The second's facts, and the first's where it has none."""
    names = [field.name for field in fields(Facts)]
    return Facts(**{name: getattr(first, name) if getattr(over, name) is None else getattr(over, name) for name in names})
