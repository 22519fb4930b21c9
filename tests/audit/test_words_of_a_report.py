"""Words of the report agree with their numbers, and say what was done."""

import re

import pytest

from carbonreport.audit.advice import advise
from carbonreport.audit.database import connect
from carbonreport.audit.ledger import Ledger
from carbonreport.audit.sacct import Taken
from carbonreport.model.audit import agreed, row_reason
from carbonreport.render.audit import compose
from carbonreport.testing.ledger import a_job, a_reading, us
from carbonreport.units import HOUR_US
from carbonreport.workflows.audit import Asked, audit
from carbonreport.workflows.audit_report import facts_of, summary
from carbonreport.workflows.place import PlaceOptions

NOON = "2026-03-02T12:00Z"
NOW_S = us("2027-06-01T00:00Z") / 1e6
HALF_KWH = 1_800_000_000  # mJ: 500 W for an hour
SHARED, IDLE = "Where several jobs had a host in the same hour", "taken as idle at the idle power that this lab measured"


@pytest.fixture
def report(tmp_path):
    def run(jobs, readings=()):
        ledger, con = Ledger(str(tmp_path / "ledger")), connect(threads=1)
        ledger.add(jobs, "jobs", con)
        ledger.add(list(readings), "meters", con)
        return audit(Asked(2026, ledger.url), PlaceOptions(zone="DE", pue="1.2"), environ={}, now_s=NOW_S)

    return run


def method(found):
    return " ".join(compose(facts_of(found)).method)


@pytest.mark.parametrize(("count", "words"), [(1, "1 job that was [sic]"), (2, "2 jobs that were [sic]"), (0, "0 jobs that were [sic]")])
def test_words_agree_with_their_number(count, words):
    assert f"{count} {agreed('[job that was|jobs that were] [sic]', count)}" == words


def test_one_of_anything_is_written_in_the_singular(report):
    job = a_job("1", NOON, 2, suspended_us=HOUR_US, gpu_model="h200", state="FAILED")

    found = report([job], [a_reading("GPU-a", NOON, 1, None)])

    text = summary(found)
    assert text.count("1 job held") == 1 and "failed 100\u00a0%, 1 job)" in text
    assert "1 job that was suspended for a part of its time" in text
    assert "1 reading of a device without an energy; it is unknown, not 0" in text
    assert not re.search(r"(?<![\d.,])1 (?:jobs|rows|readings|boards|hours|records|lines) ", text)


@pytest.mark.parametrize("count", [1, 2])
def test_no_finding_keeps_the_marks_of_its_two_forms(audited, count):
    jobs = [
        a_job(str(i), NOON, 1, hosts=f"n{i}", suspended_us=None, gpu_model="1g.24gb", energy_mj=7, exclusive=False) for i in range(count)
    ]
    lone = [a_job(f"c{i}", NOON, 1, gpus=0, hosts="") for i in range(count)]
    readings = [a_reading(f"GPU-{i}", us(NOON) + j, 1, 9_000, host="n0") for i in range(count) for j in range(2)]

    year = audited([*jobs, *lone], readings)

    assert len(year.findings) >= 5
    assert not any("|" in finding.text for finding in year.findings)


def test_a_file_says_how_many_rows_in_the_right_number():
    assert Taken(1, (("line is torn", 1),)).in_words() == "1 row used; 1 line is torn"
    assert Taken(2).in_words("rows kept in lab") == "2 rows kept in lab"


def test_advice_counts_one_job_as_one(audited):
    jobs = [a_job("1", NOON, 1, state="FAILED", gpu_model="h200"), a_job("2", NOON, 1, state="TIMEOUT", gpu_model="h200", hosts="n2")]

    (failed,) = [advice for advice in advise(audited(jobs, [], watts=100.0), {}, [], None) if advice.slug == "failed"]

    assert failed.because.count("1 job;") == failed.because.count("1 job)") == 1


def test_intervals_of_the_summary_stand_in_one_kind_of_brackets(report):
    text = summary(report([a_job("1", NOON, 200, gpu_model="h200")]))

    assert re.search(r"\[[\d.,]+, [\d.,]+\]", text)
    assert not re.search(r"\[[\d.,]+–[\d.,]+\]", text)


def test_a_job_beside_idle_boards_shares_its_host_with_nobody(report):
    quiet = [a_reading(f"GPU-{i}", "2026-03-02T03:00Z", 1, HALF_KWH // 10) for i in range(2)]
    busy = [a_reading("GPU-0", NOON, 1, HALF_KWH), a_reading("GPU-1", NOON, 1, HALF_KWH // 10)]

    found = report([a_job("1", NOON, 1)], quiet + busy)

    assert found.priced.year.whole.split_mj == 0
    assert SHARED not in method(found)
    assert IDLE in method(found)


def test_jobs_that_had_a_host_in_the_same_hour_shared_it(report):
    jobs = [a_job("1", NOON, 0.5), a_job("2", us(NOON) + HOUR_US // 2, 0.5)]

    found = report(jobs, [a_reading("GPU-0", NOON, 1, HALF_KWH)])

    assert found.priced.year.whole.split_mj == HALF_KWH
    assert SHARED in method(found)
    assert IDLE not in method(found)


@pytest.mark.parametrize(
    ("count", "reason", "words"),
    [
        (3, "no start, or neither an end nor a length", "3 without a start, or neither an end nor a length"),
        (1, "the same job again", "1 that repeats a job"),
        (2, "the same job again", "2 that repeat a job"),
        (1, "its id is cut by the fixed width", "1 whose id is cut by the fixed width"),
        (2, "lines are torn", "2 lines are torn"),
    ],
)
def test_rows_that_were_not_used_are_told_in_a_phrase(count, reason, words):
    assert row_reason(count, reason) == words


def test_the_first_brackets_are_explained_where_they_stand(report):
    lead = compose(facts_of(report([a_job("1", NOON, 200, gpu_model="h200")]))).lead

    assert "[" in lead[0] and "are 90\u00a0% intervals" in lead[0]


def test_a_sentence_on_a_small_coverage_begins_with_a_capital(report):
    jobs = [a_job("1", NOON, 1), a_job("2", NOON, 2000, gpu_model="h200", hosts="n2")]

    assert "\nUnder 1\u00a0% of the GPU-hours have measured or reported energy" in summary(
        report(jobs, [a_reading("GPU-a", NOON, 1, HALF_KWH)])
    )
