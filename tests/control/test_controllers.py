"""Each way of setting: NVML over the unmodified binding, nvidia-smi through sudo, and none at all."""

import pytest
from pytest import approx

from carbonreport.control.controller import ControlDenied, ControlError, ControlRefused
from carbonreport.control.controllers import dryrun
from carbonreport.control.controllers import nvml as by_nvml
from carbonreport.control.controllers.smi import Answer, SmiController, ask
from carbonreport.control.means import FirstAllowed
from carbonreport.control.rights import advice, has_sys_admin, rights
from carbonreport.model.knobs import Knobs
from carbonreport.testing.controller import FakeController, fake_board

CAP = Knobs(power_cap_watts=300.5)


def uuid(nvml, index: int = 0) -> str:
    return nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByIndex(index))


# NVML


def test_a_cap_is_set_in_milliwatts_by_the_old_setter_and_put_back(virtual_driver, pynvml):
    virtual_driver.allow_setters(True)
    gpu, controller, device = virtual_driver.board(0), by_nvml.create(pynvml), uuid(pynvml)
    gpu.set_limit(650)
    before = controller.read(device)

    controller.set(device, CAP)
    assert gpu.peek().requested_watts == 300.5
    controller.restore(device, before.limit_watts, CAP)
    assert gpu.peek().requested_watts == 650
    assert {call.function for call in virtual_driver.setter_calls()} == {"nvmlDeviceSetPowerManagementLimit"}


def test_a_board_says_its_range_its_menus_and_what_is_in_force(virtual_driver, pynvml):
    virtual_driver.board(1).set(out_of_band_watts=500)
    state = by_nvml.create(pynvml).read(uuid(pynvml, 1))

    assert (state.limit_watts, state.enforced_watts, state.default_watts) == (700, 500, 700)
    assert (state.least_watts, state.most_watts, state.label) == (200, 700, "GPU 1 (NVIDIA H200)")
    assert (state.mem_clocks_mhz, state.sm_clocks_mhz[0], state.sm_clocks_mhz[-1]) == ((3201, 2201), 1980, 345)


def test_clocks_get_a_ceiling_and_are_unlocked_again(virtual_driver, pynvml):
    virtual_driver.allow_setters(True)
    gpu, controller, device = virtual_driver.board(0), by_nvml.create(pynvml), uuid(pynvml)
    knobs = Knobs(sm_clock_mhz=1410, mem_clock_mhz=2201)

    controller.set(device, knobs)
    locked = gpu.peek()
    assert (locked.core_lock_low_mhz, locked.core_lock_high_mhz, locked.memory_lock_high_mhz) == (345, 1410, 2201)
    controller.restore(device, 700.0, knobs)
    free = gpu.peek()
    assert (free.core_lock_high_mhz, free.memory_lock_high_mhz, free.requested_watts) == (0, 0, 700)
    assert "nvmlDeviceSetPowerManagementLimit" not in {call.function for call in virtual_driver.setter_calls()}


@pytest.mark.parametrize(
    ("error", "kind"),
    [("NoPermission", ControlDenied), ("NotSupported", ControlRefused), ("Timeout", ControlError), ("GpuIsLost", ControlError)],
)
def test_each_refusal_of_the_driver_has_its_class(virtual_driver, pynvml, error, kind):
    virtual_driver.allow_setters(True)
    virtual_driver.fail("nvmlDeviceSetPowerManagementLimit", error)

    with pytest.raises(kind):
        by_nvml.create(pynvml).set(uuid(pynvml), CAP)


def test_a_lost_board_is_an_error_and_no_state(virtual_driver, pynvml):
    device = uuid(pynvml)
    virtual_driver.fail("*", "GpuIsLost")

    with pytest.raises(ControlError, match="does not answer"):
        by_nvml.create(pynvml).read(device)


def test_an_unlock_that_fails_does_not_keep_the_limit_from_being_put_back(virtual_driver, pynvml):
    virtual_driver.allow_setters(True)
    gpu, controller, device = virtual_driver.board(0), by_nvml.create(pynvml), uuid(pynvml)
    knobs = Knobs(power_cap_watts=300, sm_clock_mhz=1410)
    controller.set(device, knobs)
    virtual_driver.fail("nvmlDeviceResetGpuLockedClocks", "Unknown")

    with pytest.raises(ControlError, match="core clock"):
        controller.restore(device, 650.0, knobs)
    assert gpu.peek().requested_watts == 650


# sudo nvidia-smi


class Sudo:
    """A sudo that answers as told and does what it is asked."""

    def __init__(self, fake: FakeController, code: int = 0, said: str = "") -> None:
        self.fake, self.code, self.said, self.commands = fake, code, said, []

    def __call__(self, command):
        self.commands.append(tuple(command))
        return Answer(self.code, self.said)


