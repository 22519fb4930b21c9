"""The twenty-five ways in which logs that users bring mislead a reader, each with a small file written for it."""

import json
import pickle

import pytest
from pytest import approx

from carbonreport.errors import RecordError
from carbonreport.importers import slurm_fields
from carbonreport.plugins import load
from carbonreport.workflows.imports import import_file

KWH = 3.6e6
HEAD = "timestamp,project_name,run_id,duration,emissions,emissions_rate,cpu_power,gpu_power,ram_power,cpu_energy,gpu_energy,ram_energy,energy_consumed,country_name,country_iso_code,region,os,codecarbon_version,cpu_model,gpu_count,gpu_model,ram_total_size,tracking_mode,on_cloud,pue\n"


def row(
    run,
    end="2026-03-02T10:01:00",
    *,
    seconds=60,
    kwh=0.006,
    parts=(0.001, 0.004, 0.001),
    place="Spain,ESP,madrid",
    rate=1,
    mode="machine",
    pue="1.0",
):
    total = "" if kwh is None else kwh
    cpu, gpu, ram = parts
    return f"{end},p,{run},{seconds},0.001,{rate},60,240,60,{cpu},{gpu},{ram},{total},{place},Linux,2.4.1,Some CPU,1,1 x NVIDIA L4,64,{mode},N,{pue}\n"


def slugs(found):
    return {note.slug for note in found.notes}


def told(found, slug):
    return next(note.text for note in found.notes if note.slug == slug)


def smi(rows, header="timestamp, index, name, power.draw [W]"):
    return header + "\n" + "".join(f"{line}\n" for line in rows)


# 1
def test_cumulative_rows_of_a_run_count_once(read):
    rows = [row("r", f"2026-03-02T10:0{i}:00", seconds=60 * i, kwh=0.006 * i, parts=(0.001 * i, 0.004 * i, 0.001 * i)) for i in (1, 2, 3)]

    found = read("emissions.csv", HEAD + "".join(rows), time_zone="UTC")

    assert found.it_joules == approx(0.018 * KWH) and len(found.runs) == 1
    assert found.runs[0].traces[0].joules == approx((0.0, 0.001 * KWH, 0.002 * KWH, 0.003 * KWH))


@pytest.mark.parametrize(
    ("model", "count", "name", "boards"),
    [
        ("4 x NVIDIA A100-SXM4-80GB", "4", "NVIDIA A100-SXM4-80GB", 4),
        ("8 x NVIDIA L4", "8.0", "NVIDIA L4", 8),
        ("16 x NVIDIA L4", "", "NVIDIA L4", 16),
        ("Apple M1", "1", "Apple M1", 1),
        ("2 x NVIDIA A100-SXM4-80GB1 x Tesla T4", "3", "NVIDIA A100-SXM4-80GB and Tesla T4", 3),
        ("1 x Tesla T412 x Tesla V100", "13", "Tesla T4 and Tesla V100", 13),  # the count tells where a name ends
        ("1 x Tesla T412 x Tesla V100", "3", "Tesla T41 and Tesla V100", 3),
        ("", "2", "GPU", 2),
    ],
)
def test_codecarbons_boards_are_counted_and_named_without_their_number(read, model, count, name, boards):
    found = read("emissions.csv", HEAD + row("r").replace("1,1 x NVIDIA L4", f"{count},{model}"), time_zone="UTC")

    (device,) = (device for device in found.runs[0].devices if device.kind == "gpu")
    assert (device.name, device.count) == (name, boards)
    assert "import-disagrees" not in slugs(found)


def test_a_number_of_boards_that_contradicts_their_name_is_told(read):
    found = read("emissions.csv", HEAD + row("r").replace("1,1 x NVIDIA L4", "2,4 x NVIDIA L4"), time_zone="UTC")

    assert [device.count for device in found.runs[0].devices if device.kind == "gpu"] == [2]
    assert told(found, "import-disagrees") == "line 2: gpu_model is '4 x NVIDIA L4' and gpu_count is 2; 2 is taken"


