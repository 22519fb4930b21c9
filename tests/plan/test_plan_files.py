"""Tables and plans on the disk, packaged latencies, and the commands."""

import json
import re
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from pytest import approx

from carbonreport.cli.changes import change
from carbonreport.cli.plan import command
from carbonreport.cli.plan_tables import gap_in_words
from carbonreport.errors import CarbonreportError, OutputError
from carbonreport.plan.frontier import frontier, kept
from carbonreport.plan.identity import sequence_hash
from carbonreport.plan.order import in_loops
from carbonreport.plan.result import Way
from carbonreport.plan.solver import solve
from carbonreport.plan.switching import Latency, Switching
from carbonreport.plan.table import UNLOCKED, ClockPair, PlanError
from carbonreport.plan_file import BoardNow, BoundTo, mismatch, read_plan, write_plan
from carbonreport.plan_files.table_csv import read_table
from carbonreport.switch_latency import assumed_latency, latency_rows
from carbonreport.workflows.plan import make_frontier, make_plan
from carbonreport.workflows.plan_ask import PlanAsk
from carbonreport.workflows.plan_keep import file_of

HEAD = "kernel,count,sm_mhz,mem_mhz,seconds,joules\n"


def table_file(folder, text):
    path = folder / "table.csv"
    path.write_text(text)
    return path


def output(*arguments):
    done = CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


# Tables


def test_kernels_of_one_count_are_a_loop():
    assert in_loops([1, 2, 2, 1], ["", "", "", ""]) == (0, 1, 2, 1, 2, 3)
    assert in_loops([2, 2], ["forward", "backward"]) == (0, 0, 1, 1)


def test_positions_say_the_order(tmp_path):
    text = "kernel,position,count,sm_mhz,mem_mhz,seconds,joules\na,0 2,2,auto,auto,1,1\nb,1;3,2,auto,auto,2,2\n"
    read = read_table(table_file(tmp_path, text))

    assert read.table.sequence.tolist() == [0, 1, 0, 1]
    assert read.notes == ()


def test_repeats_give_means_and_how_exact_they_are(tmp_path):
    text = HEAD + "a,1,auto,auto,1.0,10\na,1,auto,auto,1.2,14\na,1,900,auto,2,5\n"
    table = read_table(table_file(tmp_path, text)).table
    at = table.pairs.index(UNLOCKED)

    assert (table.seconds[0, at], table.joules[0, at]) == (approx(1.1), approx(12))
    assert table.seconds_sd is not None
    assert table.seconds_sd[0, at] == approx(0.1)
    assert np.isnan(table.seconds_sd[0, 1 - at])
    assert table.repeats.tolist() == ([[2, 1]] if at == 0 else [[1, 2]])


def test_an_order_that_was_guessed_is_said(tmp_path):
    read = read_table(table_file(tmp_path, HEAD + "a,2,auto,auto,1,1\nb,2,auto,auto,1,1\n"))

    assert read.table.sequence.tolist() == [0, 1, 0, 1]
    assert "in the order of the file" in read.notes[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n", "no column kernel"),
        (HEAD, "no rows"),
        (HEAD + "a,1,900,auto,1,1\n", "unlocked"),
        (HEAD + "a,1,auto,auto,x,1\n", r"table\.csv:2: seconds is 'x'"),
        (HEAD + "a,1,auto,auto,0,1\n", "must be above 0"),
        (HEAD + "a,1,auto,auto,nan,1\n", "must be above 0"),
        (HEAD + "a,0,auto,auto,1,1\n", "count is 0"),
        (HEAD + "a,1.5,auto,auto,1,1\n", "no whole number"),
        (HEAD + "a,1,-5,auto,1,1\n", "must be above 0"),
        (HEAD + "a,1,auto\n", "3 cells"),
        (HEAD + "a,1,auto,auto,1,1\na,2,900,auto,1,1\n", "count of a is 2 here"),
        (HEAD + "a,1,auto,auto,1,1\nb,1,900,auto,1,1\n", "of b with unlocked"),
        (HEAD + "a,9999999,auto,auto,1,1\n", "must be 1 to"),
    ],
)
def test_bad_tables_are_one_clear_line(tmp_path, text, words):
    with pytest.raises(PlanError, match=words) as caught:
        read_table(table_file(tmp_path, text))
    assert "table.csv" in str(caught.value) and "\n" not in str(caught.value)


