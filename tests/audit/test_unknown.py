"""Energy that nobody knows is never 0, wherever the report writes it; and what is known beside it stays."""

import csv
import json

import pytest

from carbonreport.audit.database import connect
from carbonreport.audit.ledger import Ledger
from carbonreport.render.audit import compose
from carbonreport.render.plots_audit import draw_audit
from carbonreport.testing.ledger import a_job, a_reading, us
from carbonreport.units import HOUR_US
from carbonreport.workflows.audit import Asked, audit
from carbonreport.workflows.audit_report import facts_of, summary, write_audit
from carbonreport.workflows.place import PlaceOptions

NOW_S = us("2027-06-01T00:00Z") / 1e6
PLACE = PlaceOptions(zone="DE", pue="1.2")
HALF_KWH = 1_800_000_000  # mJ: 500 W for an hour


@pytest.fixture
def report(tmp_path):
    """The audit of 2026 out of jobs and readings."""

    def run(jobs, readings=(), place=PLACE, **others):
        ledger, con = Ledger(str(tmp_path / "ledger")), connect(threads=1)
        ledger.add(jobs, "jobs", con)
        ledger.add(list(readings), "meters", con)
        return audit(Asked(2026, ledger.url, **others), place, environ={}, now_s=NOW_S)

    return run


def three_months():
    """March is metered, in April a slice ran and in May boards that nobody names."""
    jobs = [
        a_job("1", "2026-03-02T12:00Z", 2, gpu_model="h200", project="known", partition="gpu"),
        a_job("2", "2026-04-02T12:00Z", 7, gpu_model="a100_1g.5gb", hosts="n2", project="slices", partition="mig"),
        a_job("3", "2026-05-02T12:00Z", 5, gpus=2, hosts="n3", project="unnamed", partition="big"),
    ]
    return jobs, [a_reading("GPU-a", us("2026-03-02T12:00Z") + h * HOUR_US, 1, HALF_KWH) for h in range(4)]


def table(found, title):
    return next(table for table in compose(facts_of(found)).tables if table.title == title)


def row(found, title, name):
    (found_row,) = [dict(zip(table(found, title).columns, row, strict=True)) for row in table(found, title).rows if row[0] == name]
    return found_row


def test_a_month_and_a_group_without_a_known_energy_are_unknown_on_the_page(report):
    found = report(*three_months())

    month, project = row(found, "By month", "2026-05"), row(found, "By project", "unnamed")
    assert (month["Facility"], month["Location-based"], month["Measured"]) == ("unknown", "unknown", "")
    assert (project["IT energy"], project["Share"], project["Facility"], project["Location-based"]) == ("unknown",) * 4
    assert project["GPU-hours without energy"] == "10.0"
    assert row(found, "By month", "2026-03")["Facility"] == "2.40"


def test_a_month_without_a_job_and_without_a_reading_is_empty(report):
    found = report(*three_months())

    assert set(table(found, "By month").rows[7][1:]) == {""}
    assert "Of an empty month the ledger has no energy and no job" in table(found, "By month").caption


def test_unknown_energies_are_empty_cells_and_nulls(report, tmp_path):
    rows, held = write_audit(report(*three_months()), [tmp_path / "a.csv", tmp_path / "a.json"])
    cells = list(csv.DictReader(rows.read_text().splitlines()[1:]))
    held = json.loads(held.read_text())

    of = {(cell["dimension"], cell["name"]): cell for cell in cells}
    energies = ("measured_kwh", "reported_kwh", "estimated_kwh", "it_kwh", "facility_kwh", "location_kg")
    for key in (("month", "2026-04"), ("project", "slices"), ("partition", "big"), ("month, everything", "2026-05")):
        assert {of[key][name] for name in energies} == {""}, key
    assert float(of["project", "known"]["it_kwh"]) == pytest.approx(1.0)
    groups = {group["name"]: group for group in held["groups"]["project"]}
    assert [groups[name]["it_mj"] for name in ("known", "slices", "unnamed")] == [2 * HALF_KWH, None, None]
    assert [groups["slices"][name] for name in ("facility_joules", "grams", "measured_mj")] == [None, None, None]
    assert [month["it_mj"] for month in held["months"]][2:5] == [4 * HALF_KWH, None, None]


def test_a_part_that_is_known_stands_though_another_is_not(report):
    jobs, readings = three_months()
    found = report([*jobs, a_job("4", "2026-03-05T12:00Z", 3, hosts="n3", project="known")], readings)

    assert row(found, "By project", "known")["IT energy"] == "1.00"
    assert row(found, "By project", "known")["GPU-hours without energy"] == "3.00"
    assert row(found, "By month", "2026-03")["Facility"] == "2.40"


def test_the_chart_has_no_bar_for_an_unknown_month_and_says_why(report):
    pytest.importorskip("matplotlib")

    pictures = {picture.section: picture for picture in draw_audit(facts_of(report(*three_months())))}

    assert "In Apr and May jobs ran, and nobody knows their energy: no bar." in pictures["months"].caption
    assert "Apr unknown; May unknown; Jun nothing" in pictures["months"].svg
    assert "2 projects of which no energy is known have no bar" in pictures["projects"].caption