def test_nvidia_smi_is_asked_for_one_board_in_watts_without_a_shell():
    fake = FakeController({"GPU-00000": fake_board()})
    sudo = Sudo(fake)
    controller = SmiController(fake, sudo, "/usr/bin/nvidia-smi")
    knobs = Knobs(power_cap_watts=300.5, sm_clock_mhz=1410, mem_clock_mhz=2201)
    controller.set("GPU-00000", knobs)
    controller.restore("GPU-00000", 650.0, knobs)

    start = ("sudo", "-n", "/usr/bin/nvidia-smi", "-i", "GPU-00000")
    assert sudo.commands == [
        (*start, "-lgc", "345,1410"),
        (*start, "-lmc", "2201,2201"),
        (*start, "-pl", "300.5"),
        (*start, "-rgc"),
        (*start, "-rmc"),
        (*start, "-pl", "650"),
    ]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("sudo: a password is required", ControlDenied),
        ("sudo: nvidia-smi: command not found", ControlDenied),
        ("Unable to set", ControlError),
    ],
)
def test_a_refused_sudo_is_told_from_a_failure(said, kind):
    fake = FakeController({"GPU-00000": fake_board()})
    with pytest.raises(kind, match="nvidia-smi -i GPU-00000 -pl 300.5"):
        SmiController(fake, Sudo(fake, 1, said), "nvidia-smi").set("GPU-00000", CAP)


def test_every_way_back_is_tried_although_the_first_fails():
    fake = FakeController({"GPU-00000": fake_board()})
    sudo = Sudo(fake, 1, "Unable")
    with pytest.raises(ControlError):
        SmiController(fake, sudo, "nvidia-smi").restore("GPU-00000", 650.0, Knobs(power_cap_watts=300, sm_clock_mhz=1410))
    assert [command[-2:] for command in sudo.commands] == [("GPU-00000", "-rgc"), ("-pl", "650")]


def test_a_command_that_is_not_there_is_an_answer_and_no_crash():
    assert ask(["no-such-command-of-carbonreport"]).code == 127
    assert ask(["sh", "-c", "echo one; exit 3"]) == Answer(3, "one\n")


# The first way that is allowed


def test_the_second_way_is_taken_where_the_first_is_not_allowed_and_all_refusals_are_told():
    denied, allowed = (FakeController({"GPU-00000": fake_board()}) for _ in range(2))
    denied.is_allowed = False
    FirstAllowed([denied, allowed]).set("GPU-00000", CAP)
    assert allowed.boards["GPU-00000"].limit_watts == approx(300.5)

    allowed.is_allowed = False
    with pytest.raises(ControlDenied, match="may not set.*; .*may not set"):
        FirstAllowed([denied, allowed]).set("GPU-00000", CAP)


# Who may


def test_the_capability_is_read_from_the_process_status(tmp_path):
    status = tmp_path / "status"
    for mask, is_held in [("0000000000200000", True), ("000001ffffffffff", True), ("0000000000000000", False), ("00000000a80425fb", False)]:
        status.write_text(f"Name:\tpython\nCapEff:\t{mask}\n")
        assert has_sys_admin(status) is is_held


def test_a_user_without_rights_gets_the_sudoers_line_with_his_own_number_and_a_container_its_option(tmp_path):
    status = tmp_path / "status"
    status.write_text("CapEff:\t0\n")
    refused = lambda command: Answer(1, "a password is required")  # noqa: E731

    found = rights(1000, {}, ask=refused, status=status, marks=())
    assert found.way == ""
    assert "#1000 ALL=(root) NOPASSWD: /usr/bin/nvidia-smi ^-i GPU-" in found.remedy
    assert "--cap-add SYS_ADMIN" in rights(1000, {}, ask=refused, status=status, marks=(status,)).remedy
    assert "CAP_SYS_ADMIN" in advice(0, {}, marks=())
    assert rights(1000, {}, ask=lambda command: Answer(0, ""), status=status).way == "through sudo nvidia-smi"
    status.write_text("CapEff:\t1ffffffffff\n")
    assert rights(1000, {}, ask=refused, status=status).way == "with CAP_SYS_ADMIN"


# Nothing at all


def test_a_dry_run_says_and_sets_nothing():
    fake, said = FakeController({"GPU-00000": fake_board()}), []
    controller = dryrun.create(fake, said.append)
    controller.set("GPU-00000", CAP)
    controller.restore("GPU-00000", 650.0, CAP)

    assert said == [
        "would set a power cap of 300.5 W on GPU 0 (NVIDIA H200), GPU-00000; its limit is 650 W",
        "would put its limit back to 650 W on GPU-00000",
    ]
    assert fake.calls == []