def test_a_table_that_is_not_there_is_named(tmp_path):
    with pytest.raises(PlanError, match="cannot read .*gone"):
        read_table(tmp_path / "gone.csv")


# Latencies


def test_latencies_that_nobody_measured_are_wide_and_called_assumed():
    for row in latency_rows():
        assert row.latency.high_s >= 2 * row.latency.low_s
        assert "assumed" in row.latency.source


def test_a_board_has_the_latency_of_its_architecture():
    hopper = assumed_latency("NVIDIA H200")
    assert (hopper.low_s, hopper.value_s, hopper.high_s) == (0.006, 0.05, 0.1)
    assert assumed_latency("NVIDIA B200").value_s < 0.001
    assert assumed_latency("Tesla K80") == assumed_latency("")
    assert assumed_latency("NVIDIA H200", "memory").value_s == 0.1


@pytest.mark.parametrize(
    ("board", "architecture"),
    [
        ("NVIDIA RTX 6000 Ada Generation", "Ada"),
        ("Quadro RTX 6000", "Turing"),
        ("NVIDIA RTX A6000", "Ampere"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "Blackwell"),
        ("NVIDIA GH200 480GB", "Hopper"),
        ("NVIDIA L40S", "Ada"),
        ("Hopper", "Hopper"),
    ],
)
def test_a_board_that_names_its_architecture_is_of_that_one(board, architecture):
    (row,) = (row for row in latency_rows() if row.architecture == architecture and row.clock == "core")

    assert assumed_latency(board) == row.latency


# Plans


@pytest.fixture
def plan(both_file):
    ask = PlanAsk(both_file, latency_s=1e-5, gpu="GPU-1234", driver="580.1")
    return file_of(make_plan(ask, 0.01), ask)


def test_a_plan_is_read_back_as_it_was_written(tmp_path, plan, both):
    write_plan(plan, tmp_path / "plan.json")
    again = read_plan(tmp_path / "plan.json")

    assert again == plan
    assert len(again.clocks()) == again.invocations == 897
    assert len(set(again.clocks())) == 16
    assert again.sequence_hash == sequence_hash(both.names[row] for row in both.sequence)


@pytest.mark.parametrize(
    ("board", "words"),
    [
        (BoardNow("GPU-1234", "any", "580.1"), None),
        (BoardNow("GPU-9999", "any", "580.1"), "GPU-1234"),
        (BoardNow(None, "any", "580.1"), "cannot be read"),
        (BoardNow("GPU-1234", "any", "590.2"), "driver 580.1"),
        (BoardNow("GPU-1234", "any", None), "not known"),
    ],
)
def test_a_plan_is_refused_on_another_board(plan, board, words):
    reason = mismatch(plan, board)

    assert reason is None if words is None else words in str(reason)


def test_a_plan_of_a_model_other_work_or_no_board(plan):
    of_model = msgspec.structs.replace(plan, board=BoundTo(model="NVIDIA H200"))
    assert mismatch(of_model, BoardNow("GPU-x", "NVIDIA H200", "1")) is None
    assert "NVIDIA A100" in str(mismatch(of_model, BoardNow("GPU-x", "NVIDIA A100", "1")))
    assert "another order" in str(mismatch(of_model, BoardNow("GPU-x", "NVIDIA H200", "1"), sequence_hash(["other"])))
    assert mismatch(of_model, BoardNow("GPU-x", "NVIDIA H200", "1"), plan.sequence_hash) is None
    assert "names no board" in str(mismatch(msgspec.structs.replace(plan, board=BoundTo()), BoardNow("GPU-x", "NVIDIA H200", "1")))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "version 2"),
        ({"format": "other"}, "is no plan"),
        ({"segments": [[5, 0]]}, "segments"),
        ({"segments": [[0, 99]]}, "a pair that is not there"),
        ({"pairs": [["__import__('os')", 1]]}, "is no plan"),
        ({"pairs": [[-1, 1]] * 16}, "cannot be"),
        ({"kind": "cap"}, "cap_watts"),
        ({"invocations": 0}, "invocations"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(tmp_path, plan, change, words):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(json.loads(msgspec.json.encode(plan)) | change))

    with pytest.raises(PlanError, match=words):
        read_plan(path)