def test_boards_that_are_known_to_have_drawn_nothing_are_not_unknown(report):
    jobs, readings = three_months()
    off = [a_reading("GPU-b", "2026-06-02T12:00Z", 1, 0, host="n4")]

    found = report([*jobs, a_job("4", "2026-06-02T12:00Z", 1, hosts="n4", project="off")], [*readings, *off])

    assert row(found, "By project", "off")["IT energy"] == "0"
    assert "2026-06" not in found.priced.year.unknown_months


def test_idle_energy_is_unknown_where_no_board_was_metered_and_nobody_speaks_of_idle_boards(report, tmp_path):
    found = report([a_job("1", "2026-03-02T12:00Z", 2, gpu_model="h200"), a_job("2", "2026-04-02T12:00Z", 2, gpu_model="h200")])

    idle = next(line for line in compose(facts_of(found)).lines if "idle" in line.label)
    assert (idle.value, idle.known) == ("unknown", "")
    assert "idle boards" not in summary(found)
    (held,) = write_audit(found, [tmp_path / "a.json"])
    assert json.loads(held.read_text())["idle"]["it_mj"] is None


def test_where_nothing_is_known_the_totals_are_null(report, tmp_path):
    found = report([a_job("1", "2026-03-02T12:00Z", 2)])

    (path,) = write_audit(found, [tmp_path / "a.json"])
    held = json.loads(path.read_text())
    assert [held[name] for name in ("it_joules", "facility_joules", "location_based", "cost")] == [None] * 4
    assert held["jobs"]["it_mj"] is None


def test_the_reasons_stand_apart_with_the_place_and_the_way_out(report):
    found = report(*three_months())

    assert (
        "11.0 GPU-hours have no energy at all, not even an estimate; they are missing, not zero. "
        "Of them 10.0 in partition big are of boards that sacct does not name: --gpu NAME names them; "
        "1.00 in partition mig are of slices of boards (MIG), of which no power is known: meter their boards."
    ) in summary(found)


def test_a_board_of_which_no_power_is_known_is_named(report):
    assert "are of boards of which no power is known (oddity): meter them" in summary(
        report([a_job("1", "2026-03-02T12:00Z", 2, gpu_model="oddity"), a_job("2", "2026-03-02T12:00Z", 2, gpu_model="h200", hosts="n2")])
    )


def test_jobs_without_a_gpu_stand_apart_from_boards_that_nobody_names(report):
    node = a_job("5", "2026-06-02T12:00Z", 9, gpus=0, hosts="c1", energy_mj=9 * HALF_KWH, exclusive=True, partition="cpu")
    jobs, readings = three_months()

    found = report([*jobs, node], readings)

    assert row(found, "By GPU model", "no GPU")["IT energy"] == "4.50"
    assert row(found, "By GPU model", "not said")["IT energy"] == "unknown"


# Last year


def a_job_a_month(year, months):
    return [a_job(f"{year}-{month}", f"{year}-{month:02d}-02T12:00Z", 2, gpu_model="h200", hosts=f"n{month}") for month in months]


def test_a_job_over_new_year_is_no_last_year_to_compare_with_and_that_is_said(report):
    over = a_job("1", "2025-12-31T20:00Z", 10, gpu_model="h200")

    found = report([over, *a_job_a_month(2026, [3])])

    assert (found.before, found.months_before) == (None, 0)
    assert not any(line.before for line in compose(facts_of(found)).lines)
    assert "Last year does not stand beside" in " ".join(compose(facts_of(found)).method)


@pytest.mark.parametrize(("months", "stands"), [([12], False), ([11, 12], True)])
def test_last_year_stands_beside_from_two_of_its_months_on(report, months, stands):
    found = report([*a_job_a_month(2025, months), *a_job_a_month(2026, [3])])

    assert (found.before is not None, found.months_before) == (stands, len(months))
    assert ("as far as the ledger has it" in " ".join(compose(facts_of(found)).method)) is stands


def test_a_whole_last_year_needs_no_word(report):
    found = report([*a_job_a_month(2025, range(1, 13)), *a_job_a_month(2026, [3])])

    assert found.months_before == 12
    assert "Last year" not in " ".join(compose(facts_of(found)).method)


def test_readings_make_a_last_year_too(report):
    readings = [a_reading("GPU-a", f"2025-{month:02d}-02T12:00Z", 1, HALF_KWH) for month in (5, 6)]

    assert report(a_job_a_month(2026, [3]), readings).months_before == 2


def test_last_years_unknown_energy_is_unknown_too(report):
    unnamed = [a_job(f"x{month}", f"2025-{month:02d}-03T12:00Z", 2, hosts="n9", project="unnamed") for month in (4, 5)]
    jobs = [*unnamed, *a_job_a_month(2025, [7, 8]), *three_months()[0]]

    found = report(jobs, three_months()[1])

    idle = next(line for line in compose(facts_of(found)).lines if "idle" in line.label)
    assert idle.before == "unknown"
    assert row(found, "By project", "unnamed")["IT, last year"] == "unknown"
    assert row(found, "By month", "2026-04")["Facility, last year"] == "unknown"
    assert row(found, "By month", "2026-10")["Facility, last year"] == ""
