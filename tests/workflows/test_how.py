"""How and where through the command line: caps, seasons, regions, a second signal, each lever alone and together."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from pytest import approx

from carbonreport.cli.main import cli
from carbonreport.store.writer import save
from carbonreport.testing import make_record
from carbonreport.workflows.caps import reported_caps

ROOT = Path(__file__).resolve().parents[2]
RAW = Path(os.environ.get("CARBONREPORT_RAW", ROOT.parent / "shared" / "data"))
SUMMER = ("--earliest", "2026-07-01T10:00Z")


def when(*arguments):
    result = CliRunner().invoke(cli, ["when", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def options(*arguments):
    found = json.loads(when(*arguments, "--json"))
    return found, {option["action"]: option for option in found["options"]}


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "carbonreport.toml"
    path.write_text('[place]\nzone = "DE"\npue = { summer = 1.60, winter = 1.072 }\n[price]\nper_kwh = 0.25\ncurrency = "EUR"\n')
    return path


def flat(folder, name="flat.csv", *, title="g_per_kwh", clean_hour=None, hours=400, grams=400):
    path = folder / name
    begin = datetime.fromisoformat("2026-06-30T00:00Z")
    rows = [f"{begin + timedelta(hours=h):%Y-%m-%dT%H:%M:%SZ},{100 if h == clean_hour else grams}" for h in range(hours)]
    path.write_text(f"Time (UTC),{title}\n" + "\n".join(rows) + "\n")
    return path


def test_day_to_night_is_a_tenth_less_for_a_site_whose_pue_says_so(tmp_path):
    site = tmp_path / "site.toml"
    site.write_text('[place]\nzone = "GB"\npue = { day = 1.40, night = 1.26 }\n')
    found, by_action = options("--hours", "6", "--kw", "2", "--site", str(site), "--grid", str(flat(tmp_path)), *SUMMER)

    assert by_action["shift"]["saving_percent"]["value"] == approx(10, abs=0.01)
    assert found["verdict"] == "worth-it"


def test_summer_to_winter_is_a_third_less_energy_and_a_cap_with_it_0_578(site):
    found, by_action = options("--hours", "6", "--kw", "2", "--site", str(site), "--gpu", "V100", *SUMMER)
    now = found["now"]["facility_joules"]

    assert by_action["season"]["facility_joules"] / now == approx(0.67, abs=1e-4)
    assert by_action["cap"]["facility_joules"] / now == approx(0.863, abs=1e-4)
    assert by_action["cap+season"]["facility_joules"] / now == approx(0.578, abs=5e-4)
    assert by_action["cap+season"]["run_seconds"] == approx(6 * 3600 * 1.068)
    assert not by_action["season"]["in_time"]
    assert "low confidence" in by_action["season"]["because"]
    assert "missed by 7 % when 2024 was held out" in by_action["season"]["because"]


def test_money_and_hours_are_told_beside_the_saving(site):
    _, by_action = options("--hours", "6", "--kw", "2", "--site", str(site), "--gpu", "V100", *SUMMER)
    cap = by_action["cap"]["saved"]
    text = when("--hours", "6", "--kw", "2", "--site", str(site), "--gpu", "V100", *SUMMER)

    assert cap["kwh"] == approx(12 * 1.6 * (1 - 0.863))
    assert cap["money"] == {"amount": approx(cap["kwh"] * 0.25), "currency": "EUR"}
    assert by_action["cap"]["waits_hours"] == approx(6 * 0.068)
    assert "EUR" in text
    assert "carbonreport run --power-cap 150 --" in text


def test_levers_are_solved_together_not_multiplied(tmp_path):
    """In a grid with one clean hour the cap makes the job longer than that hour, and less of it fits."""
    grid = flat(tmp_path, clean_hour=48)
    _, by_action = options(
        "--hours", "1", "--kw", "1", "--zone", "GB", "--pue", "1", "--grid", str(grid), "--gpu", "V100", "--slack", "40h", *SUMMER
    )
    grams = {action: option["grams"] for action, option in by_action.items()}

    assert grams["shift"] == approx(100)
    assert grams["cap"] == approx(400 * 0.863)
    assert grams["cap+shift"] == approx(0.863 / 1.068 * (100 + 0.068 * 400))
    assert grams["cap+shift"] > grams["shift"] * 0.863


def test_a_cap_that_does_not_fit_before_the_deadline_is_not_offered(tmp_path):
    _, by_action = options("--hours", "6", "--kw", "1", "--zone", "GB", "--pue", "1", "--gpu", "V100", "--slack", "0h", *SUMMER)

    assert "cap" not in by_action


def test_what_others_reported_is_marked_and_has_its_range():
    _, by_action = options("--hours", "6", "--kw", "1", "--zone", "GB", "--pue", "1", "--gpu", "Tesla V100-SXM2-16GB", *SUMMER)
    because = by_action["cap"]["because"]

    assert "reported elsewhere" in because
    assert "McDonald" in because
    assert "reports from" in because
    low, value, high = (by_action["cap"]["saving_percent"][key] for key in ("low", "value", "high"))
    assert low < value < high


def test_an_inference_cap_may_be_no_slower_than_asked():
    place = ("--hours", "6", "--kw", "1", "--zone", "GB", "--pue", "1", "--gpu", "V100", "--workload", "inference", *SUMMER)

    assert options(*place, "--slowdown", "10")[1]["cap"]["cap_watts"] == 200
    assert options(*place)[1]["cap"]["cap_watts"] == 150
    assert "cap" not in options(*place, "--slowdown", "5")[1]


def sweep(folder, **changes):
    points = [
        {"cap_watts": 400, "time_ratio": 1.3, "energy_ratio": 0.95, "dominated": True},
        {"cap_watts": 500, "time_ratio": 1.10, "energy_ratio": 0.85, "dominated": False},
        {"cap_watts": 600, "time_ratio": 1.02, "energy_ratio": 0.93, "dominated": False},
    ]
    path = folder / "sweep.json"
    path.write_text(json.dumps({"baseline": {"cap_watts": 700}, "points": points} | changes))
    return path


@pytest.mark.parametrize(("said", "cap_watts"), [({}, 500), ({"choice": 600}, 600), ({"choice": {"cap_watts": 600}}, 600)])
def test_the_users_own_sweep_is_taken_and_its_choice_kept(tmp_path, said, cap_watts):
    path = sweep(tmp_path, **said)
    _, by_action = options("--hours", "6", "--kw", "1", "--zone", "GB", "--pue", "1", "--sweep", str(path), *SUMMER)

    assert by_action["cap"]["cap_watts"] == cap_watts
    assert "your own sweep.json" in by_action["cap"]["because"]
    assert "reported elsewhere" not in by_action["cap"]["because"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            {"choice": None, "because": "no cap is worth it: of the best, 500 W, energy may be more"},
            "of the best, 500 W, energy may be more",
        ),
        ({"choice": None, "because": "no cap keeps a slowdown of 1 %"}, "no cap keeps a slowdown of 1 %"),
        ({"not_confirmed": {"cap_watts": 500}, "because": "500 W did not keep"}, "500 W did not keep"),
        ({"choice": None}, "it does not say why"),
    ],
)
def test_caps_that_the_sweep_found_not_worth_it_are_not_offered_and_its_reason_is_told(tmp_path, said, why):
    place = ("--hours", "6", "--kw", "1", "--zone", "GB", "--pue", "1", "--sweep", str(sweep(tmp_path, **said)), *SUMMER)
    found, by_action = options(*place)
    text = when(*place)

    assert not {action for action in by_action if "cap" in action}
    assert any(why in note["text"] for note in found["notes"] if note["slug"] == "sweep-no-cap")
    assert "your sweep found no cap worth it: " in text and why in text
    assert "a power cap (--sweep" not in text


def test_the_rest_of_the_node_draws_for_the_longer_time(tmp_path):
    place = ("--hours", "6", "--kw", "1", "--zone", "GB", "--pue", "1", "--sweep", str(sweep(tmp_path)), *SUMMER)
    found, by_action = options(*place, "--gpu-share", "0.7")

    assert by_action["cap"]["it_joules"] / found["now"]["it_joules"] == approx(0.7 * 0.85 + 0.3 * 1.10)


def test_a_run_on_a_board_of_the_table_gets_its_caps_and_another_none(tmp_path):
    for name, has_cap in (("Tesla V100-SXM2-16GB", True), ("NVIDIA H200", False)):
        record = save(make_record({name: 250.0}, 3, start="2025-03-01T09:00Z"), tmp_path / f"{has_cap}.jsonl")
        _, by_action = options("--like", str(record), "--zone", "GB", "--pue", "1", *SUMMER)

        assert ("cap" in by_action) == has_cap


def test_where_nobody_knows_what_the_gpus_drew_no_cap_is_compared_and_that_is_said(tmp_path):
    record = save(make_record({"node": 900.0}, 3, kinds={"node": "node"}, start="2025-03-01T09:00Z"), tmp_path / "node.jsonl")
    found, by_action = options("--like", str(record), "--zone", "GB", "--pue", "1", "--sweep", str(sweep(tmp_path)), *SUMMER)

    assert not {action for action in by_action if "cap" in action}
    assert any("does not say what its GPUs drew" in note["text"] for note in found["notes"] if note["slug"] == "sweep-no-cap")


def test_a_cloud_region_is_its_zone_with_its_operators_pue():
    found, by_action = options("--hours", "6", "--kw", "1", "--zone", "aws:eu-central-1,aws:eu-north-1", *SUMMER)

    assert (found["now"]["zone"], by_action["move"]["zone"]) == ("DE", "SE")
    assert found["now"]["facility_joules"] / found["now"]["it_joules"] == approx(1.35)
    assert by_action["move"]["facility_joules"] / by_action["move"]["it_joules"] == approx(1.10)
    assert "aws:eu-north-1" in by_action["move"]["because"]
    assert "data and people move with the job" in by_action["move"]["because"]


def test_both_signals_are_compared_only_where_a_marginal_one_is_there(tmp_path):
    grid = flat(tmp_path, clean_hour=48)
    place = ("--hours", "1", "--kw", "1", "--zone", "GB", "--pue", "1", "--grid", str(grid), "--slack", "40h", *SUMMER)
    agree = flat(tmp_path, "agree.csv", title="marginal g_per_kwh", clean_hour=48)
    steady = flat(tmp_path, "steady.csv", title="marginal g_per_kwh", clean_hour=34)

    assert "signals" not in options(*place)[1]["shift"]["because"]
    assert "both signals agree (marginal: −75 %)" in options(*place, "--marginal", str(agree))[1]["shift"]["because"]
    kept = options(*place, "--marginal", str(steady))[1]["shift"]
    assert "the signals disagree" in kept["because"]
    assert kept["advised"], "in time it is kept, with a warning"


def test_a_move_that_the_marginal_signal_does_not_bear_out_is_withdrawn(tmp_path):
    home, there = (flat(tmp_path, name, title="marginal g_per_kwh", grams=grams) for name, grams in (("pl.csv", 400), ("se.csv", 700)))
    place = ("--hours", "6", "--kw", "1", "--zone", "PL,SE", "--pue", "1.2", *SUMMER)

    assert options(*place)[1]["move"]["advised"]
    withdrawn = options(*place, "--marginal", f"{home},{there}")[1]["move"]
    assert not withdrawn["advised"]
    assert "the signals disagree (marginal: +75 %)" in withdrawn["because"]


def test_what_is_not_worth_it_names_what_could_be(site):
    text = when("--hours", "100", "--kw", "1", "--zone", "ZA", "--pue", "1.2", *SUMMER)
    seasonal = when("--hours", "100", "--kw", "1", "--site", str(site), *SUMMER)

    assert "not-worth-it" in text
    for lever in ("a power cap", "another place", "a season"):
        assert lever in text
    assert "% less)" in seasonal
    assert "a season, where" not in seasonal


@pytest.mark.parametrize("action", ["season", "cap", "move"])
def test_no_lever_promises_more_than_a_difference(site, action):
    text = when("--hours", "6", "--kw", "2", "--site", str(site), "--zone", "DE,SE", "--gpu", "V100", *SUMMER)

    assert action in text
    for word in ("avoid", "carbon neutral", "climate-friendly"):
        assert word not in text.lower()


@pytest.mark.skipif(not (RAW / "dvfs" / "zeus-traces" / "v100.csv").is_file(), reason="the raw files are not here")
def test_the_means_of_the_open_traces_are_those_of_their_rows():
    """Energy and time of one epoch at 150 W over those at 250 W, mean of the batch sizes of BERT on SQuAD."""
    rows = (RAW / "dvfs" / "zeus-traces" / "v100.csv").read_text().splitlines()
    runs = defaultdict(dict)
    for dataset, _, batch, optimizer, limit, seconds, watts in (row.split(",") for row in rows[1:]):
        if dataset == "squad":
            runs[batch, optimizer][int(limit)] = (float(seconds), float(seconds) * float(watts))
    at_150 = np.mean([(r[150][0] / r[250][0], r[150][1] / r[250][1]) for r in runs.values() if 250 in r], axis=0)
    table = (ROOT / "carbonreport" / "data" / "power_caps.csv").read_text()

    assert f'V100,training,150,{at_150[1]:.3f},{at_150[0]:.3f},"Zeus' in table
    assert reported_caps("A40", "training")[0].source.startswith("Zeus")


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["--gpu", "NVIDIA H200"], "nobody's power caps", 1),
        (["--gpu", "A40", "--workload", "inference"], "A40 (training)", 1),
        (["--gpu", "V100", "--workload", "gaming"], "gaming", 2),
        (["--gpu", "V100", "--sweep", "sweep.json"], "give one", 2),
        (["--sweep", "sweep.json", "--workload", "training"], "leave it out", 2),
        (["--sweep", "missing.json"], "missing.json", 1),
        (["--sweep", "broken.json"], "broken.json", 1),
        (["--sweep", "empty.json"], "points is missing", 1),
        (["--sweep", "text.json"], "points[0].energy_ratio must be a number", 1),
        (["--sweep", "negative.json"], "cannot be", 1),
        (["--sweep", "choice.json"], "choice", 1),
        (["--sweep", "deep.json"], "nested too deeply", 1),
        (["--sweep", "digits.json"], "too many digits", 1),
        (["--gpu-share", "0"], "gpu-share", 2),
        (["--gpu-share", "1.5"], "gpu-share", 2),
        (["--slowdown", "-5"], "slowdown", 2),
        (["--marginal", "missing.csv"], "missing.csv", 1),
        (["--marginal", "average.csv"], "marginal", 1),
        (["--grid", "marginal.csv"], "marginal", 1),
        (["--zone", "DE,aws:nowhere-1"], "nowhere", 1),
    ],
)
def test_what_makes_no_sense_is_one_line(arguments, words, code, tmp_path):
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "empty.json").write_text('{"baseline": {}, "points": []}')
    (tmp_path / "text.json").write_text('{"points": [{"cap_watts": 150, "energy_ratio": "low", "time_ratio": 1.1}]}')
    (tmp_path / "negative.json").write_text('{"points": [{"cap_watts": 150, "energy_ratio": -0.9, "time_ratio": 1.1}]}')
    (tmp_path / "choice.json").write_text('{"points": [{"cap_watts": 150, "energy_ratio": 0.9, "time_ratio": 1.1}], "choice": 9}')
    (tmp_path / "deep.json").write_text("[" * 200_000)
    (tmp_path / "digits.json").write_text('{"points": [{"cap_watts": 1' + "0" * 400 + ', "energy_ratio": 0.9, "time_ratio": 1.1}]}')
    sweep(tmp_path)
    flat(tmp_path, "average.csv", clean_hour=48)
    flat(tmp_path, "marginal.csv", title="marginal g_per_kwh")
    place = ["--hours", "1", "--kw", "1", *([] if "--zone" in arguments else ["--zone", "GB"]), "--pue", "1.2", *SUMMER]
    command = [sys.executable, "-m", "carbonreport", "when", *place, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout
