"""What adds up is shown so that it adds up, and what is missing from a sum is named."""

import json
import re

import pytest

from carbonreport.audit.database import connect
from carbonreport.audit.ledger import Ledger
from carbonreport.model.audit import RatedPower
from carbonreport.model.quantity import Quantity
from carbonreport.render.audit import compose
from carbonreport.render.audit_made import rated_sentence
from carbonreport.render.audit_sums import energy_scale, mass_scale
from carbonreport.testing.ledger import a_job, a_reading, us
from carbonreport.units import HOUR_US
from carbonreport.workflows.audit import Asked, audit
from carbonreport.workflows.audit_report import facts_of, summary, write_audit
from carbonreport.workflows.place import PlaceOptions

NOON = "2026-03-02T12:00Z"
NOW_S = us("2027-06-01T00:00Z") / 1e6
KWH = 3_600_000_000  # mJ
PLACE = '[place]\nzone = "DE"\npue = { value = 1.35, low = 1.3, high = 1.4, source = "meter" }\n'


@pytest.fixture
def report(tmp_path):
    """The audit of 2026 out of jobs and readings, with a site file."""

    def run(jobs, readings=(), site=""):
        ledger, con = Ledger(str(tmp_path / "ledger")), connect(threads=1)
        ledger.add(jobs, "jobs", con)
        ledger.add(list(readings), "meters", con)
        (tmp_path / "site.toml").write_text(PLACE + site)
        return audit(Asked(2026, ledger.url), PlaceOptions(site=str(tmp_path / "site.toml")), environ={}, now_s=NOW_S)

    return run


def lines(found):
    return {line.label: line for line in compose(facts_of(found)).lines}


def number(text):
    """A number as it is shown, as a whole number of its last digits, and how many decimal places it has."""
    digits = text.split("\u00a0")[0].replace(",", "")
    return int(digits.replace(".", "")), len(digits.partition(".")[2])