# 2
def test_trackers_that_count_one_machine_at_the_same_time_are_warned_of(read):
    overlapping = read("emissions.csv", HEAD + row("a") + row("b"), time_zone="UTC")
    apart = read("emissions.csv", HEAD + row("a") + row("b", "2026-03-02T12:00:00"), time_zone="UTC")
    of_processes = read("emissions.csv", HEAD + row("a", mode="process") + row("b", mode="process"), time_zone="UTC")

    assert "up to 2 times" in told(overlapping, "import-overlap")
    assert "import-overlap" not in slugs(apart) | slugs(of_processes)


# 3
def test_rows_that_are_shorter_than_their_header_give_their_energy_and_nothing_behind_it(read):
    cells = row("b", "2026-03-02T12:00:00").strip().split(",")
    short = ",".join([*cells[:15], *cells[18:]]) + "\n"

    found = read("emissions.csv", HEAD + row("a") + short, time_zone="UTC")

    assert found.it_joules == approx(0.012 * KWH)
    assert "1 rows have fewer cells" in told(found, "import-columns-shifted")
    assert "cpu" not in found.runs[1].environment and "cpu" in found.runs[0].environment


# 4
def test_the_rate_of_a_file_is_never_used(read):
    found = [read("emissions.csv", HEAD + row("a", rate=rate), time_zone="UTC").it_joules for rate in (1e-6, 1e-3, 999)]

    assert len(set(found)) == 1


# 5
def test_a_pue_inside_an_energy_is_taken_out_once(read, logs):
    epochs = read("1_carbontracker.log", logs.CARBONTRACKER, time_zone="UTC")
    printed = logs.CARBONTRACKER_OUTPUT.replace("475.00", "481.00")
    named = f"2026-03-02 10:00:00 - Only predicted and actual consumptions are multiplied by a PUE coefficient of 1.24 (x).\n{logs.CARBONTRACKER_OUTPUT}"
    unknown = logs.CARBONTRACKER_OUTPUT.replace("475.00", "294.21")

    assert epochs.it_joules == approx(7600)
    assert read("a.log", printed, time_zone="UTC").it_joules == approx(0.0031 * KWH / 1.58)
    assert read("b.log", named, time_zone="UTC").it_joules == approx(0.0031 * KWH / 1.24)
    assert read("c.log", unknown, time_zone="UTC", pue="1.55").it_joules == approx(0.002 * KWH)
    assert "import-pue-unknown" in slugs(read("d.log", unknown, time_zone="UTC"))


def test_codecarbons_pue_is_taken_out_of_every_part(read):
    found = read("emissions.csv", HEAD + row("a", pue="1.5"), time_zone="UTC")

    assert found.it_joules == approx(0.004 * KWH)
    assert {d.kind: t.joules[-1] for d, t in zip(found.runs[0].devices, found.runs[0].traces, strict=True)}["gpu"] == approx(
        0.004 / 1.5 * KWH
    )


# 6
def test_a_prediction_is_no_consumption(read, logs):
    found = read("1_carbontracker_output.log", logs.CARBONTRACKER_OUTPUT, time_zone="UTC")
    only_predicted = read("2_carbontracker_output.log", logs.CARBONTRACKER_OUTPUT.partition("2026-03-02 10:00:20")[0], time_zone="UTC")

    assert found.it_joules == approx(0.002 * KWH)
    assert "import-predicted-left-out" in slugs(found)
    assert only_predicted.it_joules is None and "predictions alone" in only_predicted.why_not


# 7
def test_steps_of_a_job_repeat_its_energy_even_under_the_bare_id(read):
    lines = "JobID|Elapsed|Start|NNodes|State|ConsumedEnergyRaw\n5|00:10:00|2026-03-02T10:00:00|4|COMPLETED|600000\n5.batch|00:10:00|2026-03-02T10:00:00|1|COMPLETED|150000\n5.extern|00:10:00|2026-03-02T10:00:00|4|COMPLETED|600000\n5|00:09:59|2026-03-02T10:00:00|4|COMPLETED|599000\n"

    found = read("sacct.txt", lines, time_zone="UTC")

    assert found.it_joules == 600000 and found.rows == 1


