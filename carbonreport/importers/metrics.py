"""Metrics of Prometheus exporters: which are energy or power of a board, in what unit, and whose they are."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal

from carbonreport.importers.cells import JOULES, WATTS
from carbonreport.importers.counters import curve_of_counter
from carbonreport.importers.curves import Read, Reading, curve_of_powers
from carbonreport.importers.drafts import Draft, Load
from carbonreport.importers.imported import Rejected
from carbonreport.importers.limits import MOST_NODE_WATTS, limit_of
from carbonreport.model.notes import Note
from carbonreport.model.run import DeviceKind, Method

Labels = Mapping[str, str]
Quantity = Literal["counter", "power"]


@dataclass(frozen=True, slots=True)
class Metric:
    """What a metric means.

    Attributes:
        quantity: A growing energy, or a power.
        factor: Joules or watts of one of its units.
        kind: What it is of.
        method: How it is known.
        rank: Of several metrics of one device, the lowest is used.
    """

    quantity: Quantity
    factor: float
    kind: DeviceKind
    method: Method
    rank: int


# Names and units as their exporters define them: NVIDIA/dcgm-exporter default-counters.csv; mindprince's nvidia_gpu_exporter (milliwatts,
# whatever its HELP says); utkuozdemir/nvidia_gpu_exporter (three gauges of one board); jobstats; CEEMS; kepler; node_exporter.
METRICS: dict[str, Metric] = {
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": Metric("counter", JOULES["mj"], "gpu", "counter", 0),
    "DCGM_FI_DEV_POWER_USAGE_INSTANT": Metric("power", 1.0, "gpu", "instant", 2),
    "DCGM_FI_DEV_POWER_USAGE": Metric("power", 1.0, "gpu", "averaged", 1),
    "nvidia_gpu_power_usage_milliwatts": Metric("power", WATTS["mw"], "gpu", "averaged", 1),
    "nvidia_smi_power_draw_watts": Metric("power", 1.0, "gpu", "averaged", 1),
    "nvidia_smi_power_draw_instant_watts": Metric("power", 1.0, "gpu", "instant", 2),
    "nvidia_smi_power_draw_average_watts": Metric("power", 1.0, "gpu", "averaged", 3),
    "slurm_job_power_gpu": Metric("power", WATTS["mw"], "gpu", "averaged", 4),
    "ceems_ipmi_dcmi_current_watts": Metric("power", 1.0, "node", "reported", 1),
    "ceems_redfish_current_watts": Metric("power", 1.0, "node", "reported", 1),
    "ceems_rapl_package_joules_total": Metric("counter", 1.0, "cpu", "reported", 1),
    "node_rapl_package_joules_total": Metric("counter", 1.0, "cpu", "reported", 1),
    "ipmi_dcmi_power_consumption_watts": Metric("power", 1.0, "node", "reported", 1),
    "kepler_node_cpu_joules_total": Metric("counter", 1.0, "cpu", "reported", 1),
    "scaph_host_power_microwatts": Metric("power", WATTS["uw"], "node", "reported", 1),
}

_BOARD_IDS = ("UUID", "uuid", "minor_number", "gpu", "gpuid", "index", "device", "pci_bus_id", "ordinal")
_HOSTS = ("Hostname", "hostname", "instance", "node", "kubernetes_node", "exported_instance")
_WORKLOADS = ("exported_pod", "pod", "pod_name", "hpc_job", "jobid", "slurm_job")
_NOBODY = ("dcgm-exporter", "gpu-exporter", "nvidia_gpu_exporter")
_ZONES = ("zone", "domain")
_PORT = re.compile(r":\d+$")


@dataclass(frozen=True, slots=True)
class Series:
    """Samples of one metric and one set of labels, in the metric's own unit."""

    metric: str
    labels: Labels
    samples: tuple[Reading, ...]


def device_of(labels: Labels) -> tuple[str, str]:
    """Host and id of the board that labels name; a UUID is the same on any host."""
    found = next((labels[name] for name in _BOARD_IDS if labels.get(name)), "")
    is_unique = found.startswith("GPU-") or any(labels.get(name) for name in ("UUID", "uuid"))
    host = "" if is_unique else next((labels[name] for name in _HOSTS if labels.get(name)), "")
    return host, found


def host_of(labels: Labels) -> str:
    """Name of the host that labels name, without the port of its exporter; "" where they name none, or an address."""
    return next((name for label in _HOSTS if (name := _PORT.sub("", labels.get(label, "").strip())) and not _is_address(name)), "")


def _is_address(host: str) -> bool:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return host.casefold() == "localhost"
    return True


def workload_of(labels: Labels) -> str:
    """The pod or job that the labels name; "" for the exporter itself, which they name on idle boards."""
    found = next((labels[name] for name in _WORKLOADS if labels.get(name)), "")
    return "" if any(word in found for word in _NOBODY) else found


