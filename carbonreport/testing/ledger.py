"""Rows of a lab's ledger that never were, for tests."""

from datetime import datetime
from typing import Any

from carbonreport.audit.tables import HOUR_US, JobRow, MeterRow, microseconds


def us(text: str) -> int:
    """POSIX microseconds of ISO 8601 with a zone."""
    return microseconds(datetime.fromisoformat(text).timestamp())


def a_job(job_id: str, start: str | int, hours: float, **others: Any) -> JobRow:
    """A job of one GPU on host n1; `others` are fields of the row."""
    start_us = us(start) if isinstance(start, str) else start
    method = "" if others.get("energy_mj") is None else "reported"
    fields: dict[str, Any] = {
        "cluster": "lab",
        "submit_us": None,
        "project": "vision",
        "person": "p-1",
        "is_pseudonym": True,
        "partition": "gpu",
        "state": "COMPLETED",
        "gpu_model": "",
        "gpus": 1,
        "nodes": 1,
        "hosts": "n1",
        "exclusive": None,
        "energy_mj": None,
        "method": method,
        "source": "test",
        **others,
    }
    return JobRow(job_id=job_id, start_us=start_us, end_us=start_us + round(hours * HOUR_US), **fields)


def a_reading(device: str, start: str | int, hours: float, energy_mj: int | None, **others: Any) -> MeterRow:
    """A counter's reading of an H200 on host n1, without gaps; `others` are fields of the row."""
    start_us = us(start) if isinstance(start, str) else start
    length_us = round(hours * HOUR_US)
    fields: dict[str, Any] = {
        "kind": "gpu",
        "host": "n1",
        "method": "counter",
        "gpu_model": "NVIDIA H200",
        "job_id": None,
        "source": "test",
        **others,
    }
    return MeterRow(
        device=device,
        start_us=start_us,
        end_us=start_us + length_us,
        read_us=fields.pop("read_us", length_us),
        energy_mj=energy_mj,
        **fields,
    )
