"""What this machine can measure, how, why not better, and the exact command that would help."""

import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from carbonreport.errors import CarbonreportError, MeterAbsent, MeterDenied, MeterError
from carbonreport.measure.clock import Clock, RunClock, SystemClock
from carbonreport.measure.host import host_time_zone
from carbonreport.measure.meter import Meter
from carbonreport.model.run import Device
from carbonreport.plugins import load as load_plugin
from carbonreport.workflows.cap_finding import cap_finding
from carbonreport.workflows.finding import Finding
from carbonreport.workflows.place import PlaceOptions, recording_place, site_of

_EXTRAS = (
    ("matplotlib", "plots", "pictures in HTML and PDF"),
    ("weasyprint", "pdf", "PDF statements"),
    ("pandas", "frames", "pandas views of records"),
)
# Meters of GPUs, and the vendor's own tool to look with.
_GPU_TOOLS = {"nvml": "nvidia-smi", "amd": "amd-smi list"}
# Meters of the processors' counters, and what opens each of them to this user.
_HOST_COUNTERS = {
    "rapl": "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj",
    "perf": "sudo sysctl kernel.perf_event_paranoid=0",
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that doctor says.

    Attributes:
        devices: What a run would measure here, as a run would.
        findings: By subject.
        cannot_say: What the next statement will not be able to say.
    """

    devices: tuple[Device, ...]
    findings: tuple[Finding, ...]
    cannot_say: tuple[str, ...]


def diagnose(
    options: PlaceOptions,
    *,
    environ: Mapping[str, str] = os.environ,
    create: Callable[[str], Meter] = lambda name: load_plugin("meter", name),
    clock: Clock | None = None,
    folder: Path = Path(),
    has_package: Callable[[str], bool] = lambda name: importlib.util.find_spec(name) is not None,
    look_at_caps: Callable[[Mapping[str, str]], Finding | None] = cap_finding,
) -> Diagnosis:
    """Open every meter as a run would, look at the place and the extras."""
    run_clock = RunClock(clock or SystemClock())
    gpus, gpu_finding = _gpus(create, run_clock)
    host, host_findings = _host(create, run_clock)
    caps = look_at_caps(environ)
    findings = [gpu_finding, *host_findings, *([caps] if caps else []), *_place(options, environ, folder), *_extras(has_package)]
    devices = (*gpus, *host)
    return Diagnosis(devices, tuple(findings), tuple(_cannot_say(devices, findings)))


def _opened(name: str, create: Callable[[str], Meter], clock: RunClock) -> tuple[Device, ...]:
    """Devices of one meter, which is closed again. Raises MeterError."""
    meter = create(name)
    devices = meter.open(clock)
    meter.close()
    return devices


def _gpus(create: Callable[[str], Meter], clock: RunClock) -> tuple[tuple[Device, ...], Finding]:
    """Boards of NVIDIA and of AMD; what refuses without being absent is said with the command that looks into it."""
    devices: list[Device] = []
    refusals: dict[str, MeterError] = {}
    for name in _GPU_TOOLS:
        try:
            devices += _opened(name, create, clock)
        except MeterError as error:
            refusals[name] = error
    faults = {name: error for name, error in refusals.items() if not isinstance(error, MeterAbsent)}
    remedy = " or: ".join(_GPU_TOOLS[name] for name in faults)
    if devices:
        methods = [f"{d.name}: {d.method} ({d.source})" for d in devices]
        return tuple(devices), Finding("GPUs", "measured", ", ".join([*methods, *(str(error) for error in faults.values())]), remedy)
    return (), Finding("GPUs", "missing", "; ".join(str(error) for error in (faults or refusals).values()), remedy)


def _host(create: Callable[[str], Meter], clock: RunClock) -> tuple[tuple[Device, ...], list[Finding]]:
    """Processors and memory by RAPL, in powercap or in perf events, else the model of busy time."""
    refusals: list[MeterError] = []
    for name in _HOST_COUNTERS:
        try:
            return _counted(_opened(name, create, clock))
        except MeterError as error:
            refusals.append(error)
    remedies = [remedy for error, remedy in zip(refusals, _HOST_COUNTERS.values(), strict=True) if isinstance(error, MeterDenied)]
    return _model(create, clock, "; ".join(str(error) for error in refusals), " or: ".join(remedies))


def _counted(devices: tuple[Device, ...]) -> tuple[tuple[Device, ...], list[Finding]]:
    kinds = {device.kind for device in devices}
    findings = [Finding("processors", "measured", ", ".join(f"{d.name} ({d.source})" for d in devices if d.kind == "cpu"))]
    if "dram" in kinds:
        findings.append(Finding("memory", "measured", ", ".join(d.name for d in devices if d.kind == "dram")))
    else:
        findings.append(Finding("memory", "missing", "this processor has no counter of its memory"))
    return devices, findings


def _model(create: Callable[[str], Meter], clock: RunClock, why: str, remedy: str) -> tuple[tuple[Device, ...], list[Finding]]:
    memory = Finding("memory", "missing", "nothing reads it here")
    try:
        devices = _opened("hostmodel", create, clock)
    except MeterError as error:
        return (), [Finding("processors", "missing", f"{why}; {error}", remedy), memory]
    text = f"{devices[0].name}: {devices[0].source}; {why}"
    way_out = remedy or "[host] idle_watts and busy_watts in carbonreport.toml, where a wall meter told them"
    return devices, [Finding("processors", "estimated", text, way_out), memory]


def _place(options: PlaceOptions, environ: Mapping[str, str], folder: Path) -> list[Finding]:
    try:
        site = site_of(options, environ, folder)
        place = recording_place(options, site, environ, host_time_zone(environ))
    except CarbonreportError as error:
        return [Finding("place", "unknown", str(error))]
    if place.zone is None:
        zone = Finding(
            "grid zone",
            "unknown",
            "nobody gave one, and the machine's time zone tells no country",
            "--zone DE, or zone in carbonreport.toml",
        )
    elif place.zone_source.startswith("guessed"):
        zone = Finding("grid zone", "estimated", f"{place.zone}, {place.zone_source}", f"--zone {place.zone}, if it is right")
    else:
        zone = Finding("grid zone", "known", f"{place.zone} ({place.zone_source})")
    if place.pue is None:
        pue = Finding(
            "PUE",
            "unknown",
            "nobody gave one; the default of an unknown data centre would be used",
            "--pue 1.2, or --pue desktop where there is no facility",
        )
    else:
        pue = Finding("PUE", "known", f"{place.pue.value:g} ({place.pue.source})")
    return [zone, pue]


def _extras(has_package: Callable[[str], bool]) -> list[Finding]:
    return [
        Finding(what, "missing", f"{package} is not installed", f"pip install 'carbonreport[{extra}]'")
        for package, extra, what in _EXTRAS
        if not has_package(package)
    ]


def _cannot_say(devices: tuple[Device, ...], findings: list[Finding]) -> list[str]:
    """What the next statement will list as omitted, estimated or assumed."""
    kinds = {device.kind for device in devices}
    lines = [] if "gpu" in kinds else ["how much energy the GPUs used"]
    if "cpu" not in kinds:
        lines.append("how much energy the processors used")
    elif any(device.kind == "cpu" and device.method == "model" for device in devices):
        lines.append("how much energy the processors used, other than as a wide estimate")
    if "dram" not in kinds:
        lines.append("how much energy the memory used")
    lines.append("how much energy power supplies, fans, storage and network used")
    unknown = {finding.subject for finding in findings if finding.state == "unknown"}
    if "grid zone" in unknown or "place" in unknown:
        lines.append("where it ran: the world's average grid would be charged")
    if "PUE" in unknown or "place" in unknown:
        lines.append("what the facility added: an assumed PUE would be used")
    return lines
