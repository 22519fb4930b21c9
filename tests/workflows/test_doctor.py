"""Doctor: what is measured here, why not more, and the exact way out."""

import json
from pathlib import Path

import pytest

from carbonreport.cli.main import main
from carbonreport.errors import MeterAbsent, MeterDenied, MeterError
from carbonreport.measure.meter import Meter
from carbonreport.measure.meters.hostmodel import HostModel
from carbonreport.testing import FakeClock, FakeMeter
from carbonreport.workflows.doctor import Diagnosis, diagnose
from carbonreport.workflows.place import PlaceOptions


def examined(folder: Path, meters: dict[str, Meter | Exception], options: PlaceOptions | None = None, packages: bool = True) -> Diagnosis:
    def create(name: str) -> Meter:
        meter = meters.get(name, MeterAbsent(f"no {name} here"))
        if isinstance(meter, Exception):
            raise meter
        return meter

    return diagnose(options or PlaceOptions(), environ={}, create=create, clock=FakeClock(), folder=folder, has_package=lambda _: packages)


def states(diagnosis: Diagnosis) -> dict[str, str]:
    return {finding.subject: finding.state for finding in diagnosis.findings}


def test_measured_devices_are_named_with_their_method(tmp_path):
    diagnosis = examined(
        tmp_path, {"nvml": FakeMeter(1.0), "rapl": FakeMeter(1.0, device="cpu-package-0", kind="cpu")}, PlaceOptions("DE", "1.2")
    )

    assert states(diagnosis) == {"GPUs": "measured", "processors": "measured", "memory": "missing", "grid zone": "known", "PUE": "known"}
    assert [device.id for device in diagnosis.devices] == ["GPU-fake", "cpu-package-0"]
    assert diagnosis.cannot_say == ("how much energy the memory used", "how much energy power supplies, fans, storage and network used")


def test_counters_that_may_not_be_read_come_with_the_command_that_frees_them(tmp_path):
    diagnosis = examined(tmp_path, {"rapl": MeterDenied("energy_uj may not be read"), "hostmodel": FakeMeter(1.0, kind="cpu")})
    processors = next(finding for finding in diagnosis.findings if finding.subject == "processors")

    assert processors.state == "estimated"
    assert processors.remedy.startswith("sudo chmod")


def test_processors_that_perf_events_count_are_measured_although_powercap_is_shut(tmp_path):
    diagnosis = examined(tmp_path, {"rapl": MeterDenied("shut"), "perf": FakeMeter(1.0, device="cpu-package-0", kind="cpu")})

    assert states(diagnosis)["processors"] == "measured"


def test_each_road_that_is_shut_comes_with_its_own_command(tmp_path):
    both = examined(tmp_path, {"rapl": MeterDenied("shut"), "perf": MeterDenied("shut too"), "hostmodel": FakeMeter(1.0, kind="cpu")})
    perf_alone = examined(tmp_path, {"perf": MeterDenied("shut"), "hostmodel": FakeMeter(1.0, kind="cpu")})

    assert [f.remedy for d in (both, perf_alone) for f in d.findings if f.subject == "processors"] == [
        "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj or: sudo sysctl kernel.perf_event_paranoid=0",
        "sudo sysctl kernel.perf_event_paranoid=0",
    ]


def test_boards_of_both_vendors_are_found_and_one_that_refuses_names_its_tool(tmp_path):
    both = examined(tmp_path, {"nvml": FakeMeter(1.0), "amd": FakeMeter(1.0, device="GPU-amd")})
    refused = examined(tmp_path, {"amd": MeterError("amdsmi cannot be started")})

    assert [device.id for device in both.devices] == ["GPU-fake", "GPU-amd"]
    assert [(f.state, f.text, f.remedy) for f in refused.findings if f.subject == "GPUs"] == [
        ("missing", "amdsmi cannot be started", "amd-smi list")
    ]


def test_an_empty_machine_says_everything_that_will_be_missing(tmp_path):
    diagnosis = examined(tmp_path, {}, packages=False)

    assert diagnosis.devices == ()
    assert "how much energy the GPUs used" in diagnosis.cannot_say
    assert "where it ran: the world's average grid would be charged" in diagnosis.cannot_say
    assert {f.remedy for f in diagnosis.findings} >= {"pip install 'carbonreport[pdf]'", "pip install 'carbonreport[plots]'"}


def test_a_place_that_is_wrong_is_a_finding_and_no_failure(tmp_path):
    diagnosis = examined(tmp_path, {}, PlaceOptions("DEE"))

    assert states(diagnosis)["place"] == "unknown"


def test_a_host_model_that_cannot_read_says_why(tmp_path):
    diagnosis = examined(tmp_path, {"hostmodel": HostModel(stat=tmp_path / "none")})

    assert states(diagnosis)["processors"] == "missing"


@pytest.mark.parametrize("as_json", [True, False])
def test_it_runs_on_this_machine(as_json, capsys):
    with pytest.raises(SystemExit) as end:
        main(["doctor", *(["--json"] if as_json else [])])
    out = capsys.readouterr().out

    assert end.value.code == 0
    assert (
        set(json.loads(out)) == {"devices", "findings", "cannot_say"} if as_json else "The next statement will not be able to say:" in out
    )
