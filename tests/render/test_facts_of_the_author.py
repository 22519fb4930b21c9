"""Facts that no record knows: read, checked, overridden, and named where nobody gave them."""

from pathlib import Path

import pytest

from carbonreport.errors import SiteError
from carbonreport.model.quantity import Quantity
from carbonreport.model.statement import Facts, Statement
from carbonreport.render.forms import mwh_in_words
from carbonreport.site import read_site
from carbonreport.testing import make_record
from carbonreport.units import JOULES_PER_KWH
from carbonreport.workflows.charge import charge_records
from carbonreport.workflows.facts import facts_for, read_facts
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.statement import statement_of, statement_text
from carbonreport.workflows.statement_words import Telling


def toml(folder: Path, text: str, name: str = "facts.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def told(charged, *runs, **facts: object) -> Statement:
    return statement_of(charged(*runs), Telling(Facts(**facts)))  # type: ignore[arg-type]


def plain_spaces(text: str) -> str:
    return text.replace("\u00a0", " ")


def paragraph(statement: Statement) -> str:
    return plain_spaces(" ".join(sentence.text for sentence in statement.paragraph))


def test_facts_of_the_site_file_are_typed(tmp_path):
    site = read_site(toml(tmp_path, '[facts]\nparameters = 1.3e9\nruns = 19\nmodel = "tiny"\n', "site.toml"))

    assert site.facts == Facts(parameters=1.3e9, runs=19, model="tiny")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("paramters = 1\n", "paramters: unknown fact; nearest: parameters"),
        ("zzz = 1\n", "zzz: unknown fact; there are model, parameters"),
        ('parameters = "many"\n', ": parameters: must be a number, not text"),
        ("runs = 1.5\n", ": runs: must be a whole number, not one with a fraction"),
        ("runs = 0\n", "runs: runs is 0; it must be above 0"),
        ("flop = nan\n", "flop: flop is nan"),
        ('storage = " "\n', "storage: storage is empty"),
        ("memory_gb = true\n", ": memory_gb: must be a number, not true or false"),
        ("memory_gb = \n", "Invalid value"),
    ],
)
def test_a_wrong_fact_names_file_and_key(tmp_path, text, says):
    path = toml(tmp_path, text)

    with pytest.raises(SiteError) as failed:
        read_facts(path)
    assert str(path) in str(failed.value)
    assert says in str(failed.value)

    site = toml(tmp_path, f"[facts]\n{text}", "site.toml")
    with pytest.raises(SiteError, match="site.toml"):
        read_site(site)


def test_a_missing_file_of_facts_is_named(tmp_path):
    with pytest.raises(SiteError, match=r"cannot read the file of facts .*none.toml: No such file"):
        read_facts(tmp_path / "none.toml")


def test_a_file_of_facts_overrides_those_of_the_site_file_key_by_key(tmp_path):
    site = toml(tmp_path, "[facts]\nparameters = 1e9\nruns = 2\n", "site.toml")
    charged = charge_records([make_record({"GPU": 300.0}, 1)], PlaceOptions(zone="DE", site=str(site)), {})

    for heading in ("", "[facts]\n"):
        facts = facts_for(charged, toml(tmp_path, f"{heading}parameters = 7e9\n"))
        assert facts == Facts(parameters=7e9, runs=2)


@pytest.mark.parametrize("text", ["project_gpu_hours = 3\n", "runs = 1\n"])
def test_a_project_smaller_than_its_runs_is_refused(charged, tmp_path, text):
    result = charged(make_record({"GPU": 300.0}, 10, name="a"), make_record({"GPU": 300.0}, 10, name="b"))

    with pytest.raises(SiteError, match="less than the .* of the whole project"):
        facts_for(result, toml(tmp_path, text))


def test_without_facts_the_paragraph_says_nothing_of_the_project(charged):
    assert "project" not in paragraph(told(charged, make_record({"GPU": 300.0}, 10)))


def test_the_project_beside_the_reported_runs_is_said_once(charged):
    text = paragraph(told(charged, make_record({"GPU": 300.0}, 10), project_gpu_hours=56.0, runs=19))

    assert "The whole project in 19 runs used 56 GPU-hours, 5.6 times those of these runs." in text
    assert text.count("project") == 1


def test_a_project_beside_runs_without_a_gpu_has_no_multiple(charged):
    text = paragraph(told(charged, make_record({"cpu": 90.0}, 10, kinds={"cpu": "cpu"}), project_gpu_hours=56.0))

    assert "The whole project used 56 GPU-hours." in text


def test_the_multiple_by_kinds_and_that_of_the_project_stand_in_one_sentence(charged):
    runs = [make_record({"GPU": 300.0}, 3, name="a"), make_record({"GPU": 300.0}, 1, name="b", kind="failed")]

    assert plain_spaces(told(charged, *runs, project_gpu_hours=12.0).details.project) == (
        "Failed runs took 25 % of the energy stated here, which is 1.3 times that of the other runs; "
        "the whole project used 12 GPU-hours, 3.0 times those of these runs."
    )


def test_what_nobody_gave_is_named_as_not_given(charged):
    details = told(charged, make_record({"GPU": 300.0}, 3)).details

    assert details.parameters == "Number of parameters: not given."
    assert details.memory == "Memory of a worker: not given; storage: not given."
    assert "cluster or a cloud: not given" in details.workers
    assert ("Training compute", "not given") in details.gpai_rows
    assert details.adoption == ""


