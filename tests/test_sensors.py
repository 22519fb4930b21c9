"""How readings follow power: the shipped table by the board's name, a calibration of this machine first."""

import pytest
from pytest import approx

from carbonreport.model.sensor import Sensor
from carbonreport.sensors import calibrations_path, find_sensor, keep

FOUND = Sensor("low-pass", 0.0131, 0.0029, 0.02, 0.0003, 0.0003, "found on this board")


def test_a_board_that_was_measured_is_known_by_its_name():
    sensor = find_sensor("NVIDIA H200", "GPU-a", "samples")

    assert sensor is not None
    assert (sensor.kernel, sensor.width_s, sensor.delay_s) == ("low-pass", approx(0.0127), approx(0.00335))
    assert sensor.is_calibrated


def test_another_hopper_takes_its_numbers_and_is_not_called_calibrated():
    sensor = find_sensor("NVIDIA H100 80GB HBM3", "GPU-a", "samples")

    assert sensor is not None
    assert not sensor.is_calibrated
    assert "taken for this board" in sensor.source


@pytest.mark.parametrize("name", ["NVIDIA GeForce RTX 5090", "Tesla K80", "A100", ""])
def test_samples_of_a_board_that_nobody_measured_are_not_guessed(name):
    assert find_sensor(name, "GPU-a", "samples") is None


def test_words_of_a_name_are_whole_words():
    h200 = find_sensor("NVIDIA H200 NVL", "GPU-a", "samples")
    h20 = find_sensor("NVIDIA H20", "GPU-a", "samples")

    assert h200 is not None
    assert h20 is not None
    assert h200.is_calibrated
    assert not h20.is_calibrated


def test_a_calibration_of_this_board_comes_before_the_table(tmp_path):
    path = calibrations_path({"XDG_CONFIG_HOME": str(tmp_path)})
    keep(path, "GPU-a", FOUND)

    own = find_sensor("NVIDIA H200", "GPU-a", "samples", path)
    other = find_sensor("NVIDIA H200", "GPU-b", "samples", path)
    assert own is not None
    assert other is not None
    assert own.width_s == approx(0.0131)
    assert other.width_s == approx(0.0127)


def test_a_second_calibration_replaces_the_first_and_leaves_other_boards(tmp_path):
    path = tmp_path / "sensors.csv"
    keep(path, "GPU-a", FOUND)
    keep(path, "GPU-b", FOUND)
    keep(path, "GPU-a", Sensor("boxcar", 0.025, 0.001, 0.1, 0.001, 0.001, "again, with a comma"))

    again = find_sensor("x", "GPU-a", "samples", path)
    assert again is not None
    assert (again.kernel, again.source) == ("boxcar", "again, with a comma")
    kept = find_sensor("x", "GPU-b", "samples", path)
    assert kept is not None
    assert (kept.kernel, kept.width_s) == ("low-pass", approx(FOUND.width_s))


@pytest.mark.parametrize(
    "row", ["GPU-a,samples,low-pass,zero,3,20,1,1,x", "GPU-a,samples,triangle,12,3,20,1,1,x", "GPU-a,samples,low-pass,-1,3,20,1,1,x"]
)
def test_a_calibration_that_cannot_be_read_names_file_and_columns(tmp_path, row):
    path = tmp_path / "sensors.csv"
    path.write_text("board,reading,kernel,width_ms,delay_ms,period_ms,width_sd_ms,delay_sd_ms,source\n" + row + "\n")

    with pytest.raises(ValueError, match=r"sensors\.csv.*columns are board"):
        find_sensor("NVIDIA H200", "GPU-a", "samples", path)


@pytest.mark.parametrize("numbers", [(0.0, 0.003, 0.02), (0.01, 0.003, 0.0), (0.01, 11.0, 0.02), (0.01, 0.003, float("nan"))])
def test_a_sensor_without_sense_is_refused(numbers):
    with pytest.raises(ValueError, match="sensor with"):
        Sensor("low-pass", *numbers, 0.0, 0.0, "test")


def test_a_window_shorter_than_the_period_leaves_the_rest_unseen():
    assert Sensor("boxcar", 0.025, 0, 0.1, 0, 0, "x").coverage == approx(0.25)
    assert Sensor("boxcar", 0.109, 0, 0.1, 0, 0, "x").coverage == 1.0
    assert Sensor("low-pass", 0.0127, 0, 0.02, 0, 0, "x").coverage == 1.0