def busy_and_idle(joules_mj):
    readings = [a_reading(f"GPU-{i}", us(NOON) + h * HOUR_US, 1, joules_mj // (1 + 3 * i)) for i in range(2) for h in range(3)]
    return [a_job("1", NOON, 2)], readings


@pytest.mark.parametrize("joules_mj", [7_123_456, 3 * KWH // 7, 33 * KWH, 47_653 * KWH])
def test_the_parts_that_are_shown_add_up_to_the_total_that_is_shown(report, joules_mj):
    shown = lines(report(*busy_and_idle(joules_mj)))
    labels = ("IT energy", "of which jobs", "of which idle: metered boards that no job had", "Facility overhead", "Facility energy")
    values = [number(shown[label].value) for label in labels]

    assert len({shown[label].value.split("\u00a0")[1] for label in labels}) == len({place for _, place in values}) == 1
    (it, _), (jobs, _), (idle, _), (overhead, _), (facility, _) = values
    assert it >= 100 and abs(jobs + idle - it) <= 1 and abs(it + overhead - facility) <= 1


def test_a_row_of_the_months_adds_up(report):
    (months,) = [table for table in compose(facts_of(report(*busy_and_idle(3 * KWH // 7)))).tables if table.title == "By month"]
    (march,) = [dict(zip(months.columns, row, strict=True)) for row in months.rows if row[0] == "2026-03"]

    parts = [number(march[column])[0] for column in ("Measured", "Reported", "Estimated", "Overhead")]
    assert abs(sum(parts) - number(march["Facility"])[0]) <= 1


def test_a_scale_takes_more_digits_where_the_parts_would_not_add_up():
    parts = [1.4e6 * 3.6] * 5

    assert energy_scale([(sum(parts), parts)]).text(parts[0]) == "1.40\u00a0MWh".replace("MWh", "kWh")
    coarse = [100.4 * 3.6e6] * 9 + [3.6e6]
    assert energy_scale([(sum(coarse), coarse)], unit=("kWh", 3.6e6)).number(coarse[0]) == "100.4"


def test_a_part_below_the_last_digit_is_not_shown_as_nothing():
    scale = mass_scale(5_300_000.0, [5_299_999.0, 1.0], "gCO2e")

    assert (scale.text(5_300_000.0), scale.text(1.0), scale.text(0.0)) == ("5.30\u00a0tCO₂e", "under 0.01\u00a0tCO₂e", "0\u00a0tCO₂e")


def test_an_interval_stands_in_the_unit_of_its_value():
    scale = energy_scale([(3.6e6, [3.6e6])])

    assert scale.ends(Quantity(3.6e6, 0.95 * 3.6e6, 1.08 * 3.6e6, "J", "estimated", "")) == "0.95–1.08"
    assert scale.ends(Quantity(3.6e6, 0.04 * 3.6e6, 30 * 3.6e6, "J", "estimated", "")) == "0.04–30.00"
    assert scale.ends(Quantity(3.6e6, 3.6e6, 3.6e6, "J", "measured", "")) == ""


def test_the_overhead_of_estimated_energy_is_no_better_known_than_the_energy(report):
    assert lines(report([a_job("1", NOON, 200, gpu_model="h200")]))["Facility overhead"].known == "estimated"


def test_the_overhead_of_measured_energy_is_known_as_the_pue_is(report):
    assert lines(report([a_job("1", NOON, 1)], [a_reading("GPU-0", NOON, 1, KWH)]))["Facility overhead"].known == "reported"


def test_jobs_that_did_not_finish_are_named_with_the_rest_together(report):
    states = ["FAILED", "FAILED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "CANCELLED"]
    jobs = [a_job(str(i), NOON, 6 - i // 2, state=state, gpu_model="h200", hosts=f"n{i}") for i, state in enumerate(states)]

    found = report(jobs)

    (failed,) = [one for one in found.advice if one.slug == "failed"]
    shares = [int(share) for share in re.findall(r"(\d+) %, \d", failed.because)]
    assert "100 % of the energy of all jobs" in failed.because
    assert len(shares) == 4 and abs(sum(shares) - 100) <= 2
    assert re.search(r"\(failed \d+ %, 2 jobs; node failure \d+ %, 1 job; .*; others \d+ %, 2 jobs\)", failed.because)


def test_a_year_before_that_was_known_in_another_way_is_said_beside_it(report):
    before = [a_job(f"b{month}", f"2025-{month:02d}-02T12:00Z", 2, gpu_model="h200", hosts="n9") for month in (4, 5)]
    jobs, readings = busy_and_idle(KWH)

    text = summary(report([*before, *jobs], readings))

    assert re.search("Of the IT energy [0-9]+\u00a0% was measured this year, 0\u00a0% last year: a part of the change", text)


def test_a_year_before_that_was_known_in_the_same_way_needs_no_word(report):
    jobs = [a_job(f"{year}-{month}", f"{year}-{month:02d}-02T12:00Z", 2, gpu_model="h200") for year in (2025, 2026) for month in (4, 5)]

    found = report(jobs)

    assert found.before is not None and "the method's" not in summary(found)


def test_figures_that_were_unknown_in_both_years_say_so_plainly(report):
    jobs = [a_job(f"{year}-{month}", f"{year}-{month:02d}-02T12:00Z", 2, gpu_model="h200") for year in (2025, 2026) for month in (4, 5)]

    assert "unknown (last year unknown)" in summary(report(jobs))


# What the making of the boards and the rated powers are for

MAKING = '[embodied]\ndevices = { "NVIDIA H200" = { kg = 200, lifetime_years = 5, utilisation = 0.85, source = "a paper" }, "H2000" = { kg = 1, lifetime_years = 5, utilisation = 1, source = "a typo" } }\n'


def two_boards():
    return [a_job("1", NOON, 4, gpu_model="h200"), a_job("2", NOON, 3, gpu_model="a100", hosts="n2"), a_job("3", NOON, 2, gpus=0, hosts="")]


def test_the_making_says_which_boards_it_is_for_and_which_are_missing(report, tmp_path):
    found = report(two_boards(), site=MAKING)

    (path,) = write_audit(found, [tmp_path / "a.json"])
    held = json.loads(path.read_text())
    assert "for 4.00\u00a0GPU-hours of h200; nobody gave that of a100 (3.00\u00a0GPU-hours)" in summary(found)
    assert (held["embodied_for"], held["embodied_missing"]) == (
        [{"gpu_model": "h200", "gpu_hours": 4.0}],
        [{"gpu_model": "a100", "gpu_hours": 3.0}],
    )


def test_a_device_of_the_site_file_that_no_job_had_is_noted(report, tmp_path):
    found = report(two_boards(), site=MAKING)

    (path,) = write_audit(found, [tmp_path / "a.json"])
    assert [note["slug"] for note in json.loads(path.read_text())["notes"]].count("embodied-unused") == 1
    assert any("names H2000, and no job of 2026 had such a board" in text for _, text in compose(facts_of(found)).notes)


def test_a_server_is_made_for_all_its_boards(report):
    server = '[embodied]\ndevices = { server = { kg = 2000, lifetime_years = 5, utilisation = 0.85, per_gpus = 8, source = "a paper" } }\n'

    priced = report(two_boards(), site=server).priced

    assert {name for name, _ in priced.embodied_for} == {"h200", "a100"}
    assert (priced.embodied_missing, priced.embodied_unused) == ((), ())


def test_where_the_site_file_names_none_of_the_boards_both_are_said(report):
    made = lines(report([a_job("1", NOON, 4, gpu_model="a100")], site=MAKING))["Making of the boards (scope 3)"]

    assert (made.value, made.source) == (
        "not stated",
        "[embodied] in the site file names NVIDIA H200 and H2000, and no job had such a board",
    )


def test_a_rated_power_is_named_with_its_watts_and_board(report, tmp_path):
    found = report(two_boards())

    (path,) = write_audit(found, [tmp_path / "a.json"])
    powers = {power["gpu_model"]: power for power in json.loads(path.read_text())["rated_powers"]}
    method = " ".join(compose(facts_of(found)).method).replace("\u00a0", " ")
    assert re.search(r"a100: 400 W of NVIDIA A100-SXM4-[48]0GB, 65 % of it 260 W", method)
    assert "h200: 700 W of NVIDIA H200, 65 % of it 455 W" in method
    assert powers["a100"]["watts"] == pytest.approx(260.0) and powers["a100"]["energy_mj"] == 3 * 260 * KWH // 1000


def test_a_power_taken_from_several_boards_is_called_their_mean():
    power = RatedPower("x1", (("X1 SXM", 700.0), ("X1 NVL", 600.0)), 0.65, 422.5)

    assert rated_sentence([power]) == "Rated powers that were taken: x1: the mean of 700 W of X1 SXM and 600 W of X1 NVL, 65 % of it 422 W."


def test_energy_that_was_metered_rests_on_no_rated_power(report):
    assert "Rated powers" not in " ".join(compose(facts_of(report(*busy_and_idle(KWH)))).method)


# GPU time without coverage


def test_readings_without_a_job_speak_of_no_coverage(report):
    found = report([], [a_reading("GPU-a", NOON, 1, KWH)])

    text = summary(found)
    assert text.splitlines()[3].startswith("The ledger has no job of the year; with")
    assert "of the GPU-hours have" not in text and "100\u00a0% of the IT energy was measured" in text
    assert lines(found)["GPU-hours with measured or reported energy"].value == "no GPU-hours"


def test_jobs_without_boards_held_no_gpu_hours(report):
    found = report([a_job("1", NOON, 2, gpus=0, energy_mj=KWH, exclusive=True, method="reported")])

    assert summary(found).splitlines()[3].startswith("1 job held no GPU-hours; with")
    assert "of the GPU-hours have" not in summary(found)


def test_metered_energy_that_no_board_of_a_job_had_is_told_apart_from_coverage(report):
    text = summary(report([a_job("1", NOON, 2, gpu_model="h200", hosts="n1")], [a_reading("GPU-z", NOON, 9, KWH, host="n2")]))

    assert "None of the GPU-hours has measured or reported energy; what was measured or reported is of no job in the ledger; " in text