# 8
def test_three_spellings_of_not_measured_are_no_zero(read):
    head = "JobIDRaw|ElapsedRaw|Start|NNodes|State|ConsumedEnergyRaw\n"
    jobs = [f"{i}|600|2026-03-02T10:00:00|1|COMPLETED|{text}\n" for i, text in enumerate(("0", "", "18446744073709551614"))]
    blank_job = "9|600|2026-03-02T10:00:00|1|COMPLETED|\n9.0|600|2026-03-02T10:00:00|1|COMPLETED|120000\n9.1|600|2026-03-02T10:00:00|1|COMPLETED|60000\n"

    nothing = read("sacct.txt", head + "".join(jobs), time_zone="UTC")
    something = read("sacct.txt", head + "".join(jobs) + blank_job, time_zone="UTC")

    assert nothing.it_joules is None and "NO_VAL64" in nothing.why_not
    assert something.it_joules == 120000
    assert "3 of 4 jobs have no energy" in told(something, "import-partial")


# 9
def test_energy_under_usage_out_is_watts_and_is_multiplied_by_the_time(read):
    lines = "JobIDRaw|Elapsed|State|TRESUsageOutAve\n5|00:10:00|COMPLETED|\n5.batch|00:10:00|COMPLETED|energy=250,fs/disk=0\n5.extern|00:10:00|COMPLETED|fs/disk=0,energy=250\n"

    found = read("sacct.txt", lines, time_zone="UTC")

    assert found.it_joules == 250 * 600
    assert "import-power-times-time" in slugs(found)


# 10
def test_slices_of_a_board_show_the_boards_own_counter(read, logs):
    one = logs.DCGM.replace('GPU_I_PROFILE="2g.20gb"', 'GPU_I_PROFILE="1g.10gb",GPU_I_ID="9"')
    last = logs.DCGM.strip().split("\n")[-2:]

    assert read("metrics.prom", one).it_joules == approx(12_000)
    lifetime = read("once.prom", "\n".join(line.rpartition(" ")[0] for line in last))
    assert lifetime.it_joules == approx(17_000) and {"import-lifetime", "import-repeats"} <= slugs(lifetime)


# 11
def test_units_come_from_names_and_what_no_board_draws_is_refused(read, logs):
    milliwatts = logs.prometheus([logs.power_of("GPU-0", "job", 400_000, metric="nvidia_gpu_power_usage_milliwatts")])
    too_much = logs.prometheus([logs.power_of("GPU-0", "job", 400_000)])

    assert read("a.json", milliwatts).it_joules == approx(240 * 400)
    assert read("b.json", too_much).it_joules is None
    jetson = "timestamp,gpu_power_w\n" + "".join(f"2026-03-02T10:00:0{i}Z,{5000 + i}\n" for i in range(5))
    assert "unit=mW" in read("jetson.csv", jetson).why_not
    assert read("jetson.csv", jetson, unit="mW").it_joules == approx(4 * 5.002)


# 12
def test_a_unit_is_read_from_each_cell(read):
    lines = "time,power\n" + "".join(f"2026-03-02T10:00:0{i}Z,{'0.5 W' if i % 2 else '500 mW'}\n" for i in range(5))

    assert read("phone.csv", lines).it_joules == approx(4 * 0.5)


def test_a_column_that_turns_into_another_unit_loses_those_rows_aloud(read, logs):
    turned = logs.ECO2AI + 'a-3,p,e,N/A,2026-03-02 13:00:00,10,900000,0.1,"Some CPU/1 device(s)", 0 device(s),Linux,ES,0\n'

    found = read("emission.csv", turned, time_zone="UTC")

    assert found.it_joules == approx(0.35 * KWH)
    assert found.rejected[0][0] == 4 and "no such machine draws" in found.rejected[0][1]
    only = read("emission.csv", logs.ECO2AI.replace("0.25", "900000").replace("0.1,0.1", "360000,0.1"), time_zone="UTC")
    assert only.it_joules is None and "unit=J" in only.why_not
    assert "is a unit of power" in read("emission.csv", logs.ECO2AI, unit="mW").why_not


