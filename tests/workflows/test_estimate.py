"""Runs that nobody measured: power times hours, and said to be that."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from carbonreport.boards import find_board
from carbonreport.errors import BadTime, CarbonreportError
from carbonreport.model.run import Place, RunRecord
from carbonreport.store import load
from carbonreport.workflows.charge import Charged, charge_records
from carbonreport.workflows.estimate import Job, estimate, estimated_run, start_of
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.statement import statement_of

START = "2026-01-14T18:20+01:00"
KWH = 3.6e6


def run_of(gpu: str = "A100-SXM4-80GB", count: int = 4, hours: float = 10.0, mean_watts: float | None = None) -> RunRecord:
    place = Place("DE", "option", "Europe/Berlin")
    return estimated_run(Job(gpu, count, hours, mean_watts, START), name="x", kind="training", place=place, run_id="r")


def charged(run: RunRecord) -> Charged:
    return charge_records([run], PlaceOptions(pue="1.2"), environ={})


def slugs(run: RunRecord) -> list[str]:
    return [note.slug for note in run.notes]


def test_without_a_power_a_typical_share_of_the_rated_one_is_taken() -> None:
    run = run_of()

    energy = charged(run).footprint.it_joules

    assert slugs(run) == ["estimated-run", "rated-power-scaled"]
    assert energy.value == pytest.approx(0.65 * 400 * 4 * 10 * 3600)
    assert energy.low == pytest.approx(0.45 * 400 * 4 * 10 * 3600, rel=1e-6)
    assert energy.high == pytest.approx(400 * 4 * 10 * 3600, rel=1e-6)
    assert energy.origin == "assumed"


@pytest.mark.parametrize("watts", [400.0, 399.0, 403.9])
def test_the_rated_power_given_as_a_mean_is_called_what_it_is(watts: float) -> None:
    """433,196 kWh of 24 x 400 W: an upper bound, down to 0.45 of it."""
    run = run_of(mean_watts=watts)

    energy = charged(run).footprint.it_joules

    assert slugs(run) == ["estimated-run", "rated-power"]
    assert energy.low / energy.value == pytest.approx(0.45)
    assert energy.high / energy.value == pytest.approx(1.0)
    assert energy.origin == "assumed"
    assert "upper bound" in run.notes[1].text


def test_the_statement_of_a_published_label_puts_the_range_in_front() -> None:
    run = run_of("A100-SXM4-40GB", count=384, hours=433_196e3 / 384 / 400, mean_watts=400)

    text = " ".join(s.text for s in statement_of(charged(run)).paragraph).replace("\u00a0", " ")

    assert "The GPUs are estimated at 190–400 MWh (central value 400; 384 × 400 W × 2820.29 h, the rated power)" in text
    assert "processors, memory, power supplies, fans, storage and network were not included." in text
    assert "for the GPUs alone" in text
    assert " drew " not in text


def test_a_mean_power_is_taken_with_the_error_of_a_naive_reading() -> None:
    run = run_of(mean_watts=250)

    energy = charged(run).footprint.it_joules

    assert slugs(run) == ["estimated-run", "mean-watts-given"]
    assert energy.value == pytest.approx(250 * 4 * 10 * 3600)
    assert energy.high / energy.value == pytest.approx(1.39, rel=1e-6)


def test_a_board_nobody_knows_needs_a_power_and_then_is_fine() -> None:
    with pytest.raises(CarbonreportError, match="not known here; give --mean-watts"):
        run_of("Frobnicator 9000")

    assert run_of("Frobnicator 9000", mean_watts=100).devices[0].name == "Frobnicator 9000"


def test_an_unknown_board_names_the_nearest() -> None:
    with pytest.raises(CarbonreportError, match="one of: .*A100"):
        run_of("A100-SMX4-80G8")


def test_twice_the_boards_or_the_hours_is_twice_the_energy() -> None:
    once, boards, hours = (
        charged(run).footprint.it_joules.value for run in (run_of(count=2, hours=3), run_of(count=4, hours=3), run_of(count=2, hours=6))
    )

    assert boards == pytest.approx(2 * once)
    assert hours == pytest.approx(2 * once)


def test_no_row_of_an_estimate_is_called_measured() -> None:
    statement = statement_of(charged(run_of()))

    assert not [row for row in statement.rows if row.known == "measured"]


def test_the_record_of_an_estimate_is_a_record(tmp_path: Path) -> None:
    place = Place("DE", "option", "Europe/Berlin")
    job = Job("H100", 8, 5.5, None, START)

    path = estimate(job, name="näme", kind="search", place=place, folder=tmp_path / "runs", options=PlaceOptions(pue="1.2"))

    run = load(path)
    assert (run.name, run.kind, run.devices[0].count, run.is_complete) == ("näme", "search", 8, True)
    assert run.devices[0].origin == "assumed"


def test_what_cannot_be_charged_is_not_written(tmp_path: Path) -> None:
    place = Place("DE", "option", "Europe/Berlin")

    with pytest.raises(CarbonreportError, match="none.csv"):
        estimate(
            Job("H100", 8, 5.5, None, START), name="x", kind="training", place=place, folder=tmp_path, options=PlaceOptions(grid="none.csv")
        )

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "zone", "utc"),
    [
        ("2026-01-14T18:20+01:00", None, 1768411200.0),
        ("2026-01-14T17:20Z", "Asia/Tokyo", 1768411200.0),  # an offset wins over the place
        ("2026-01-14T18:20", "Europe/Berlin", 1768411200.0),
        ("2026-01-14 18:20:00", "Europe/Berlin", 1768411200.0),
        ("2026-03-29T01:59", "Europe/Berlin", 1774745940.0),  # the last minute before the clocks are set
        ("2026-03-29T03:00", "Europe/Berlin", 1774746000.0),  # and the first after it
        ("2026-10-25T02:30+02:00", "Europe/Berlin", 1792888200.0),
        ("2026-10-25T02:30+01:00", "Europe/Berlin", 1792891800.0),
        ("2026-06-01T05:30", "Asia/Kolkata", 1780272000.0),
    ],
)
def test_a_start_is_read_in_its_own_offset_or_in_the_time_of_the_place(text: str, zone: str | None, utc: float) -> None:
    assert start_of(text, zone) == utc


@pytest.mark.parametrize(
    ("text", "reason", "first", "second"),
    [
        ("2026-10-25T02:30", "exists twice", "2026-10-25T02:30+02:00", "2026-10-25T02:30+01:00"),
        ("2026-03-29T02:30", "does not exist", "2026-03-29T02:30+01:00", "2026-03-29T02:30+02:00"),
    ],
)
def test_a_start_that_exists_twice_or_never_offers_both_readings(text: str, reason: str, first: str, second: str) -> None:
    with pytest.raises(BadTime, match=reason) as caught:
        start_of(text, "Europe/Berlin")

    assert first in str(caught.value)
    assert second in str(caught.value)


def test_the_summary_says_what_was_assumed_and_what_to_type_next(tmp_path: Path) -> None:
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "carbonreport",
            "estimate",
            "--gpu",
            "A100",
            "--count",
            "4",
            "--hours",
            "10",
            "--start",
            "2026-01-14T18:20Z",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    record = ended.stdout.strip()
    said = ended.stderr.splitlines()
    assert ended.returncode == 0
    assert json.loads((tmp_path / record).read_text(encoding="utf-8").splitlines()[0])["type"] == "run"
    assert all(line.startswith("carbonreport: ") for line in said)
    assert any("zone-unknown" in line and "give --zone" in line for line in said)
    assert any("pue-assumed" in line and "give --pue" in line for line in said)
    assert said[-1] == f"carbonreport: next: carbonreport statement {record} -o energy.tex"
    assert not find_board("A100").nearest


def test_a_run_that_has_not_begun_is_not_estimated(tmp_path: Path) -> None:
    job = Job("A100-SXM4-80GB", 4, 12.4, None, "2026-01-14T18:20+01:00")
    begun_s = datetime(2026, 1, 14, 17, 20, tzinfo=UTC).timestamp()

    def write(now_s: float) -> Path:
        options = PlaceOptions(zone="DE", pue="1.2")
        return estimate(job, name="e", kind="training", place=Place(), folder=tmp_path, options=options, now_s=lambda: now_s)

    with pytest.raises(BadTime, match="has not come yet"):
        write(begun_s - 60)
    assert list(tmp_path.iterdir()) == []
    assert write(begun_s + 60).is_file()


def test_a_mean_power_that_no_board_of_that_kind_draws_is_refused() -> None:
    with pytest.raises(CarbonreportError, match="--mean-watts 5000 is far above the rated 400 W"):
        estimated_run(Job("A100-SXM4-80GB", 4, 12.4, 5000.0, "2026-01-14T18:20Z"), name="e", kind="training", place=Place(), run_id="x")
