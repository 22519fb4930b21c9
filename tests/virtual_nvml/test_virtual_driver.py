"""The virtual driver answers the unmodified nvidia-ml-py as a driver does, and what is measured on it is true."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise

import pytest
from pytest import approx

from carbonreport.measure.clock import RunClock
from carbonreport.measure.meters.nvml import NvmlMeter
from carbonreport.store import load

TOTAL_POWER, MEMORY_CLOCK, SM_CLOCK = 0, 2, 1
ENERGY, AVERAGE, INSTANT, SCOPED_ENERGY, MODULE_SCOPE = 83, 185, 186, 191, 1
CAPPED_NS = 74


def boards(pynvml):
    return [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]


def counter_joules(pynvml, handle):
    return pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000


def samples(pynvml, handle, since_us=0):
    kind, found = pynvml.nvmlDeviceGetSamples(handle, TOTAL_POWER, since_us)
    assert kind == pynvml.NVML_VALUE_TYPE_UNSIGNED_INT
    return [(sample.timeStamp, sample.sampleValue.uiVal / 1000) for sample in found]


def field(pynvml, handle, *ids):
    answers = pynvml.nvmlDeviceGetFieldValues(handle, list(ids))
    return [a.nvmlReturn or (a.value.ullVal if a.valueType == 3 else a.value.uiVal) for a in answers]


# The driver and its boards


def test_boards_are_found_by_index_uuid_and_bus_in_the_models_own_names(make_virtual_driver, pynvml):
    make_virtual_driver("h200", "a100", "v100")
    handles = boards(pynvml)

    assert [pynvml.nvmlDeviceGetName(h) for h in handles] == ["NVIDIA H200", "NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-16GB"]
    assert [pynvml.nvmlDeviceGetArchitecture(h) for h in handles] == [9, 7, 5]
    assert pynvml.nvmlSystemGetDriverVersion() == "580.159.04"
    for i, handle in enumerate(handles):
        uuid, bus = pynvml.nvmlDeviceGetUUID(handle), pynvml.nvmlDeviceGetPciInfo(handle).busId
        assert pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByUUID(uuid)) == i
        assert pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByPciBusId(bus)) == i
    assert len({pynvml.nvmlDeviceGetUUID(h) for h in handles}) == 3


def test_eight_boards_fit(make_virtual_driver, pynvml):
    make_virtual_driver(*["h100"] * 8)

    assert pynvml.nvmlDeviceGetCount() == 8


@pytest.mark.parametrize("models", [["h100"] * 9, ["h300"]])
def test_a_ninth_board_or_an_unknown_model_is_refused(make_virtual_driver, models):
    with pytest.raises(ValueError, match="Open"):
        make_virtual_driver(*models)


def test_nothing_answers_after_the_end_until_the_next_start(virtual_driver, pynvml):
    pynvml.nvmlShutdown()
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlDeviceGetCount()

    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetCount() == 2


# Energy


def test_the_counter_holds_the_energy_of_its_last_tick(virtual_driver, pynvml):
    handle, gpu = boards(pynvml)[0], virtual_driver.board(0)
    gpu.set(tick_phase_s=0.03)
    gpu.constant(500)
    seen = []
    for _ in range(100):
        virtual_driver.advance(0.01)
        seen.append(counter_joules(pynvml, handle))

    changes = [i for i, (a, b) in enumerate(pairwise(seen), start=1) if a != b]
    assert [i % 10 for i in changes] == [2] * len(changes)
    assert [seen[b] - seen[a] for a, b in pairwise(changes)] == [approx(50.0, abs=0.002)] * (len(changes) - 1)
    assert field(pynvml, handle, ENERGY, SCOPED_ENERGY) == [round(seen[-1] * 1000)] * 2


def test_the_counter_counts_with_its_gain_and_restarts_at_zero(virtual_driver, pynvml):
    handle, gpu = boards(pynvml)[0], virtual_driver.board(0)
    gpu.set(counter_gain=1.04)
    before = counter_joules(pynvml, handle)
    gpu.constant(300)
    virtual_driver.advance(100)
    assert counter_joules(pynvml, handle) - before == approx(1.04 * 30_000, rel=1e-6)

    gpu.reset_counter()
    assert counter_joules(pynvml, handle) == 0
    virtual_driver.advance(10)
    assert counter_joules(pynvml, handle) == approx(1.04 * 3000)


def test_a_pascal_board_has_no_counter(make_virtual_driver, pynvml):
    make_virtual_driver("p100")
    (handle,) = boards(pynvml)

    with pytest.raises(pynvml.NVMLError_NotSupported):
        counter_joules(pynvml, handle)
    assert field(pynvml, handle, ENERGY) == [pynvml.NVML_ERROR_NOT_SUPPORTED]


# Power samples


def test_the_buffer_holds_119_or_120_samples_on_a_strict_lattice_with_wall_clock_stamps(virtual_driver, pynvml):
    handle = boards(pynvml)[0]
    virtual_driver.board(0).set(sample_phase_s=0.007)
    virtual_driver.advance(10)
    lengths = set()
    for _ in range(4):
        virtual_driver.advance(0.02)
        stamps = [us for us, _ in samples(pynvml, handle)]
        lengths.add(len(stamps))
        assert {b - a for a, b in pairwise(stamps)} == {20_000}
        assert stamps[-1] % 20_000 == 7_000
        assert 0 <= virtual_driver.wall_ns() // 1000 - stamps[-1] < 20_000
    assert lengths == {119, 120}


def test_a_sample_is_given_once_and_then_nothing_is_found(virtual_driver, pynvml):
    handle = boards(pynvml)[0]
    newest_us = samples(pynvml, handle)[-1][0]

    with pytest.raises(pynvml.NVMLError_NotFound):
        samples(pynvml, handle, newest_us)
    virtual_driver.advance(0.1)
    assert len(samples(pynvml, handle, newest_us)) == 5


@pytest.mark.parametrize(("tau_s", "delay_s"), [(0.0127, 0.00335), (0.03, 0.0), (0.0, 0.01)])
def test_samples_are_a_first_order_low_pass_of_power_after_a_delay(virtual_driver, pynvml, tau_s, delay_s):
    handle, gpu = boards(pynvml)[0], virtual_driver.board(0)
    gpu.set(sensor_tau_s=tau_s, sensor_delay_s=delay_s)
    gpu.constant(100)
    virtual_driver.advance(2.004)
    edge_us = virtual_driver.wall_ns() / 1000
    gpu.constant(600)
    virtual_driver.advance(0.3)

    for us, watts in samples(pynvml, handle):
        since_s = (us - edge_us) / 1e6 - delay_s
        if since_s > 0:
            assert watts == approx(600 - 500 * (math.exp(-since_s / tau_s) if tau_s else 0), abs=0.01)
        elif since_s > -0.8:
            assert watts == approx(100, abs=0.01)


@pytest.mark.parametrize("window_s", [0.02, 0.1, 1.0])
def test_samples_may_be_means_over_a_window_instead(virtual_driver, pynvml, window_s):
    handle, gpu = boards(pynvml)[0], virtual_driver.board(0)
    gpu.set(sensor_window_s=window_s, sensor_delay_s=0)
    gpu.constant(100)
    virtual_driver.advance(2.004)
    edge_us = virtual_driver.wall_ns() / 1000
    gpu.constant(600)
    virtual_driver.advance(1.5)

    for us, watts in samples(pynvml, handle):
        inside_s = min(max((us - edge_us) / 1e6, 0), window_s)
        assert watts == approx(100 + 500 * inside_s / window_s, abs=0.01)


def test_a_share_of_stamps_is_late_on_each_board_its_own_and_stamps_rise(virtual_driver, pynvml):
    first, second = boards(pynvml)
    for i in range(2):
        virtual_driver.board(i).set(late_share=0.3)
    seen = {}
    for _ in range(30):
        virtual_driver.advance(1)
        stamps = [us for us, _ in samples(pynvml, first)]
        assert stamps == sorted(set(stamps))
        assert stamps[-1] <= virtual_driver.wall_ns() // 1000
        seen |= {us: us % 20_000 for us in stamps}
        assert stamps != [us for us, _ in samples(pynvml, second)]
    late_us = [us for us in seen.values() if us]

    assert 0.25 < len(late_us) / len(seen) < 0.45
    assert len(set(late_us)) > 0.9 * len(late_us)


def test_samples_may_be_missing_and_a_frozen_buffer_brings_no_more(virtual_driver, pynvml):
    handle, gpu = boards(pynvml)[0], virtual_driver.board(0)
    gpu.set(missing_share=0.1)
    virtual_driver.advance(20)
    steps_us = [b - a for a, b in pairwise(us for us, _ in samples(pynvml, handle))]
    assert set(steps_us) >= {20_000, 40_000}

    newest_us = samples(pynvml, handle)[-1][0]
    gpu.set(is_buffer_frozen=1)
    virtual_driver.advance(5)
    assert samples(pynvml, handle)[-1][0] == newest_us
    with pytest.raises(pynvml.NVMLError_NotFound):
        samples(pynvml, handle, newest_us)


# Instant and averaged power


def test_instant_power_changes_every_tenth_of_a_second(virtual_driver, pynvml):
    handle = boards(pynvml)[0]
    virtual_driver.board(0).steps([(k * 0.01, 100 + k) for k in range(500)])
    seen = []
    for _ in range(100):
        virtual_driver.advance(0.01)
        seen += field(pynvml, handle, INSTANT)

    assert len(set(seen)) == approx(11, abs=1)


def test_instant_power_of_a_board_that_senses_a_quarter_of_the_time_is_the_mean_of_that_quarter(make_virtual_driver, pynvml):
    driver = make_virtual_driver("a100")
    (handle,) = boards(pynvml)
    driver.board(0).square_wave(60, 260, period_s=0.1, duty=0.9)
    driver.advance(5)

    assert field(pynvml, handle, INSTANT) == [approx(1000 * (0.015 * 260 + 0.010 * 60) / 0.025, rel=1e-3)]


def test_power_usage_is_a_mean_over_a_second_and_instant_on_ga100_and_old_boards(make_virtual_driver, pynvml):
    driver = make_virtual_driver("h200", "a100", "v100")
    for i in range(3):
        driver.board(i).constant(100)
    driver.advance(10)
    for i in range(3):
        driver.board(i).constant(200)
    driver.advance(0.3)

    usage = [pynvml.nvmlDeviceGetPowerUsage(handle) / 1000 for handle in boards(pynvml)]
    assert usage == [approx(130, abs=0.1), approx(200, abs=0.1), approx(200, abs=0.1)]
    assert [field(pynvml, handle, AVERAGE) for handle in boards(pynvml)] == [[approx(130_000, abs=100)], [3], [3]]


def test_fields_have_no_module_scope_and_unknown_ones_are_not_supported(virtual_driver, pynvml):
    handle = boards(pynvml)[0]

    assert field(pynvml, handle, (INSTANT, MODULE_SCOPE), (SCOPED_ENERGY, MODULE_SCOPE), 4711) == [pynvml.NVML_ERROR_NOT_SUPPORTED] * 3
    assert field(pynvml, handle, 187, 188, 189, 190, 192) == [200_000, 700_000, 700_000, 700_000, 700_000]


# Limits and clocks


def test_a_limit_is_set_by_root_alone_and_within_its_range(virtual_driver, pynvml):
    handle = boards(pynvml)[0]
    virtual_driver.allow_setters(False)
    with pytest.raises(pynvml.NVMLError_NoPermission):
        pynvml.nvmlDeviceSetPowerManagementLimit(handle, 400_000)

    virtual_driver.allow_setters(True)
    for milliwatts in (199_000, 701_000):
        with pytest.raises(pynvml.NVMLError_InvalidArgument):
            pynvml.nvmlDeviceSetPowerManagementLimit(handle, milliwatts)
    pynvml.nvmlDeviceSetPowerManagementLimit(handle, 400_000)

    assert pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle) == [200_000, 700_000]
    assert pynvml.nvmlDeviceGetPowerManagementLimit(handle) == pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) == 400_000
    assert pynvml.nvmlDeviceGetPowerManagementDefaultLimit(handle) == 700_000
    assert [(c.function, c.board, c.first, c.code, c.pid) for c in virtual_driver.setter_calls()] == [
        ("nvmlDeviceSetPowerManagementLimit", 0, watts, code, os.getpid()) for watts, code in [(400, 4), (199, 2), (701, 2), (400, 0)]
    ]


def test_an_out_of_band_cap_holds_where_it_is_lower_and_does_not_change_the_request(virtual_driver, pynvml):
    handle, gpu = boards(pynvml)[0], virtual_driver.board(0)
    gpu.set(out_of_band_watts=500)
    gpu.constant(650)
    virtual_driver.advance(5)

    assert pynvml.nvmlDeviceGetPowerManagementLimit(handle) == 700_000
    assert pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) == 500_000
    assert field(pynvml, handle, 190, 192) == [500_000, 700_000]
    assert gpu.peek().watts <= 500


def test_a_limit_may_be_ignored_in_silence_or_take_its_time(virtual_driver, pynvml):
    virtual_driver.allow_setters(True)
    (deaf, slow), (gpu, slow_gpu) = boards(pynvml), map(virtual_driver.board, range(2))
    gpu.set(ignores_limit=1)
    slow_gpu.set(limit_latency_s=0.5)
    slow_gpu.constant(650)
    for handle in (deaf, slow):
        pynvml.nvmlDeviceSetPowerManagementLimit(handle, 300_000)

    assert pynvml.nvmlDeviceGetPowerManagementLimit(deaf) == 700_000
    assert pynvml.nvmlDeviceGetPowerManagementLimit(slow) == 300_000
    virtual_driver.advance(0.4)
    assert slow_gpu.peek().watts == approx(650)
    virtual_driver.advance(0.2)
    assert slow_gpu.peek().watts <= 300


def test_a_limit_bends_clock_power_and_speed_and_counts_the_time(virtual_driver, pynvml):
    virtual_driver.allow_setters(True)
    handle, gpu = boards(pynvml)[0], virtual_driver.board(0)
    gpu.utilisation(1.0, 0.3)
    free = gpu.peek()
    pynvml.nvmlDeviceSetPowerManagementLimit(handle, 400_000)
    virtual_driver.advance(10)
    capped = gpu.peek()

    assert (free.core_mhz, free.speed) == (1980, 1.0)
    assert 400 - 15 < capped.watts <= 400 < free.watts
    assert capped.speed == approx(capped.core_mhz / 1980)
    assert capped.work_s - free.work_s == approx(10 * capped.speed)
    assert pynvml.nvmlDeviceGetClockInfo(handle, SM_CLOCK) == capped.core_mhz < 1980
    assert pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle) == 4
    assert field(pynvml, handle, CAPPED_NS) == [10_000_000_000]


def test_lower_limits_are_slower_and_never_draw_more(virtual_driver):
    gpu = virtual_driver.board(0)
    gpu.utilisation(1.0, 0.8)
    truths = []
    for watts in range(700, 190, -20):
        gpu.set_limit(watts)
        truths.append((watts, gpu.peek()))

    assert all(b.watts <= a.watts and b.speed <= a.speed for (_, a), (_, b) in pairwise(truths))
    assert all(truth.watts <= limit for limit, truth in truths)


def test_locks_are_set_after_a_latency_and_reset(virtual_driver, pynvml):
    virtual_driver.allow_setters(True)
    handle, gpu = boards(pynvml)[0], virtual_driver.board(0)
    gpu.set(clock_latency_s=0.05)
    gpu.utilisation(1.0, 0.5)

    def clocks():
        return [pynvml.nvmlDeviceGetClockInfo(handle, kind) for kind in (SM_CLOCK, MEMORY_CLOCK)]

    pynvml.nvmlDeviceSetGpuLockedClocks(handle, 345, 1207)
    pynvml.nvmlDeviceSetMemoryLockedClocks(handle, 2201, 2201)
    virtual_driver.advance(0.04)
    assert clocks() == [1980, 3201]
    virtual_driver.advance(0.02)
    assert clocks() == [1200, 2201]
    assert (gpu.peek().core_lock_high_mhz, gpu.peek().memory_lock_low_mhz) == (1207, 2201)

    pynvml.nvmlDeviceResetGpuLockedClocks(handle)
    pynvml.nvmlDeviceResetMemoryLockedClocks(handle)
    virtual_driver.advance(0.06)
    assert clocks() == [1980, 3201]
    assert [call.function for call in virtual_driver.setter_calls()] == [
        f"nvmlDevice{name}LockedClocks" for name in ("SetGpu", "SetMemory", "ResetGpu", "ResetMemory")
    ]


def test_wrong_locks_and_missing_rights_are_refused(make_virtual_driver, pynvml):
    driver = make_virtual_driver("h200", "v100")
    hopper, volta = boards(pynvml)
    driver.allow_setters(True)
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlDeviceSetGpuLockedClocks(hopper, 1500, 1200)
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceSetMemoryLockedClocks(volta, 877, 877)

    driver.allow_setters(False)
    for call, arguments in [
        ("SetGpuLockedClocks", (345, 1200)),
        ("ResetGpuLockedClocks", ()),
        ("SetMemoryLockedClocks", (2201, 2201)),
        ("ResetMemoryLockedClocks", ()),
        ("SetPersistenceMode", (1,)),
    ]:
        with pytest.raises(pynvml.NVMLError_NoPermission):
            getattr(pynvml, f"nvmlDevice{call}")(hopper, *arguments)


def test_menus_list_clocks_from_the_highest_down(virtual_driver, pynvml):
    handle = boards(pynvml)[0]

    assert pynvml.nvmlDeviceGetSupportedMemoryClocks(handle) == [3201, 2201]
    assert pynvml.nvmlDeviceGetSupportedGraphicsClocks(handle, 3201) == list(range(1980, 344, -15))
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetSupportedGraphicsClocks(handle, 3000)


def test_persistence_and_all_settings_are_lost_when_the_driver_is_loaded_again(virtual_driver, pynvml):
    virtual_driver.allow_setters(True)
    handle = boards(pynvml)[0]
    pynvml.nvmlDeviceSetPersistenceMode(handle, 1)
    pynvml.nvmlDeviceSetPowerManagementLimit(handle, 300_000)
    assert pynvml.nvmlDeviceGetPersistenceMode(handle) == 1

    virtual_driver.board(0).reload()
    assert pynvml.nvmlDeviceGetPersistenceMode(handle) == 0
    assert pynvml.nvmlDeviceGetPowerManagementLimit(handle) == 700_000
    assert counter_joules(pynvml, handle) == 0


def test_reasons_name_idleness_and_what_the_test_forces(virtual_driver, pynvml):
    handle, gpu = boards(pynvml)[0], virtual_driver.board(0)
    assert pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle) == 1

    gpu.utilisation(0.5, 0.2)
    gpu.set(forced_reasons=0x20)
    virtual_driver.advance(2)
    assert pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle) == 0x20
    assert field(pynvml, handle, 269, 270, CAPPED_NS) == [2_000_000_000, 0, 0]
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    assert (rates.gpu, rates.memory) == (50, 20)


def test_a_measured_curve_replaces_the_physics(virtual_driver):
    gpu = virtual_driver.board(0)
    gpu.curve([(200, 0.5, 190), (400, 0.9, 380), (700, 1.0, 560)])
    gpu.utilisation(1.0, 1.0)
    assert (gpu.peek().speed, gpu.peek().watts) == (1.0, 560)

    gpu.set_limit(300)
    assert (gpu.peek().speed, gpu.peek().watts) == (approx(0.7), approx(285))
    gpu.constant(75)
    assert gpu.peek().watts == 75


def test_work_takes_longer_and_may_take_less_energy_under_a_cap(virtual_driver):
    gpu = virtual_driver.board(0)
    gpu.utilisation(1.0, 0.4)

    def job():
        begin_ns, joules = virtual_driver.boot_ns(), gpu.peek().joules
        gpu.work(5.0)
        return (virtual_driver.boot_ns() - begin_ns) / 1e9, gpu.peek().joules - joules

    free_s, free_joules = job()
    gpu.set_limit(350)
    capped_s, capped_joules = job()

    assert free_s == approx(5.0, rel=1e-3)
    assert capped_s == approx(5.0 / gpu.peek().speed, rel=1e-3)
    assert capped_s > 1.1 * free_s
    assert capped_joules < free_joules


# Loads


def test_a_program_of_steps_is_followed_to_the_joule(virtual_driver):
    gpu = virtual_driver.board(0)
    before = gpu.peek().joules
    gpu.steps([(1.0, 300), (2.5, 120), (4.0, 650)])
    virtual_driver.advance(5)

    assert gpu.peek().joules - before == approx(1.0 * 75 + 1.5 * 300 + 1.5 * 120 + 1.0 * 650)


def test_a_square_wave_has_its_duty_and_phase(virtual_driver):
    gpu = virtual_driver.board(0)
    before = gpu.peek().joules
    gpu.square_wave(150, 600, period_s=0.3, duty=1 / 3, phase_s=0.1)
    assert gpu.peek().watts == approx(150)
    virtual_driver.advance(0.15)
    assert gpu.peek().watts == approx(600)
    virtual_driver.advance(29.85)

    assert gpu.peek().joules - before == approx(100 * 0.1 * 600 + 100 * 0.2 * 150, rel=1e-6)


def test_an_hour_of_millisecond_edges_takes_less_than_a_second(virtual_driver):
    virtual_driver.board(0).square_wave(150, 600, period_s=0.002)
    began_s = time.process_time()
    virtual_driver.advance(3600)

    assert virtual_driver.board(0).peek().joules == approx(375 * 3600, rel=1e-6)
    assert time.process_time() - began_s < 1.0


@pytest.mark.parametrize("options", [{"tick_s": 0}, {"sensor_window_s": 2}, {"late_share": -0.1}, {"no_such_option": 1}])
def test_an_option_without_sense_is_refused(virtual_driver, options):
    with pytest.raises(ValueError, match="Set"):
        virtual_driver.board(0).set(**options)


# MIG and processes


def test_mig_instances_have_handles_and_uuids_and_no_power(virtual_driver, pynvml):
    parent = boards(pynvml)[0]
    assert pynvml.nvmlDeviceGetMigMode(parent) == [0, 0]
    virtual_driver.board(0).set(mig_instances=3)

    assert pynvml.nvmlDeviceGetMigMode(parent) == [1, 1]
    assert pynvml.nvmlDeviceGetMaxMigDeviceCount(parent) == 7
    instances = [pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, i) for i in range(3)]
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, 3)
    uuids = [pynvml.nvmlDeviceGetUUID(instance) for instance in instances]
    assert len(set(uuids)) == 3 and all(uuid.startswith("MIG-") for uuid in uuids)
    for instance, uuid in zip(instances, uuids, strict=True):
        assert pynvml.nvmlDeviceIsMigDeviceHandle(instance).value == 1
        above = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(instance)
        assert pynvml.nvmlDeviceGetUUID(above) == pynvml.nvmlDeviceGetUUID(parent)
        assert pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByUUID(uuid)) == uuid
        for call in ("GetTotalEnergyConsumption", "GetPowerUsage", "GetPowerManagementLimit"):
            with pytest.raises(pynvml.NVMLError_NotSupported):
                getattr(pynvml, f"nvmlDevice{call}")(instance)
    assert counter_joules(pynvml, parent) > 0
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceGetProcessUtilization(parent, 0)


def test_a_gaming_board_knows_no_mig(make_virtual_driver, pynvml):
    driver = make_virtual_driver("rtx3090")

    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceGetMigMode(boards(pynvml)[0])
    with pytest.raises(ValueError, match="refused"):
        driver.board(0).set(mig_instances=1)


def test_processes_and_their_use_are_told(virtual_driver, pynvml):
    first, second = boards(pynvml)
    virtual_driver.board(0).processes((4711, 80, 20 << 30), (4712, 10, 1 << 30))
    virtual_driver.advance(3.5)

    assert [(p.pid, p.usedGpuMemory) for p in pynvml.nvmlDeviceGetComputeRunningProcesses(first)] == [(4711, 20 << 30), (4712, 1 << 30)]
    assert pynvml.nvmlDeviceGetComputeRunningProcesses(second) == []
    use = pynvml.nvmlDeviceGetProcessUtilization(first, 0)
    assert [(u.pid, u.smUtil) for u in use] == [(4711, 80), (4712, 10)]
    for handle, since_us in [(first, use[0].timeStamp), (second, 0)]:
        with pytest.raises(pynvml.NVMLError_NotFound):
            pynvml.nvmlDeviceGetProcessUtilization(handle, since_us)


# Failures


def test_a_function_fails_from_its_nth_call_on_one_board_until_it_is_lifted(virtual_driver, pynvml):
    first, second = boards(pynvml)
    virtual_driver.board(0).fail("nvmlDeviceGetTotalEnergyConsumption", "GpuIsLost", from_call=3)

    counter_joules(pynvml, first), counter_joules(pynvml, first)
    for _ in range(2):
        with pytest.raises(pynvml.NVMLError_GpuIsLost):
            counter_joules(pynvml, first)
    assert counter_joules(pynvml, second) > 0
    virtual_driver.board(0).fail("nvmlDeviceGetTotalEnergyConsumption", None)
    assert counter_joules(pynvml, first) > 0


def test_a_lost_board_answers_nothing_and_one_field_can_fail_alone(virtual_driver, pynvml):
    first, second = boards(pynvml)
    virtual_driver.board(0).fail("*", "GpuIsLost")
    virtual_driver.fail("field:186", "NotSupported")
    virtual_driver.fail("nvmlDeviceGetCount", "Unknown")

    for call in ("GetUUID", "GetPowerUsage", "GetTotalEnergyConsumption"):
        with pytest.raises(pynvml.NVMLError_GpuIsLost):
            getattr(pynvml, f"nvmlDevice{call}")(first)
    assert field(pynvml, second, INSTANT, 189) == [pynvml.NVML_ERROR_NOT_SUPPORTED, 700_000]
    with pytest.raises(pynvml.NVMLError_Unknown):
        pynvml.nvmlDeviceGetCount()


def test_the_wall_clock_can_be_set_and_old_samples_keep_their_stamps(virtual_driver, pynvml):
    handle = boards(pynvml)[0]
    virtual_driver.advance(5)
    before = virtual_driver.wall_ns()
    virtual_driver.step_wall(3600)
    assert virtual_driver.wall_ns() - before == 3600 * 10**9

    virtual_driver.advance(1)
    steps_us = [b - a for a, b in pairwise(us for us, _ in samples(pynvml, handle))]
    assert sorted(set(steps_us)) == [20_000, approx(3_600_020_000, abs=1)]


# The meter


def measured(driver, pynvml, seconds, **environ):
    """Energy by device id as a record would hold it, and the devices."""
    clock, meter = RunClock(driver), NvmlMeter(pynvml, environ)
    devices = meter.open(clock)
    points, gains, notes = {device.id: [] for device in devices}, {}, []

    def poll(*, is_last):
        clock.look()
        taken = meter.poll(is_last=is_last)
        for reading in taken.readings:
            points[reading.device].append((reading.offset_s, reading.joules))
        gains.update(taken.gains)
        notes.extend(note.slug for note in taken.notes)

    poll(is_last=False)
    step_s = meter.period_s or 1.0
    for _ in range(round(seconds / step_s)):
        driver.advance(step_s)
        poll(is_last=False)
    poll(is_last=True)
    meter.close()
    joules = {}
    for device, curve in points.items():
        inside = [j for s, j in curve if s >= 0]
        before = [j for s, j in curve if s <= 0]
        joules[device] = (inside[-1] - (before[-1] if before else inside[0])) * gains.get(device, 1.0)
    return joules, devices, notes


def test_a_square_wave_is_measured_within_half_a_percent(virtual_driver, pynvml):
    gpu, other = virtual_driver.board(0), virtual_driver.board(1)
    gpu.square_wave(150, 600, period_s=0.1, duty=0.4)
    other.constant(250)
    virtual_driver.advance(7.013)
    before = gpu.peek().joules, other.peek().joules

    joules, devices, notes = measured(virtual_driver, pynvml, 65)

    true = gpu.peek().joules - before[0], other.peek().joules - before[1]
    assert [device.method for device in devices] == ["anchored", "anchored"]
    assert [joules[device.id] for device in devices] == [approx(true[0], rel=0.005), approx(true[1], rel=0.005)]
    assert not notes


def test_a_counter_that_counts_too_much_is_followed_and_late_stamps_do_no_harm(virtual_driver, pynvml):
    gpu = virtual_driver.board(0)
    gpu.set(counter_gain=1.03, late_share=0.4, missing_share=0.04)
    gpu.square_wave(150, 600, period_s=0.13, duty=0.5)
    virtual_driver.advance(5)
    before = gpu.peek().joules

    joules, devices, _ = measured(virtual_driver, pynvml, 120)

    assert joules[devices[0].id] == approx(1.03 * (gpu.peek().joules - before), rel=0.007)


@pytest.mark.parametrize(
    ("model", "failing", "method"),
    [
        ("a100", ("nvmlDeviceGetSamples",), "anchored"),
        ("v100", ("nvmlDeviceGetSamples", "field:186"), "anchored"),
        ("p100", (), "instant"),
        ("rtx3090", ("nvmlDeviceGetSamples", "field:186"), "counter"),
        ("rtx3090", ("nvmlDeviceGetSamples", "field:186", "nvmlDeviceGetTotalEnergyConsumption"), "averaged"),
    ],
)
def test_every_rung_of_the_meter_measures_a_steady_board(make_virtual_driver, pynvml, model, failing, method):
    driver = make_virtual_driver(model)
    for function in failing:
        driver.fail(function, "NotSupported")
    driver.board(0).constant(150)
    driver.advance(5)

    joules, devices, _ = measured(driver, pynvml, 60)

    assert devices[0].method == method
    assert joules[devices[0].id] == approx(150 * 60, rel=0.03)


def test_a_mig_instance_is_measured_as_its_whole_board_once(virtual_driver, pynvml):
    virtual_driver.board(1).set(mig_instances=2)
    parent = boards(pynvml)[1]
    uuids = [pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, i)) for i in range(2)]

    _, devices, _ = measured(virtual_driver, pynvml, 2, CUDA_VISIBLE_DEVICES=",".join(uuids))

    assert [device.id for device in devices] == [pynvml.nvmlDeviceGetUUID(parent)]


def test_a_board_that_is_lost_during_the_run_is_noted(virtual_driver, pynvml):
    virtual_driver.board(0).fail("nvmlDeviceGetSamples", "GpuIsLost", from_call=12)

    _, devices, notes = measured(virtual_driver, pynvml, 30)

    assert len(devices) == 2
    assert notes == ["device-lost"]


# Other processes


def python(driver, code, **more):
    return subprocess.run([sys.executable, "-c", code], env=driver.environ(**more), capture_output=True, text=True, timeout=60, check=False)


READ_ALL = """
import json, pynvml
pynvml.nvmlInit()
handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
print(json.dumps([[pynvml.nvmlDeviceGetUUID(h), pynvml.nvmlDeviceGetTotalEnergyConsumption(h)] for h in handles]))
"""


def test_a_subprocess_finds_the_same_boards_by_the_library_path(virtual_driver, pynvml):
    virtual_driver.board(0).constant(400)
    virtual_driver.advance(100)

    done = python(virtual_driver, READ_ALL)

    assert json.loads(done.stdout) == [[pynvml.nvmlDeviceGetUUID(h), pynvml.nvmlDeviceGetTotalEnergyConsumption(h)] for h in boards(pynvml)]


def test_a_subprocess_alone_makes_its_driver_from_the_environment(virtual_nvml, tmp_path):
    code = READ_ALL.replace("TotalEnergyConsumption", "EnforcedPowerLimit") + "\nprint(pynvml.nvmlDeviceGetPowerUsage(handles[1]))"
    environ = {
        "LD_LIBRARY_PATH": str(virtual_nvml.parent),
        "VIRTUAL_NVML_BOARDS": "a100,h100",
        "VIRTUAL_NVML_WATTS": "321",
        "VIRTUAL_NVML_FAIL": "0:nvmlDeviceGetPowerUsage=3;nvmlDeviceGetSamples=6@2",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environ}, capture_output=True, text=True, timeout=60, check=False
    )

    boards_json, usage = done.stdout.splitlines()
    assert [limit for _, limit in json.loads(boards_json)] == [400_000, 700_000]
    assert int(usage) == 321_000


def test_what_a_killed_process_has_set_stays_set(virtual_driver, pynvml):
    virtual_driver.allow_setters(True)
    code = """
import os, pynvml, signal
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(1)
pynvml.nvmlDeviceSetPowerManagementLimit(handle, 250_000)
pynvml.nvmlDeviceSetGpuLockedClocks(handle, 345, 1200)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = python(virtual_driver, code)

    assert done.returncode == -signal.SIGKILL
    truth = virtual_driver.board(1).peek()
    assert (truth.requested_watts, truth.core_lock_high_mhz) == (250, 1200)
    assert pynvml.nvmlDeviceGetPowerManagementLimit(boards(pynvml)[1]) == 250_000
    assert {call.pid for call in virtual_driver.setter_calls()} != {os.getpid()}


def test_a_process_killed_in_the_midst_of_calls_blocks_nobody(virtual_driver):
    code = """
import pynvml
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
print("up", flush=True)
while True:
    pynvml.nvmlDeviceGetPowerUsage(handle)
"""
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", code], env=virtual_driver.environ(), stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"up\n"
        virtual_driver.advance(1)
        child.kill()
        child.communicate()
        virtual_driver.advance(1)
    assert virtual_driver.board(0).peek().joules == approx(6 * 75)


def test_one_process_may_lack_the_rights_that_the_state_gives(virtual_driver):
    virtual_driver.allow_setters(True)
    code = "import pynvml; pynvml.nvmlInit(); pynvml.nvmlDeviceSetPersistenceMode(pynvml.nvmlDeviceGetHandleByIndex(0), 1)"

    assert "NVMLError_NoPermission" in python(virtual_driver, code, VIRTUAL_NVML_ROOT="0").stderr
    assert python(virtual_driver, code).returncode == 0
    assert virtual_driver.board(0).peek().persistence == 1