def drafts_of(series: Sequence[Series], rejected: list[Rejected], notes: list[Note], *, named: str) -> tuple[list[Draft], str]:
    """One run for each workload, and one for what belongs to nobody; why there is none.

    A MIG slice shows its board's own value, and replicas show it twice: each board counts once.
    """
    chosen = _one_metric_a_device(series)
    by_device: dict[tuple[str, tuple[str, str]], list[Series]] = defaultdict(list)
    for s in chosen:
        by_device[workload_of(s.labels), device_of(s.labels)].append(s)
    whose = _whose(by_device)
    loads: dict[str, list[Load]] = defaultdict(list)
    why_not, repeats = "", 0
    for (workload, device), same in by_device.items():
        if workload not in whose[device]:
            repeats += len(same)
            continue
        read, metric = _curve(same)
        rejected += read.rejected
        why_not = why_not or read.why_not
        repeats += read.curve.twins if read.curve is not None else 0
        if read.curve is not None:
            if read.curve.resets:
                notes.append(
                    Note("counter-reset", f"{named}: the counter of {device[1] or 'a device'} began again {read.curve.resets} times")
                )
            if read.curve.gaps:
                notes.append(
                    Note("reading-gap", f"{named}: {len(read.curve.gaps)} pauses of {device[1] or 'a device'} without a usable reading")
                )
            labels = same[0].labels
            name = labels.get("modelName") or labels.get("name") or f"{METRICS[metric].kind} {device[1]}".strip()
            loads[workload].append(
                Load(
                    " ".join(filter(None, device)) or metric,
                    name,
                    METRICS[metric].kind,
                    METRICS[metric].method,
                    metric,
                    read.curve,
                    host=_one_host(same),
                )
            )
    if repeats:
        notes.append(
            Note(
                "import-repeats",
                f"{named}: {repeats} samples or series repeat the value of their board (MIG slices, replicas) and count once",
            )
        )
    return [Draft("", workload or named, tuple(found), "utc") for workload, found in loads.items()], why_not


def _one_host(same: Sequence[Series]) -> str:
    """The host that all series of a board name; "" where they name several."""
    hosts = {host_of(s.labels) for s in same}
    return hosts.pop() if len(hosts) == 1 else ""


def _one_metric_a_device(series: Sequence[Series]) -> list[Series]:
    """The best metric of each device, counters before powers; packages alone of counters by zone, since zones overlap."""
    known = [s for s in series if s.metric in METRICS and len(s.samples) > 1 and _is_package(s)] or [
        s for s in series if s.metric in METRICS
    ]
    best: dict[tuple[str, tuple[str, str]], int] = {}
    for s in known:
        key = (METRICS[s.metric].kind, device_of(s.labels))
        best[key] = min(best.get(key, 99), METRICS[s.metric].rank)
    return [s for s in known if METRICS[s.metric].rank == best[METRICS[s.metric].kind, device_of(s.labels)]]


def _is_package(series: Series) -> bool:
    zone = next((series.labels[name] for name in _ZONES if series.labels.get(name)), "")
    return METRICS[series.metric].kind != "cpu" or not zone or zone.startswith("package")


def _whose(by_device: Mapping[tuple[str, tuple[str, str]], Sequence[Series]]) -> dict[tuple[str, str], set[str]]:
    """Workloads of each board. Where series of one board name different workloads at the same time, nobody has it alone: the first counts."""
    spans: dict[tuple[str, str], list[tuple[float, float, str]]] = defaultdict(list)
    for (workload, device), same in by_device.items():
        times = [at_s for s in same for _, at_s, _ in s.samples]
        spans[device].append((min(times), max(times), workload))
    whose = {}
    for device, periods in spans.items():
        kept: list[tuple[float, float, str]] = []
        for begin, end, workload in sorted(periods, key=lambda p: (not p[2], p[0])):
            if all(end <= other[0] or other[1] <= begin for other in kept):
                kept.append((begin, end, workload))
        whose[device] = {workload for _, _, workload in kept}
    return whose


def _curve(same: Sequence[Series]) -> tuple[Read, str]:
    """The curve of one board: its series follow each other as labels change, or repeat each other."""
    metric = METRICS[same[0].metric]
    longest = max(same, key=lambda s: len(s.samples))
    merged = [sample for s in same for sample in s.samples] if len(same) > 1 else longest.samples
    readings = [(line, at_s, value * metric.factor) for line, at_s, value in sorted(merged, key=lambda sample: sample[1])]
    limit = limit_of(longest.labels.get("modelName", "")) if metric.kind == "gpu" else MOST_NODE_WATTS
    if metric.quantity == "counter":
        return curve_of_counter(readings, limit), longest.metric
    return curve_of_powers(readings, limit, named=longest.metric), longest.metric
