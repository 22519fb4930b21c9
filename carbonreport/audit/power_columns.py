"""Names of columns of power and of energy counters in the wild, and what each of them is."""

from collections.abc import Sequence
from dataclasses import dataclass

from carbonreport.errors import RecordError

# Names of columns in the wild -> (role, factor to W or mJ).
_VALUES: dict[str, tuple[str, float]] = {
    "watts": ("watts", 1.0),
    "power_watts": ("watts", 1.0),
    "power_w": ("watts", 1.0),
    "power.draw [w]": ("watts", 1.0),
    "power.draw.instant [w]": ("watts", 1.0),
    "power.draw.average [w]": ("watts", 1.0),
    "power.draw": ("watts", 1.0),
    "dcgm_fi_dev_power_usage": ("watts", 1.0),
    "nvidia_smi_power_draw_watts": ("watts", 1.0),
    "milliwatts": ("watts", 1e-3),
    "power_mw": ("watts", 1e-3),
    "nvidia_gpu_power_usage_milliwatts": ("watts", 1e-3),
    "dcgm_fi_dev_total_energy_consumption": ("counter", 1.0),
    "energy_mj": ("counter", 1.0),
    "counter_mj": ("counter", 1.0),
    "energy_joules": ("counter", 1e3),
    "counter_joules": ("counter", 1e3),
}
_DEVICES = ("uuid", "gpu_uuid", "gpu.uuid", "device", "device_uuid", "pci.bus_id", "gpu_bus_id", "bus_id", "serial", "gpu_serial")
_TIMES = ("timestamp", "time", "ts", "time_utc", "datetime")
_OTHERS = {
    "host": ("hostname", "host", "node", "nodename", "instance"),
    "model": ("modelname", "gpu_name", "name", "gpu_model", "model"),
    "job": ("hpc_job", "job_id", "jobid", "job", "slurm_job_id"),
    "kind": ("kind", "device_kind"),
}


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column is what; "" where there is none."""

    device: str
    time: str
    value: str
    role: str
    factor: float
    host: str = ""
    model: str = ""
    job: str = ""
    kind: str = ""


def columns_of(names: Sequence[str], where: str) -> Columns:
    """Roles of the columns of a table of samples.

    Raises:
        RecordError: Device, time or value is missing; the message says which and names what it may be called.
    """
    held = {name.strip().strip('"').casefold(): name for name in reversed(names)}
    value = next((name for name in _VALUES if name in held and _VALUES[name][0] == "counter"), None) or next(
        (n for n in _VALUES if n in held), None
    )
    device = next((name for name in _DEVICES if name in held), None)
    at = next((name for name in _TIMES if name in held), None)
    for what, found, wanted in (
        ("a device", device, _DEVICES[:4]),
        ("a time", at, _TIMES[:3]),
        ("watts or a counter", value, ("watts", "energy_mj", *list(_VALUES)[3:4])),
    ):
        if found is None:
            raise RecordError(
                f"{where}: energy is not derivable: no column of {what}, such as {', '.join(wanted)}; it has {', '.join(names[:12])}"
            )
    others = {role: next((held[name] for name in wanted if name in held), "") for role, wanted in _OTHERS.items()}
    role, factor = _VALUES[value or ""]
    return Columns(held[device or ""], held[at or ""], held[value or ""], role, factor, **others)