def test_a_plan_that_cannot_be_written_or_read_is_said(tmp_path, plan):
    with pytest.raises(OutputError, match="cannot write"):
        write_plan(plan, tmp_path / "no" / "plan.json")
    with pytest.raises(PlanError, match="cannot read"):
        read_plan(tmp_path / "gone.json")
    (tmp_path / "x.json").write_bytes(b"\xff\xfe")
    with pytest.raises(PlanError, match="is no plan"):
        read_plan(tmp_path / "x.json")


def test_a_plan_of_a_cap_has_no_clocks(plan, tmp_path):
    cap = msgspec.structs.replace(plan, kind="cap", pairs=[], segments=[], cap_watts=300.0)
    write_plan(cap, tmp_path / "cap.json")

    assert read_plan(tmp_path / "cap.json").clocks() == ()


# Frontier and commands


def test_the_frontier_falls_and_lies_above_that_of_free_switches(both):
    points = frontier(both, Switching(Latency.exactly(1e-4), 169.4), (0.0, 0.001, 0.01, 0.03, 0.1))
    energies = [point.plan.energy_ratio for point in points]

    assert energies == sorted(energies, reverse=True)
    assert all(point.free.energy_ratio <= point.plan.energy_ratio + 1e-9 for point in points)
    assert all(point.plan.time_ratio <= 1 + point.slowdown + 1e-9 for point in points)


def test_a_plan_kept_for_a_longer_time_is_bounded_by_what_is_proved_of_that_time(both):
    shorter, own = (
        replace(solve(both, 0.01), way=Way("static", (), 1.01, energy), bound=bound, slowdown=slowdown)
        for energy, bound, slowdown in ((0.8, 0.79, 0.01), (0.82, 0.7, 0.02))
    )

    assert kept(shorter, own) == replace(shorter, bound=0.7, slowdown=0.02)
    assert kept(own, shorter) is shorter


def test_slowdowns_that_no_plan_reaches_are_left_out_of_the_frontier_and_named(both_file):
    points, prepared = make_frontier(PlanAsk(both_file, latency_s=0.0), (-0.5, -0.3, 0.01))

    assert [point.slowdown for point in points] == [0.01]
    assert any("no plan reaches them: slowdowns of -50 %, -30 %" in note for note in prepared.notes)
    with pytest.raises(PlanError, match="no plan takes -50"):
        make_frontier(PlanAsk(both_file, latency_s=0.0), (-0.5,))


def test_a_frontier_of_repeated_cells_says_that_their_noise_is_left_out(tmp_path):
    path = table_file(tmp_path, HEAD + "a,1,auto,auto,1.0,10\na,1,auto,auto,1.01,10.1\na,1,900,auto,1.001,9\n")

    assert "nothing is kept back for the noise" in output("frontier", path, "--latency", "0", "--slowdowns", "0,1")


def noisy_file(folder):
    """Cells of two repeats, as far apart as 2 %."""
    rows = [
        f"{name},1,{sm},auto,{seconds * (1 + share)},{joules * (1 + share)}"
        for name, cells in (
            ("a", (("auto", 1.0, 300), (1500, 1.0, 250), (1200, 1.002, 200))),
            ("b", (("auto", 1.0, 300), (1500, 1.2, 292), (1200, 1.5, 310))),
        )
        for sm, seconds, joules in cells
        for share in (-0.01, 0.01)
    ]
    return table_file(folder, HEAD + "\n".join(rows) + "\n")


