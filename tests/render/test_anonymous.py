"""Double-blind review: a record full of secrets leaves none of them in any file, and the numbers stay."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from carbonreport.model.notes import SLUGS, Note
from carbonreport.model.pue import PueProfile
from carbonreport.model.run import Place, RunRecord
from carbonreport.model.statement import Facts
from carbonreport.plugins import names
from carbonreport.render.anonymous import pue_source
from carbonreport.render.engine import style_folder, styles, suffixes
from carbonreport.store import load
from carbonreport.store.writer import save
from carbonreport.testing import make_record
from carbonreport.workflows.charge import Charged, charge_records
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.statement import statement_of, statement_text, write_statement
from carbonreport.workflows.statement_words import Telling

SITE = "Zentrum Nebelstadt"
SECRETS = (
    "Zentrum",
    "Nebelstadt",
    "CAISO",
    "CISO",
    "US-CAL",
    "ERCO",
    "US-TEX",
    "ERCOT",
    "California",
    "Texas",
    "Pacific",
    " PST",
    "hostsecret",
    "idsecret",
    "filesecret",
    "namesecret",
    "uuidsecret",
    "gridsecret",
    "cpusecret",
    "Windwerk",
    "AWS",
    "us-west-2",
    "labsecret",
    "pathsecret",
    "locationsecret",
    "2026-01",
    "January 14",
    "14 January",
    "15 January",
    "18:20",
    "/home",
)
SITE_FILE = f"""
[place]
site = "{SITE}"
[contract]
grams_per_kwh = 10
share = 0.5
instrument = "purchase from Windwerk"
[embodied.devices."NVIDIA H200"]
kg = 200
lifetime_years = 5
utilisation = 0.85
source = "inventory of the labsecret"
"""
FACTS = Facts(
    model="tiny",
    storage=f"home of {SITE}",
    geographical_location="locationsecret valley",
    functional_unit="nebelstadt answers/step",
    uses_per_year=1e6,
)


def secret_run(number: int, zone: str, start: str, hours: float = 9.0) -> RunRecord:
    span = "nebelstadt answers/step"
    run = make_record(
        {"NVIDIA H200": 600.0, "cpusecret": 80.0},
        hours,
        kinds={"cpusecret": "cpu"},
        start=start,
        name=f"namesecret {number}",
        host=f"hostsecret{number}",
        run_id=f"idsecret{number}",
        zone=zone,
        time_zone="US/Pacific",
        spans={span: 0.5},
        items={span: 3e4},
    )
    ids = {"NVIDIA H200": f"GPU-uuidsecret-{number}", "cpusecret": "cpusecret"}
    pue = PueProfile(1.2, 1.1, 1.3, "reported", "AWS us-west-2, published for 2024")
    return replace(
        run,
        devices=tuple(replace(d, id=ids[d.id], source=f"meter of hostsecret{number}" if d.kind == "cpu" else "NVML") for d in run.devices),
        traces=tuple(replace(t, device=ids[t.device]) for t in run.traces),
        spans=tuple(replace(s, joules={ids[d]: j for d, j in s.joules.items()}) for s in run.spans),
        place=Place(zone, "option", "US/Pacific", pue, SITE),
        environment={"driver": "580.65", "cpu": f"a processor of {SITE}", "host": "hostsecret", "path": "/home/pathsecret"},
        notes=(
            Note("tracer-degraded", "reading /home/pathsecret failed on hostsecret"),
            Note("interrupted", "filesecret has no clean end"),
        ),
    )


def secret_charged(folder: Path, *, many: bool) -> Charged:
    (folder / "site.toml").write_text(SITE_FILE)
    runs = [secret_run(1, "US-CAL-CISO", "2026-01-14T18:20Z")]
    if many:
        inner = secret_run(3, "US-CAL-CISO", "2026-01-14T19:00Z", 1.0)
        runs += [secret_run(2, "US-TEX-ERCO", "2026-01-15T02:20Z"), replace(inner, parent="idsecret1", host="hostsecret1")]
    paths = [save(run, folder / f"filesecret{i}.jsonl") for i, run in enumerate(runs)]
    return charge_records([load(path) for path in paths], PlaceOptions(site=str(folder / "site.toml")), {})


@pytest.mark.parametrize("many", [False, True])
def test_no_file_of_an_anonymous_statement_holds_a_secret(tmp_path, many):
    charged, out = secret_charged(tmp_path, many=many), tmp_path / "out"
    telling = Telling(FACTS, is_anonymous=True)
    for style in styles():
        paths = [out / f"{style}{suffix}" for suffix in (*suffixes(style_folder(style)), ".json")]
        write_statement(charged, paths, style=style, bib=out / f"{style}.bib", force=True, telling=telling)

    texts = {path.name: path.read_text(encoding="utf-8") for path in out.iterdir()}
    assert len(texts) >= 7 * 4
    assert {"plain.html", "plain.json", "modelcard.yaml", "plain.bib"} <= set(texts)
    for name, text in texts.items():
        assert all(c.run.sha256 and c.run.sha256[:8] not in text for c in charged.runs)
        found = [secret for secret in SECRETS if secret.casefold() in text.casefold()]
        assert found == [], f"{name}: {found}"


def test_the_secrets_are_there_without_anonymity(tmp_path):
    charged = secret_charged(tmp_path, many=True)
    text = statement_text(charged, "json", style="plain") + statement_text(charged, "md", style="plain")

    assert [
        secret
        for secret in ("Nebelstadt", "CISO", "namesecret", "uuidsecret", "Windwerk", "AWS", "2026-01", "pathsecret")
        if secret not in text
    ] == []


def test_country_month_and_board_stay(tmp_path):
    words = statement_of(secret_charged(tmp_path, many=False), Telling(is_anonymous=True))
    text = " ".join(sentence.text for sentence in words.paragraph).replace("\u00a0", " ")

    assert "Training “training 1” used one NVIDIA H200 for 9.00 h, in January 2026 in the United States." in text or (
        "the interrupted training “training 1” used one NVIDIA H200 for 9.00 h, in January 2026 in the United States." in text
    )
    assert "(published by the operator)" in text
    assert "By contract (given by the author)" in text


def test_a_country_that_is_one_zone_stays(charged):
    words = statement_of(charged(make_record({"GPU": 300.0}, 3), zone="DE", pue="1.2"), Telling(is_anonymous=True))

    assert "in Germany" in words.paragraph[0].text


@pytest.mark.parametrize("zone", ["NO-NO1", "SE-SE3", "DK-DK1", "IT-NO", "JP-TK", "IN-WE", "AU-NSW", "CA-ON", "CL-SEN", "BR-CS"])
def test_every_zone_inside_a_country_becomes_the_country(charged, zone):
    result = charged(make_record({"GPU": 300.0}, 3), zone=zone, pue="1.2")
    text = statement_text(result, "md", style="plain", telling=Telling(is_anonymous=True))

    assert zone not in text
    assert "place that is not known" not in text


def test_a_file_of_intensities_is_not_named(charged, tmp_path):
    (tmp_path / "gridsecret.csv").write_text("time,g_per_kwh\n2020-01-01T00:00Z,400\n2030-01-01T00:00Z,400\n")
    result = charged(make_record({"GPU": 300.0}, 3), grid=str(tmp_path / "gridsecret.csv"), pue="1.2")
    texts = [statement_text(result, name, style="plain", telling=Telling(is_anonymous=True)) for name in ("md", "tex", "json")]

    assert all("gridsecret" not in text and "a file of intensities" in text for text in texts)


@pytest.mark.parametrize(
    "source", ["UK Carbon Intensity API of NESO (CC BY 4.0), CO2 alone", "Energy-Charts of Fraunhofer ISE (CC BY 4.0)"]
)
def test_an_online_provider_is_neither_called_a_file_nor_by_the_country_that_it_knows(charged, source):
    result = charged(make_record({"GPU": 300.0}, 3), zone="SE", pue="1.2")
    run = result.runs[0]
    online = replace(result, runs=(replace(run, grid=replace(run.grid, source=source)),))
    texts = [statement_text(online, name, style="plain", telling=Telling(is_anonymous=True)) for name in ("md", "tex", "json")]

    assert all("an online provider of intensities" in text and "a file of intensities" not in text for text in texts)
    assert not any(word in text for text in texts for word in ("UK", "NESO", "Fraunhofer", "Energy-Charts"))


def test_the_numbers_are_those_of_the_open_statement(tmp_path):
    charged = secret_charged(tmp_path, many=True)
    opened, blind = (
        json.loads(statement_text(charged, "json", style="plain", telling=Telling(is_anonymous=is_blind))) for is_blind in (False, True)
    )

    for name in ("it_joules", "facility_joules", "grams", "market_grams", "pue"):
        assert [blind[name][end] for end in ("value", "low", "high")] == [opened[name][end] for end in ("value", "low", "high")]
    assert [g["grams_per_kwh"]["value"] for g in blind["grids"]] == [g["grams_per_kwh"]["value"] for g in opened["grids"]]
    assert [h["grams"] for h in blind["hours"]] == [h["grams"] for h in opened["hours"]]
    assert [s["it_joules"] for s in blind["spans"]] == [s["it_joules"] for s in opened["spans"]]


def test_hours_of_json_are_counted_from_the_first(tmp_path):
    hours = json.loads(statement_text(secret_charged(tmp_path, many=False), "json", style="plain", telling=Telling(is_anonymous=True)))[
        "hours"
    ]

    assert [hour["hour"] for hour in hours] == list(range(len(hours)))
    assert "start" not in hours[0]


def test_a_board_stays_though_its_maker_is_in_the_name_of_the_site(charged, tmp_path):
    (tmp_path / "site.toml").write_text('[place]\nsite = "NVIDIA corner"\n')
    result = charged(make_record({"NVIDIA H200": 300.0}, 3), site=str(tmp_path / "site.toml"), zone="DE", pue="1.2")
    text = statement_text(result, "md", style="plain", telling=Telling(is_anonymous=True))

    assert "one NVIDIA H200" in text.replace("\u00a0", " ")
    assert "corner" not in text


def test_runs_of_one_name_keep_one_number(charged):
    runs = [make_record({"GPU": 300.0}, 1, name=name, start=f"2026-01-1{i}T00:00Z") for i, name in enumerate(["b", "a", "b"])]
    words = statement_of(charged(*runs), Telling(is_anonymous=True))

    assert [(row.name, row.runs) for row in words.runs] == [("training 1", "2"), ("training 2", "1")]


def test_two_zones_of_one_country_are_one_place_in_words(tmp_path):
    words = statement_of(secret_charged(tmp_path, many=True), Telling(is_anonymous=True))
    text = " ".join(sentence.text for sentence in words.paragraph)

    assert "United States and the United States" not in text
    assert text.count("United States") <= 2


def test_notes_say_what_they_mean_and_not_what_happened_where(tmp_path):
    for slug, text in statement_of(secret_charged(tmp_path, many=False), Telling(is_anonymous=True)).notes:
        assert text == SLUGS[slug]


@pytest.mark.parametrize(
    ("source", "origin", "said"),
    [
        ("class aws: AWS global average 2025", "assumed", "published by the operator"),
        ("class datacentre: Uptime Institute survey 2025, unknown data centre", "assumed", "survey of data centres, unknown data centre"),
        ("given by the author", "reported", "given by the author"),
        ("site file mycluster.toml", "reported", "given by the author"),
        ("facility meter of Nebelstadt", "reported", "published by the operator"),
    ],
)
def test_the_source_of_a_pue_names_no_operator(source, origin, said):
    assert pue_source(source, origin) == said


def test_every_format_that_a_style_can_have_is_tried_above():
    assert set(names("format")) <= {"html", "json", "md", "pdf", "tex", "yaml"}


def test_dates_over_two_months_are_told_by_their_months(charged):
    runs = [make_record({"GPU": 300.0}, 1, start=start, name=start) for start in ("2026-01-31T20:00Z", "2026-03-01T00:00Z")]
    text = statement_of(charged(*runs), Telling(is_anonymous=True)).paragraph[0].text

    assert "between January 2026 and March 2026" in text
    assert not re.search(r"\d\d:\d\d", text)