def test_an_old_driver_lacks_the_newer_functions_and_is_read_by_its_usage(build_virtual_nvml):
    code = """
import json, pynvml
from carbonreport.measure.clock import RunClock, SystemClock
from carbonreport.measure.meters.nvml import NvmlMeter
pynvml.nvmlInit()
handle, missing = pynvml.nvmlDeviceGetHandleByIndex(0), []
for name, arguments in [("TotalEnergyConsumption", ()), ("Samples", (0, 0)), ("FieldValues", ([186],)), ("Architecture", ()),
                        ("CurrentClocksEventReasons", ()), ("PowerUsage", ()), ("CurrentClocksThrottleReasons", ())]:
    try:
        getattr(pynvml, "nvmlDeviceGet" + name)(handle, *arguments)
    except pynvml.NVMLError_FunctionNotFound:
        missing.append(name)
devices = NvmlMeter(pynvml, {}).open(RunClock(SystemClock()))
print(json.dumps([missing, [device.method for device in devices]]))
"""
    environ = {**os.environ, "LD_LIBRARY_PATH": str(build_virtual_nvml("-DOLD_DRIVER").parent), "VIRTUAL_NVML_BOARDS": "p100"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=60, check=False)

    missing, methods = json.loads(done.stdout)
    assert missing == ["TotalEnergyConsumption", "Samples", "FieldValues", "Architecture", "CurrentClocksEventReasons"]
    assert methods == ["averaged"]