def test_what_was_given_is_printed_as_the_author_would_say_it(charged):
    details = told(charged, make_record({"GPU": 300.0}, 3), parameters=1.3e9, memory_gb=141, storage="2 TB NVMe", model="tiny", flop=2.4e21)

    assert plain_spaces(details.details.parameters) == "Number of parameters of tiny: 1.3 billion."
    assert plain_spaces(details.details.memory) == "Memory of a worker: 141 GB; storage: 2 TB NVMe."
    assert ("Training compute", "2.4e21 FLOP") in [(a, plain_spaces(b)) for a, b in details.details.gpai_rows]


def test_a_model_card_gives_grams_to_the_digit(charged):
    # 1.2345 kg at 400 g/kWh and a PUE of 1.2
    run = make_record({"GPU": 1234.5 / 400 / 1.2 * 1000.0}, 1)

    assert told(charged, run).details.card.grams == "1234.5"
    assert "emissions: 1234.5\n" in statement_text(charged(run), "yaml", style="modelcard")


@pytest.mark.parametrize("half_width", [0.0, 0.03, 0.3])
def test_the_eu_form_has_two_significant_digits_of_megawatt_hours_at_least(half_width):
    joules = 1289.4e3 * JOULES_PER_KWH
    quantity = Quantity(joules, joules * (1 - half_width), joules * (1 + half_width), "J", "measured", "")

    assert plain_spaces(mwh_in_words(quantity)) == ("1,290 MWh" if half_width < 0.05 else "1,300 MWh")


def test_the_eu_form_keeps_inference_apart(charged):
    train, serve = make_record({"GPU": 1000.0}, 10, name="a"), make_record({"GPU": 1000.0}, 5, name="b", kind="inference")

    rows = dict(told(charged, train, serve).details.gpai_rows)

    assert plain_spaces(rows["Training energy, IT equipment"]) == "0.0100 MWh"
    assert plain_spaces(rows["Training energy, whole facility"]) == "0.012 MWh"
    assert plain_spaces(rows["Inference, apart"]).startswith("0.00500 MWh of IT equipment, 0.0060 MWh of the facility")
    assert 80 <= len(rows["Method"].split()) <= 130


def test_the_eu_form_of_inference_alone_has_no_energy_of_training(charged):
    rows = dict(told(charged, make_record({"GPU": 1000.0}, 5, kind="inference")).details.gpai_rows)

    assert rows["Training energy"] == "no training run among the records"


def sci(statement: Statement) -> dict[str, str]:
    return {label: plain_spaces(text) for label, text in statement.details.sci_rows}


def test_sci_is_per_run_where_no_functional_unit_is_given_and_says_so(charged):
    rows = sci(told(charged, *(make_record({"GPU": 1000.0}, 5, start=f"2026-01-1{i}T00:00Z") for i in range(2))))

    assert rows["Score"].startswith("SCI = ((E × I) + M) per R = 2.4 kgCO₂e")
    assert rows["Score"].endswith(" per run")
    assert rows["Functional unit R"].startswith("one run, since no functional unit is given; 2 in all")
    assert "left out: no figure for the hardware given" in rows["M, embodied"]


def test_sci_counts_the_items_of_the_span_that_the_unit_names(charged):
    run = make_record({"GPU": 1000.0}, 5, spans={"train": 0.5, "answer": 0.4}, items={"train": 10.0, "answer": 1000.0})

    named, unnamed = (sci(told(charged, run, functional_unit=unit)) for unit in ("answer", "query"))

    assert "= 2.4 gCO₂e [" in named["Score"]
    assert named["Score"].endswith("per item of “answer”")
    assert "“query” cannot be counted: items were counted, but in no one span of that name" in unnamed["Functional unit R"]


def test_sci_never_takes_the_items_of_a_span_of_another_name(charged):
    rows = sci(told(charged, make_record({"GPU": 1000.0}, 5, spans={"train": 0.4}, items={"train": 1000.0}), functional_unit="answer"))

    assert rows["Score"].endswith("per run")
    assert "“answer” cannot be counted" in rows["Functional unit R"]


def test_sci_knows_a_span_by_the_last_part_of_its_path(charged):
    run = make_record({"GPU": 1000.0}, 5, spans={"serve/answer": 0.4}, items={"serve/answer": 1000.0})

    assert sci(told(charged, run, functional_unit="answer"))["Score"].endswith("per item of “serve/answer”")


def test_sci_adds_what_making_the_hardware_emitted(tmp_path):
    site = toml(tmp_path, '[embodied.devices.GPU]\nkg = 200000\nlifetime_years = 5\nutilisation = 0.85\nsource = "here"\n', "site.toml")
    run = make_record({"GPU": 1000.0}, 10)

    with_m, without = (
        sci(statement_of(charge_records([run], PlaceOptions(zone="DE", pue="1.2", site=given), {}))) for given in (str(site), None)
    )

    assert "gCO₂e" in with_m["M, embodied"]
    assert with_m["Score"] != without["Score"]


def test_a_year_of_use_is_that_of_one_item_many_times(charged):
    run = make_record({"GPU": 1000.0}, 1, spans={"answer": 0.5}, items={"answer": 1000.0})

    text = plain_spaces(told(charged, run, functional_unit="answer", uses_per_year=1e6).details.adoption)

    assert text.startswith("At 1 million uses a year, each of the energy of one item of “answer”, use takes 600 kWh [")


def test_items_of_one_span_are_counted_over_all_runs(charged):
    runs = [make_record({"GPU": 1000.0}, 5, name=name, spans={"answer": 0.5}, items={"answer": 500.0}) for name in ("a", "b")]

    rows = sci(told(charged, *runs, functional_unit="answer"))

    assert rows["Functional unit R"].startswith("one item of “answer”; 1,000 in all")
    assert "= 4.8 gCO₂e [" in rows["Score"]