def test_a_cap_beats_noisy_kernels_and_is_told_in_one_clause(tmp_path):
    sweep = tmp_path / "sweep.json"
    sweep.write_text(
        json.dumps({"points": [{"cap_watts": 300, "time_ratio": 1.009, "energy_ratio": 0.7, "energy_low": 0.69, "energy_high": 0.71}]})
    )
    asked = ("solve", noisy_file(tmp_path), "--slowdown", "1%", "--latency", "1ms", "--stall-watts", "50")
    text, without = output(*asked, "--sweep", sweep), output(*asked)

    assert "Do not switch, hold one setting: a cap of 300 W needs 30.0 % less energy" in text
    assert "Expected: +0.90 % [+0.90, +0.90] of time, −30.00 % [−31.00, −29.00] of energy" in text
    assert "no clocks and no cap" not in text and "Kept back" not in text
    assert "Do not switch, leave the clocks alone: clocks kernel by kernel would need" in without
    assert "Kept back of the time for the noise of the table:" in without


def test_the_file_keeps_the_slowdown_that_was_asked_for(tmp_path):
    ask = PlanAsk(noisy_file(tmp_path), latency_s=1e-4, gpu="GPU-1")
    answer = make_plan(ask, 0.04)

    assert answer.judged.margin > 0.005
    assert file_of(answer, ask).slowdown == 0.04
    assert "not even one that keeps no time back" in gap_in_words(1.5, is_kept_back=True)


def test_solve_prints_the_plan_and_its_json_holds_the_same(both_file):
    text = output("solve", both_file, "--slowdown", "1%", "--latency", "6ms")
    assert "Do not switch, hold one setting: one pair" in text and "−9.68 %" in text and "half of the mean power" in text

    held = json.loads(output("solve", both_file, "--slowdown", "1%", "--latency", "6ms", "--json"))
    assert (held["kind"], held["switches"], held["energy_percent"]) == ("static", 0, approx(-9.68, abs=0.01))
    assert held["time_percent"] == approx(0.05, abs=0.01) and held["gap_percent"] == approx(0, abs=0.01)
    fast = json.loads(output("solve", both_file, "--slowdown", "1", "--latency", "10us", "--json"))
    assert (fast["kind"], fast["switches"], fast["energy_percent"]) == ("kernel", 824, approx(-15.56, abs=0.05))


def test_a_latency_that_nobody_gave_is_assumed_aloud(both_file):
    held = json.loads(output("solve", both_file, "--gpu", "NVIDIA H200", "--json"))

    assert held["switches"] == 0
    assert any("nobody gave --latency: 50 ms (6 to 100)" in note for note in held["notes"])


def test_passes_by_rows_objective_and_late_effect(both_file, tmp_path):
    by_rows = json.loads(output("solve", both_file, "--latency", "1ms", "--passes", "forward=0-13,backward=14-45", "--json"))
    assert by_rows["kind"] == "pass"
    edp = json.loads(output("solve", both_file, "--objective", "edp", "--latency", "0", "--json"))
    assert edp["verdict"] is None and edp["slowdown_percent"] is None
    late = json.loads(output("solve", both_file, "--latency", "100us", "--late", "--json"))
    assert late["time_percent"] <= 1.0
    local = json.loads(output("solve", both_file, "--latency", "0", "--slowdown", "0", "--aggregation", "local", "--json"))
    assert local["time_percent"] <= 0


def test_a_plan_that_is_the_best_of_all_is_called_so_in_words_and_not_by_a_zero(both_file):
    assert "No better plan of this table exists (proved)." in output("solve", both_file, "--slowdown", "1%", "--latency", "6ms")
    assert gap_in_words(0.0123) == "No plan of this table is more than 0.012 % better (proved)."


def test_changes_have_the_same_minus_sign_in_the_table_and_in_the_sentence(both_file):
    text = output("solve", both_file, "--slowdown", "1%", "--latency", "10us")

    assert "−" in text.partition("Switch clocks")[0] and "−" in text.partition("Switch clocks")[2]
    assert not re.search(r"(?<![\w.])-\d", text)
    assert change(0.99999, 2) == "+0.00 %"