# 13
@pytest.mark.parametrize("step_s", [0.011, 0.05, 1.06, 5.0, 7.0])
def test_a_row_lasts_as_long_as_its_stamps_say(read, step_s):
    lines = "timestamp,power_draw_W\n" + "".join(f"{1772445600 + step_s * i:.3f},{100}\n" for i in range(21))

    assert read("log.csv", lines).it_joules == approx(20 * step_s * 100, rel=1e-3)


def test_a_long_pause_is_a_gap_and_counts_nothing(read):
    lines = "timestamp,power_draw_W\n" + "".join(f"{1772445600 + t},100\n" for t in (0, 1, 2, 3, 5003, 5004))

    found = read("log.csv", lines)

    assert found.it_joules == approx(400)
    assert found.runs[0].traces[0].gaps == ((3.0, 5003.0),)
    assert "reading-gap" in slugs(found)


@pytest.mark.parametrize(
    ("column", "counts"), [("timestamp_ns", 1e9), ("time [ms]", 1e3), ("Timestamp (us)", 1e6), ("elapsed_sec", 1), ("unix", 1)]
)
def test_a_column_of_times_counts_in_its_own_unit(read, column, counts):
    from_s = 0 if column != "unix" else 1772445600
    lines = f"{column},power_w\n" + "".join(f"{round((from_s + 2 * i) * counts)},100\n" for i in range(5))

    found = read("log.csv", lines)

    assert found.it_joules == approx(800) and bool(found.runs) == (column == "unix")


def test_a_comma_is_a_decimal_point_where_something_else_separates(read):
    lines = "timestamp; name; power.draw [W]\n" + "".join(f"2026/03/02 10:00:0{i}.000; NVIDIA L4; 50,125 W\n" for i in range(5))
    quoted = lines.replace(";", ",").replace("50,125 W", '"50,25 W"')
    thousands = lines.replace(";", ",").replace("50,125 W", '"50,125 W"')

    assert read("log.csv", lines, time_zone="UTC").it_joules == approx(4 * 50.125)
    assert read("log.csv", quoted, time_zone="UTC").it_joules == approx(4 * 50.25)
    assert read("log.csv", thousands, time_zone="UTC").it_joules is None


# 14
def test_rows_beyond_the_sensors_own_readings_are_no_more_evidence(read):
    lines = "timestamp,gpu_power_w\n" + "".join(f"{1772445600 + 0.01 * i:.2f},{100 + i // 10}\n" for i in range(80))

    assert "slower than the log" in told(read("log.csv", lines), "import-oversampled")


# 15
def test_boards_are_told_apart_by_the_column_that_tells_them_apart(read):
    header = "timestamp, index, gpu, power.draw [W]"
    rows = [f"2026/03/02 10:00:{s:02d}.000, 0, {gpu}, {100 + gpu}.00 W" for s in range(11) for gpu in range(8)]

    found = read("log.csv", smi(rows, header), time_zone="UTC")

    assert found.it_joules == approx(10 * sum(100 + gpu for gpu in range(8)))


def test_boards_under_one_name_are_refused(read):
    at_once = [f"2026/03/02 10:00:{s:02d}.000, 0, NVIDIA L4, {50 + gpu}.00 W" for s in range(11) for gpu in range(2)]
    in_turn = [f"2026/03/02 10:00:{s:02d}.{10 + gpu}0, {50 + gpu}.00 W" for s in range(11) for gpu in range(8)]

    assert "device=COLUMN" in read("log.csv", smi(at_once), time_zone="UTC").why_not
    assert "device=COLUMN" in read("log.csv", smi(in_turn, "timestamp, power.draw [W]"), time_zone="UTC").why_not


# 16
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "latin-1"])
def test_a_file_of_powershell_is_read_by_its_mark(read, logs, encoding):
    content = logs.NVIDIA_SMI.replace("\n", "\r\n").encode(encoding)

    assert read("log.csv", content, time_zone="UTC").it_joules == approx(1020)