def test_a_wrapped_command_leaves_a_record_of_the_boards(make_virtual_driver, tmp_path):
    driver = make_virtual_driver("h200", "a100", is_virtual=False)
    driver.board(0).constant(500)
    driver.board(1).square_wave(100, 300, period_s=0.1)
    time.sleep(0.3)
    command = [
        sys.executable,
        "-m",
        "carbonreport",
        "run",
        "--out",
        str(tmp_path / "runs"),
        "--zone",
        "DE",
        "--pue",
        "1.2",
        "--",
        "sleep",
        "3",
    ]

    done = subprocess.run(command, env=driver.environ(), capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "runs").glob("*.jsonl")
    record = load(path)
    gpus = [device for device in record.devices if device.kind == "gpu"]
    assert [(device.name, device.method) for device in gpus] == [("NVIDIA H200", "anchored"), ("NVIDIA A100-SXM4-80GB", "anchored")]
    traces = {trace.device: trace for trace in record.traces}
    for device, watts in zip(gpus, (500, 200), strict=True):
        trace = traces[device.id]
        assert trace.joules[-1] - trace.joules[0] == approx(watts * (trace.offsets_s[-1] - trace.offsets_s[0]), rel=0.03)


def test_a_traced_program_finds_the_boards_that_it_may_use(make_virtual_driver, tmp_path):
    driver = make_virtual_driver("h200", "h200", is_virtual=False)
    code = f"""
import time
from carbonreport import trace
with trace("job", zone="DE", pue=1.2, meters=("nvml",), out={str(tmp_path)!r}) as run, run.span("step"):
    time.sleep(1.5)
"""
    done = python(driver, code, CUDA_VISIBLE_DEVICES="1")

    assert done.returncode == 0, done.stderr
    record = load(next(tmp_path.glob("*.jsonl")))
    assert [device.id for device in record.devices] == ["GPU-57ab0000-0000-4000-8000-000000000001"]
    (span,) = record.spans
    assert span.joules[record.devices[0].id] == approx(75 * span.seconds, rel=0.05)


@pytest.mark.parametrize(("stalls", "done_s", "watts"), [(1, 0.0, 150), (0, 0.01, None)])
def test_work_waits_for_clocks_where_a_test_says_so(virtual_driver, pynvml, stalls, done_s, watts):
    board = virtual_driver.board(0).set(switch_stalls=stalls, stall_watts=150, clock_latency_s=0.01)
    virtual_driver.allow_setters(True)
    board.utilisation(0.5, 0.2)
    virtual_driver.advance(1)
    before = board.peek()
    pynvml.nvmlDeviceSetGpuLockedClocks(boards(pynvml)[0], 345, 1200)
    virtual_driver.advance(0.01)
    at_turn = board.peek()

    assert at_turn.work_s - before.work_s == approx(done_s, abs=1e-9)
    assert at_turn.joules - before.joules == approx(0.01 * (watts or before.watts))
    virtual_driver.advance(0.01)
    assert board.peek().core_mhz == 1200
    assert board.peek().work_s - at_turn.work_s == approx(0.01 * board.peek().speed)