def test_a_sweep_of_caps_is_compared(both_file, tmp_path):
    sweep = tmp_path / "sweep.json"
    sweep.write_text(json.dumps({"points": [{"cap_watts": 300, "time_ratio": 1.005, "energy_ratio": 0.85}]}))
    held = json.loads(output("solve", both_file, "--latency", "6ms", "--sweep", sweep, "--json"))

    assert (held["kind"], held["cap_watts"]) == ("cap", 300)


def test_caps_that_a_sweep_found_not_worth_it_are_in_no_plan(both_file, tmp_path):
    sweep = tmp_path / "sweep.json"
    points = [{"cap_watts": 300, "time_ratio": 1.005, "energy_ratio": 0.85}]
    sweep.write_text(json.dumps({"points": points, "choice": None, "because": "no cap is worth it: 300 W did not keep it"}))
    held = json.loads(output("solve", both_file, "--latency", "6ms", "--sweep", sweep, "--json"))

    assert held["kind"] != "cap" and all(way["cap_watts"] is None for way in held["others"])
    assert "your sweep found no cap worth it: 300 W did not keep it" in held["notes"]


def test_a_kept_plan_names_its_board(both_file, tmp_path):
    output("solve", both_file, "--latency", "10us", "--gpu", "GPU-1", "--driver", "580", "-o", tmp_path / "plan.json")

    plan = read_plan(tmp_path / "plan.json")
    assert plan.board == BoundTo("GPU-1", None, "580")
    assert plan.energy_ratio.value == approx(0.8444, abs=1e-3)


def test_the_frontier_as_a_table_and_a_picture(both_file, tmp_path):
    pytest.importorskip("matplotlib")
    text = output("frontier", both_file, "--latency", "100us", "--slowdowns", "0,1,5", "--plot", tmp_path / "f.svg")

    assert "if switches were free" in text
    svg = (tmp_path / "f.svg").read_text()
    assert svg.startswith("<svg ") and "Allowed slowdown" in svg and "best plan, switches paid for" in svg
    points = json.loads(output("frontier", both_file, "--latency", "100us", "--slowdowns", "0,1,5", "--json"))["points"]
    assert [point["slowdown_percent"] for point in points] == [0, approx(1), approx(5)]


def test_a_trace_prints_its_kernels_and_the_uncovered_share(tmp_path):
    events = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": name,
            "ts": 10.0 * i,
            "dur": 8.0,
            "args": {"device": 0, "stream": 7, "grid": [1, 1, 1], "block": [1, 1, 1]},
        }
        for i, name in enumerate(["matmul", "gelu"] * 3)
    ]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": events}))

    text = output("trace", tmp_path / "t.json")
    assert "matmul" in text and "Uncovered: 0.004 ms (20.0 %)" in text
    held = json.loads(output("trace", tmp_path / "t.json", "--json"))
    assert held["uncovered_percent"] == approx(20) and held["sequence"] == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--passes", "forward"], "cannot read 'forward'"),
        (["--passes", "forward=0-99"], "no rows 0 to 99"),
        (["--passes", "forward=0-3"], "row 4 .* is in no pass"),
    ],
)
def test_what_cannot_be_planned_is_said(both_file, arguments, words):
    with pytest.raises(CarbonreportError, match=words):
        CliRunner().invoke(command, ["solve", str(both_file), "--latency", "0", *arguments], catch_exceptions=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--latency", "fast"],
        ["--latency", "6"],
        ["--slowdown", "much"],
        ["--slowdown", "-1%"],
        ["--slowdown", "9" * 400],
        ["--stall-watts", "-1"],
    ],
)
def test_options_that_cannot_be_read_are_usage_errors(both_file, arguments):
    assert CliRunner().invoke(command, ["solve", str(both_file), *arguments]).exit_code == 2


def test_pairs_of_clocks_that_cannot_be_are_refused():
    for sm, mem in ((0, None), (-5, 5001), (None, 10**6)):
        with pytest.raises(ValueError, match="MHz"):
            ClockPair(sm, mem)
    with pytest.raises(PlanError, match="latency"):
        Latency(1.0, 2.0, 3.0, "x")
    with pytest.raises(PlanError, match="stall"):
        replace(Switching(), stall_watts=-1.0)