def test_a_log_without_a_header_is_asked_for_its_columns(read):
    lines = "".join(f"2026-03-02T10:00:0{i}.1234567+02:00, 90, {100}\n" for i in range(5))

    assert "--mapping columns=" in read("log.csv", lines).why_not
    found = read("log.csv", lines, columns="time,util,power")
    assert found.it_joules == approx(400) and "import-unit-assumed" in slugs(found)
    assert found.runs[0].started_s == approx(1772438400.1234567)


# 17
def test_a_line_break_inside_a_cell_does_not_make_a_row(read):
    lines = "elapsed_sec,gpu_util_pct,power_w\n" + "".join(f'{i}.0,5,"{100 + i}.00\n0"\n' for i in range(5))

    found = read("log.csv", lines)

    assert found.rows == 5 and found.it_joules == approx(408)
    assert "5 cells hold a second line" in told(found, "import-stray")


# 18
def test_torn_lines_are_put_aside_with_their_numbers_and_the_rest_is_read(read):
    torn = HEAD + row("a") + ".0,,,\n" + row("b", "2026-03-02T12:00:00") + row("c")[:40] + row("d", "2026-03-02T13:00:00")

    found = read("emissions.csv", torn, time_zone="UTC")

    assert [line for line, _ in found.rejected] == [3, 5]
    assert found.it_joules == approx(0.012 * KWH) and found.rows == 4


# 19
def test_headers_are_found_repeated_padded_and_behind_a_mark(read):
    header, *rows = smi([f"2026/03/02 10:00:0{i}.000, 0, NVIDIA L4, 50.00 W" for i in range(5)]).strip().split("\n")
    repeated = "\ufeff" + "".join(f"{header}\n{line}\n" for line in rows)
    padded = HEAD.replace(",", "   ,") + row("a").replace(",", "  , ")

    assert read("log.csv", repeated, time_zone="UTC").it_joules == approx(200)
    assert read("log.csv", repeated, time_zone="UTC").rejected == ()
    assert read("emissions.csv", padded, time_zone="UTC").it_joules == approx(0.006 * KWH)


# 20
def test_without_power_or_time_energy_is_not_derivable_and_not_zero(read, logs):
    no_power = smi(["2026/03/02 10:00:00.000, 0, 5 %"], "timestamp, index, utilization.gpu [%]")
    no_time = smi(["0, 50.00 W", "0, 51.00 W"], "index, power.draw [W]")

    for found, missing in (
        (read("a.csv", no_power), "no column of power"),
        (read("b.csv", no_time), "no column of time"),
        (read("c.log", logs.DMON), "no times"),
    ):
        assert found.it_joules is None and missing in found.why_not
        assert "import-no-energy" in slugs(found)
    assert read("b.csv", no_time, period_s="2").it_joules == approx(202)


# 21
def test_ambiguous_dates_are_refused_unless_one_of_them_tells(read):
    lines = "time,power_w\n04-03-2026 10:00:00,100\n04-03-2026 10:00:10,100\n"
    telling = lines + "23-03-2026 10:00:00,100\n"

    assert "date_order" in read("log.csv", lines, time_zone="UTC").why_not
    assert read("log.csv", lines, time_zone="UTC", date_order="dmy").runs[0].started_s == 1772618400
    assert read("log.csv", lines, time_zone="UTC", date_order="mdy").runs[0].started_s == 1775210400
    assert read("log.csv", telling, time_zone="UTC").runs[0].started_s == 1772618400


def test_the_hour_that_comes_twice_is_told_by_what_came_before(read):
    once = [f"2026-10-25 02:{m}0:00" for m in range(6)]
    stamps = ["2026-10-25 01:50:00", *once, *once, "2026-10-25 03:00:00"]
    lines = "time,power_w\n" + "".join(f"{s},100\n" for s in stamps)

    found = read("log.csv", lines, time_zone="Europe/Berlin")

    assert found.runs[0].duration_s == 130 * 60 and found.it_joules == approx(100 * 130 * 60)
    assert "goes back" in read("log.csv", lines).why_not
    lonely = read("log.csv", f"time,power_w\n{stamps[1]},100\n{stamps[-1]},100\n2026-10-25 03:20:00,100\n", time_zone="Europe/Berlin")
    assert "comes twice" in lonely.rejected[0][1]


def test_an_hour_that_the_clocks_skip_does_not_exist(read):
    lines = "time,power_w\n2026-03-29 01:59:00,100\n2026-03-29 02:30:00,100\n2026-03-29 03:00:00,100\n"

    found = read("log.csv", lines, time_zone="Europe/Berlin")

    assert "does not exist" in found.rejected[0][1] and found.it_joules == approx(6000)


def test_a_job_over_the_hour_that_comes_twice_begins_where_its_length_fits(read):
    head = "JobIDRaw|Start|End|ElapsedRaw|NNodes|State|ConsumedEnergyRaw\n"
    before, after = (f"{i}|2026-10-25T02:30:00|2026-10-25T03:30:00|{s}|1|COMPLETED|1000000\n" for i, s in ((1, 7200), (2, 3600)))

    found = read("sacct.txt", head + before + after, time_zone="Europe/Berlin")

    assert [run.started_s for run in found.runs] == [1792888200, 1792891800]


# 22
def test_an_id_that_a_fixed_width_cut_is_not_joined(read):
    lines = (
        "JobID           Elapsed ConsumedEnergy      State \n------------ ---------- -------------- ---------- \n"
        "16290213       00:10:00          4.58M  CANCELLED+\n16290213.ba+   00:10:00          4.58M  CANCELLED \n1629021_123+   00:10:00          1.00M  COMPLETED \n"
    )

    found = read("sacct.txt", lines)

    assert found.it_joules == 4.58e6 and found.rows == 1
    assert found.rejected[0][0] == 5 and "--parsable2" in found.rejected[0][1]
    assert slurm_fields.state("CANCELLED+") == "CANCELLED" and slurm_fields.state("OUT_OF_ME+") == "OUT_OF_MEMORY"


# 23
def test_a_running_job_counts_what_has_elapsed_and_a_pending_one_nothing(read):
    head = "JobIDRaw|Submit|Start|End|Elapsed|State|NNodes|ConsumedEnergyRaw\n"
    running = "1|2026-03-01T10:00:00|2026-03-02T10:00:00|2026-03-02T10:00:00|22:32:22|RUNNING|1|50000000\n"
    pending = "2|2026-03-01T10:00:00|Unknown|Unknown|00:00:00|PENDING|1|\n"

    found = read("sacct.txt", head + running + pending, time_zone="UTC")

    assert found.runs[0].duration_s == 22 * 3600 + 32 * 60 + 22 and not found.runs[0].is_complete
    assert "1 jobs were still running" in told(found, "import-partial")


# 24
def test_the_place_and_the_co2_of_another_tool_are_not_used(read):
    flips = HEAD + row("a", place="Canada,CAN,quebec") + row("b", "2026-03-02T12:00:00", place="United Kingdom,GBR,")

    found = read("emissions.csv", flips, time_zone="UTC")

    assert "CAN/quebec, GBR" in told(found, "import-place-ignored")
    assert all(run.place.zone is None for run in found.runs)


# 25
def test_a_zero_that_means_missing_and_totals_that_disagree_are_told(read):
    blank = read("emissions.csv", HEAD + row("a", kwh=None, parts=("", "", 0.001)), time_zone="UTC")
    late = read("emissions.csv", HEAD + row("a", seconds=3), time_zone="UTC")

    assert blank.it_joules == approx(0.001 * KWH) and "only ram is known" in told(blank, "import-partial")
    assert "times its power times its duration" in told(late, "import-disagrees")
    assert "import-disagrees" not in slugs(read("emissions.csv", HEAD + row("a"), time_zone="UTC"))


