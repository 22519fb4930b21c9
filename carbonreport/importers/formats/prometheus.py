"""Answers of Prometheus's HTTP API as saved JSON: range queries of energy or power; the values are texts."""

from collections.abc import Mapping

import msgspec

from carbonreport.importers.drafts import imported
from carbonreport.importers.imported import Imported, Rejected
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.metrics import METRICS, Series, drafts_of
from carbonreport.importers.wishes import Wishes, wishes_of
from carbonreport.model.notes import Note

FORMAT = "prometheus"


class _Result(msgspec.Struct):
    metric: dict[str, str] = {}
    values: list[tuple[float, str]] | None = None
    value: tuple[float, str] | None = None


class _Body(msgspec.Struct):
    resultType: str
    result: msgspec.Raw


class _Answer(msgspec.Struct):
    status: str
    data: _Body | None = None
    error: str = ""
    warnings: list[str] = []
    infos: list[str] = []


def create(options: Mapping[str, str]) -> "Prometheus":
    """The importer of saved answers of Prometheus."""
    return Prometheus(wishes_of(options))


def available() -> str | None:
    """Always usable."""
    return None


class Prometheus:
    """Reads {"status": …, "data": {"resultType": "matrix", …}}."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    def recognises(self, file: LogFile) -> bool:
        """By status and resultType."""
        return file.head.lstrip().startswith("{") and '"resultType"' in file.head and '"status"' in file.head

    def read(self, file: LogFile) -> Imported:
        """One run for each workload that the labels name."""
        try:
            answer = msgspec.json.decode(file.text.encode(), type=_Answer)
            is_series = answer.data is not None and answer.data.resultType in ("matrix", "vector")
            results = msgspec.json.decode(answer.data.result, type=list[_Result]) if answer.data is not None and is_series else []
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            return self._refused(file, 0, f"it cannot be read as an answer of Prometheus: {error}")
        if answer.status != "success" or answer.data is None:
            return self._refused(file, 0, f"Prometheus answered with an error: {answer.error or answer.status}")
        notes = [Note("import-warning", f"{file.name}: Prometheus warned: {text}") for text in (*answer.warnings, *answer.infos)]
        if answer.data.resultType == "vector":
            return self._refused(
                file,
                len(results),
                "an instant query holds one sample a series, from which no energy follows; save a range query (query_range)",
            )
        rejected: list[Rejected] = []
        series = [_series(number, result, rejected) for number, result in enumerate(results, start=1)]
        rows = sum(len(result.values or ()) for result in results)
        if not any(s.metric in METRICS for s in series):
            return self._refused(file, rows, _unknown(series))
        drafts, why_not = drafts_of([s for s in series if s.samples], rejected, notes, named=file.stem)
        return imported(FORMAT, file, drafts, rows=rows, rejected=rejected, notes=notes, wishes=self._wishes, why_not=why_not or None)

    def _refused(self, file: LogFile, rows: int, why: str) -> Imported:
        return imported(FORMAT, file, (), rows=rows, wishes=self._wishes, why_not=why)


def _series(number: int, result: _Result, rejected: list[Rejected]) -> Series:
    """Samples of a result; rows are numbered by series."""
    samples = []
    for at_s, text in result.values or ():
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not 0 <= value < 1e300:
            rejected.append((number, f"a sample of series {number} is {text[:40]}"))
            continue
        samples.append((number, at_s, value))
    return Series(result.metric.get("__name__", ""), result.metric, tuple(samples))


def _unknown(series: list[Series]) -> str:
    names = sorted({s.metric for s in series} - {""})
    if not names:
        return "its series have no metric name (the answer of an expression), so their unit is not known; query the metric itself"
    return f"energy is not derivable: {', '.join(names[:5])} is neither energy nor power; query {', '.join(list(METRICS)[:1])} or DCGM_FI_DEV_POWER_USAGE"
