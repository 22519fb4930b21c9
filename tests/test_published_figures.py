"""Figures of published papers, through the command line: a record, `show --json`, the number that was printed."""

import json
import re
from pathlib import Path

import pytest
from pytest import approx

from carbonreport.cli.main import main
from carbonreport.store.writer import save
from carbonreport.testing import make_record

GRAMS_PER_POUND = 453.59237


class Desk:
    """A folder, and the command line in it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def run(self, *arguments: object) -> str:
        with pytest.raises(SystemExit) as end:
            main([str(a) for a in arguments])
        out, err = self._capsys.readouterr()
        assert end.value.code == 0, err
        return out

    def grid(self, grams_per_kwh: float) -> Path:
        path = self.folder / f"grid-{grams_per_kwh:g}.csv"
        path.write_text(f"time,g_per_kwh\n1990-01-01T00:00Z,{grams_per_kwh!r}\n2050-01-01T00:00Z,{grams_per_kwh!r}\n")
        return path

    def estimate(self, *, watts: float, hours: float, count: int = 1, gpu: str = "accelerator") -> str:
        start = "2019-01-01T00:00Z"
        arguments = ["--gpu", gpu, "--count", count, "--hours", hours, "--mean-watts", watts, "--start", start, "--out", self.folder]
        return self.run("estimate", "--quiet", *arguments).strip()

    def show(self, record: object, *place: object) -> dict:
        return json.loads(self.run("show", "--json", record, *place))


@pytest.fixture
def desk(tmp_path, capsys):
    return Desk(tmp_path, capsys)


def kwh(shown: dict) -> float:
    return shown["facility_joules"]["value"] / 3.6e6


def test_strubell_neural_architecture_search(desk):
    record = desk.estimate(watts=1515.43, hours=274_120)

    shown = desk.show(record, "--pue", 1.58, "--grid", desk.grid(0.954 * GRAMS_PER_POUND))

    assert kwh(shown) == approx(656_347, abs=1)
    assert shown["grams"]["value"] / GRAMS_PER_POUND == approx(626_155, abs=1)


def test_strubell_big_transformer(desk):
    record = desk.estimate(watts=1515.43, hours=84)

    shown = desk.show(record, "--pue", 1.58, "--grid", desk.grid(0.954 * GRAMS_PER_POUND))

    assert kwh(shown) == approx(201.13, abs=0.01)
    assert shown["grams"]["value"] / GRAMS_PER_POUND == approx(191.88, abs=0.01)


@pytest.mark.parametrize(
    ("model", "days", "chips", "watts", "pue", "megawatt_hours", "paper"),
    [
        ("Meena", 30, 1024, 289, 1.09, 232.25, 232),
        ("Switch", 27, 1024, 245, 1.10, 178.83, 179),
        ("GShard-600B", 3.1, 1024, 288, 1.09, 23.92, 24.1),
        ("T5", 20, 512, 310, 1.12, 85.33, 85.7),
        ("Evolved Transformer NAS", 6.8, 200, 208, 1.10, 7.47, 7.5),
    ],
)
def test_patterson_rows(desk, model, days, chips, watts, pue, megawatt_hours, paper):
    record = desk.estimate(watts=watts, hours=days * 24, count=chips, gpu=model)

    shown = desk.show(record, "--pue", pue, "--grid", desk.grid(431))

    assert kwh(shown) / 1000 == approx(megawatt_hours, abs=0.01)
    assert kwh(shown) / 1000 == approx(paper, rel=0.01)


def test_bloom_is_rated_power_times_hours_and_says_so(desk):
    record = desk.estimate(watts=400, hours=1_082_990 / 384, count=384, gpu="A100-SXM4-80GB")

    shown = desk.show(record, "--pue", 1.0, "--grid", desk.grid(57))

    assert shown["it_joules"]["value"] / 3.6e6 == approx(433_196, abs=1e-6)
    assert shown["grams"]["value"] / 1e6 == approx(24.692, abs=0.001)
    assert shown["it_joules"]["origin"] == "assumed"
    assert shown["devices"][0]["method"] == "model"
    assert {"rated-power", "estimated-run"} <= {note["slug"] for note in shown["notes"]}
    assert shown["it_joules"]["low"] / shown["it_joules"]["value"] == approx(0.45)


EMBODIED = """
[embodied]
devices = {{ {rows} }}
"""
SERVER = '"server" = { kg = 2500, lifetime_years = 6, utilisation = 0.85, source = "BLOOM", per_gpus = %s }'
GPU = '"A100" = { kg = 150, lifetime_years = 6, utilisation = 0.85, source = "BLOOM" }'


@pytest.mark.parametrize(
    ("rows", "kg"),
    [(SERVER % 1, 0.05596), (GPU, 0.003358), (f"{SERVER % 8}, {GPU}", 0.01035)],
    ids=["a server hour", "a GPU hour", "a GPU hour with its eighth of a server"],
)
def test_bloom_embodied_rates(desk, rows, kg):
    record = save(make_record({"A100": 400.0}, 1), desk.folder / "hour.jsonl")
    site = desk.folder / "site.toml"
    site.write_text(EMBODIED.format(rows=rows))

    shown = desk.show(record, "--site", site, "--grid", desk.grid(57), "--pue", 1.0)

    assert shown["embodied"]["value"] / 1000 == approx(kg, abs=1e-5)
    assert shown["grams"]["value"] == approx(0.4 * 57)


def test_software_carbon_intensity_example(desk):
    record = save(make_record({"laptop": 0.0}, 1, kinds={"laptop": "node"}), desk.folder / "hour.jsonl")
    site = desk.folder / "site.toml"
    site.write_text(EMBODIED.format(rows='"laptop" = { kg = 1000, lifetime_years = 4, utilisation = 1.0, source = "SCI" }'))

    shown = desk.show(record, "--site", site, "--grid", desk.grid(57), "--pue", 1.0)

    assert shown["embodied"]["value"] == approx(28.54, abs=0.01)


def test_green_algorithms_example(desk):
    run = make_record({"GPU": 250.0, "memory": 64 * 0.3725}, 10, kinds={"memory": "dram"}, method="reported")
    record = save(run, desk.folder / "ga.jsonl")

    shown = desk.show(record, "--pue", 1.67, "--grid", desk.grid(475))

    assert kwh(shown) == approx(4.5731, abs=1e-4)
    assert shown["grams"]["value"] == approx(2172.2, abs=0.1)


def test_lacoste_example_has_no_facility(desk):
    record = desk.estimate(watts=250, hours=100)

    shown = desk.show(record, "--pue", 1.0, "--grid", desk.grid(432))

    assert kwh(shown) == approx(25)
    assert shown["grams"]["value"] == approx(10_800)


def test_both_scope_2_totals_are_there_and_apart(desk):
    record = save(make_record({"GPU": 1000.0}, 10), desk.folder / "run.jsonl")
    site = desk.folder / "site.toml"
    site.write_text('[contract]\ngrams_per_kwh = 0\ninstrument = "power purchase agreement 2026"\n')

    shown = desk.show(record, "--site", site, "--pue", 1.0, "--grid", desk.grid(400))

    assert shown["grams"]["value"] == approx(4000)
    assert shown["market_grams"]["value"] == 0
    assert not any(isinstance(v, dict) and v.get("value") == approx(4000 + 0.0) for k, v in shown.items() if k != "grams")


def test_one_record_gives_right_figures_for_other_zones_and_seasons(desk):
    winter = save(make_record({"GPU": 1000.0}, 24, start="2026-01-15T00:00Z"), desk.folder / "winter.jsonl")
    summer = save(make_record({"GPU": 1000.0}, 24, start="2026-07-15T00:00Z"), desk.folder / "summer.jsonl")

    grams = {
        (zone, season): desk.show(record, "--zone", zone, "--pue", 1.0)["grams"]["value"] / 24
        for zone in ("DE", "SE", "IN")
        for season, record in (("winter", winter), ("summer", summer))
    }

    assert grams["SE", "winter"] < 60 < 250 < grams["DE", "summer"] < grams["DE", "winter"] < 500 < grams["IN", "winter"] < 900
    assert grams["SE", "winter"] == grams["SE", "summer"]  # only a yearly level of the whole country is known, and the note says so
    assert "annual-level" in {note["slug"] for note in desk.show(winter, "--zone", "SE", "--pue", 1.0)["notes"]}


def test_strubell_bert_is_within_half_a_percent_of_the_paper(desk):
    record = desk.estimate(watts=12_041.51, hours=79)

    shown = desk.show(record, "--pue", 1.58, "--grid", desk.grid(0.954 * GRAMS_PER_POUND))

    assert kwh(shown) == approx(1503.02, abs=0.01)
    assert kwh(shown) == approx(1507, rel=0.005)
    assert shown["grams"]["value"] / GRAMS_PER_POUND == approx(1438, rel=0.005)


def test_patterson_gpt_3(desk):
    record = desk.estimate(watts=330, hours=14.8 * 24, count=10_000, gpu="V100 system")

    shown = desk.show(record, "--pue", 1.10, "--grid", desk.grid(429))

    assert kwh(shown) / 1000 == approx(1289.4, abs=0.1)
    assert kwh(shown) / 1000 == approx(1287, rel=0.003)
    assert shown["grams"]["value"] / 1e6 == approx(552.1, rel=0.003)


def test_patterson_switch_gross_and_net(desk):
    record = desk.estimate(watts=245, hours=27 * 24, count=1024, gpu="TPU v3")

    gross, net = (desk.show(record, "--pue", 1.10, "--grid", desk.grid(g))["grams"]["value"] / 1e6 for g in (403, 330))

    assert (gross, net) == (approx(72.07, abs=0.01), approx(59.01, abs=0.01))
    assert (gross, net) == (approx(72.2, rel=0.003), approx(59.1, rel=0.003))


def test_bloom_idle_and_its_sum_of_rounded_parts(desk):
    idle = save(make_record({"idle": 256_646.0}, 1000, name="idle", method="reported"), desk.folder / "idle.jsonl")

    tonnes = desk.show(idle, "--pue", 1.0, "--grid", desk.grid(57))["grams"]["value"] / 1e6

    assert tonnes == approx(14.63, abs=0.005)
    assert round(24.7 + round(tonnes, 1) + 11.2, 1) == 50.5  # of rounded parts; 50.52 of unrounded ones


def test_a_codecarbon_row_adds_up(desk):
    parts = {"gpu": 0.002090706, "cpu": 0.000170182, "ram": 0.001685474}  # kWh
    kinds = {"cpu": "cpu", "ram": "dram"}
    record = save(
        make_record({name: 1000 * energy for name, energy in parts.items()}, 1, kinds=kinds, method="reported"), desk.folder / "row.jsonl"
    )

    shown = desk.show(record, "--pue", 1.0, "--grid", desk.grid(138.750))

    assert kwh(shown) == approx(0.003946362, abs=1e-9)
    assert shown["grams"]["value"] == approx(0.003946362 * 138.75)
    assert sum(device["share"] for device in shown["devices"]) == approx(1)


def test_google_prompt_boundary(desk):
    shares = {"accelerators": 0.58, "host": 0.25, "idle": 0.10, "overhead": 0.08}  # they are rounded: their sum is 1.01
    record = save(
        make_record(
            {name: 0.24 * share for name, share in shares.items()},
            1,
            kinds={"host": "cpu", "idle": "other", "overhead": "other"},
            method="reported",
        ),
        desk.folder / "prompt.jsonl",
    )
    narrow = save(make_record({"accelerators": 0.10}, 1, name="narrow", method="reported"), desk.folder / "narrow.jsonl")

    shown = desk.show(record, "--pue", 1.0, "--grid", desk.grid(94))
    watt_hours = {device["name"]: device["it_joules"] / 3600 for device in shown["devices"]}

    assert watt_hours == approx({"accelerators": 0.14, "host": 0.06, "idle": 0.024, "overhead": 0.019}, abs=0.01)
    assert kwh(desk.show(narrow, "--pue", 1.0, "--grid", desk.grid(94))) * 1000 == approx(0.10, abs=1e-9)


def test_a_training_that_was_reported_in_part(desk):
    """Dodge et al. 2022, table 2: 8 of the 60 days of a model of 6 billion parameters on 256 A100 took 13,812.4 kWh."""
    boards, part_days, whole_days, part_kwh = 256, 8, 60, 13_812.4
    watts = part_kwh * 1000 / (boards * part_days * 24)
    reported = desk.estimate(watts=watts, hours=part_days * 24, count=boards, gpu="A100-SXM4-80GB")
    whole = desk.estimate(watts=watts, hours=whole_days * 24, count=boards, gpu="A100-SXM4-80GB")
    facts = desk.folder / "facts.toml"
    facts.write_text(f"[facts]\nproject_gpu_hours = {boards * whole_days * 24}\n")

    shown = desk.show(reported, "--pue", 1.0, "--grid", desk.grid(400))
    text = desk.run("statement", reported, "--pue", 1.0, "--grid", desk.grid(400), "--facts", facts).replace("\u00a0", " ")
    (times,) = re.findall(r"The whole project used 368,640 GPU-hours, ([\d.]+) times those of these runs", text)

    assert kwh(shown) == approx(13_812.4, abs=1e-6)
    assert float(times) * kwh(shown) == approx(103_593, abs=1)
    assert kwh(desk.show(whole, "--pue", 1.0, "--grid", desk.grid(400))) == approx(103_593, abs=1)