def test_a_power_of_zero_is_no_reading(read):
    lines = "timestamp,gpu_power_w\n" + "".join(f"{1772445600 + i},{0 if i == 2 else 100}\n" for i in range(5))

    found = read("log.csv", lines)

    assert found.it_joules == approx(400) and "nothing was measured" in found.rejected[0][1]


# pickles beside data
class Bomb:
    def __reduce__(self):
        return (print, ("a pickle was loaded",))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_is_refused_by_name_and_never_loaded(tmp_path, capsys, protocol):
    for name in ("info.pkl", "data.json"):
        (tmp_path / name).write_bytes(pickle.dumps(Bomb(), protocol))
        with pytest.raises(RecordError, match="pickle"):
            import_file(tmp_path / name)

    assert "a pickle was loaded" not in capsys.readouterr().out


def test_states_and_numbers_of_sacct_json_may_be_wrapped(read, logs):
    plain = json.loads(logs.SLURM_JSON)
    plain["jobs"][0]["state"] = "COMPLETED"
    plain["jobs"][0]["time"]["elapsed"] = {"set": True, "infinite": False, "number": 3600}
    plain["jobs"][0]["tres"]["allocated"][0]["count"] = 18446744073709551614

    assert read("sacct.json", json.dumps(plain)).it_joules == 1_790_000
    squeue = {"jobs": [{"job_id": 1, "job_state": "RUNNING", "start_time": 1}]}
    assert "squeue" in read("squeue.json", json.dumps(squeue)).why_not


def test_the_exporters_own_pod_is_nobody(read, logs):
    found = read("range.json", logs.PROMETHEUS)

    assert {run.name for run in found.runs} == {"train-abc", "range"}


MARKDOWN = (
    """# Energy of training

Power, time and energy of a run, in watts, seconds and joules: what a reader, or a referee, wants to know.

| option | energy, time |
|---|---|
| --power-cap 300 | 12 kWh, 3 h |

Some more prose, with a comma. Numbers, too: 12, 13, 14.
- a list, with energy, and 3 items
- and another, of power
"""
    + "Text that goes on, as prose does, without any number in it.\n" * 30
)


def test_prose_that_speaks_of_power_and_energy_is_no_table(read):
    with pytest.raises(RecordError, match="of no format that is known here"):
        read("README.md", MARKDOWN)
    assert "no column of power" in read("README.md", MARKDOWN, power="watts").why_not  # somebody who names columns knows better


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n3,4\n", "no column of power or energy"),
        ("1767261600,50\n1767261610,60\n", "no header"),
        ("time;power\n2026-01-01 10:00:00;N/A\n2026-01-01 10:00:01;-\n", "no power"),
        ("time,power_w\n", "no data rows"),
    ],
)
def test_a_table_without_energy_is_still_known_as_one_and_says_what_it_lacks(read, text, words):
    found = read("log.csv", text, time_zone="UTC")

    assert found.format == "csv" and words in found.why_not


def test_a_program_and_other_binary_files_are_called_binary(read):
    program = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00>\x00\x01\x00\x00\x00" + bytes(100)
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8

    for content in (program, picture):
        with pytest.raises(RecordError, match="is binary, no text"):
            read("x", content)


def test_a_log_that_a_crash_padded_with_zeros_is_no_binary_file(read):
    log = smi([f"2026/03/02 10:00:0{i}.000, 0, NVIDIA L4, 50.00 W" for i in range(5)])

    assert read("log.csv", log.encode() + bytes(4096), time_zone="UTC").it_joules == approx(200)
    assert read("log16.csv", log.encode("utf-16-le"), time_zone="UTC").it_joules == approx(200)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "no list of jobs"),
        ("{", "cannot be read as JSON"),
        ('{"jobs": []}', "list of jobs is empty"),
        ('{"jobs": [{"job_id": 3, "job_state": "PENDING"}]}', "of squeue"),
        ("hello, world\n", "header of sacct"),
    ],
)
def test_a_file_that_is_not_of_sacct_is_told_the_right_cause(log_file, text, words):
    found = load("importer", "slurm", {}).read(log_file("e.json", text))

    assert words in found.why_not
    assert ("squeue" in found.why_not) == (words == "of squeue")
