"""Files as labs bring them: answers of Prometheus with their hosts, scrapes, local times, dates that nobody can read."""

import json

import pytest

from carbonreport.audit.ledger import Ledger
from carbonreport.errors import BadTime, RecordError
from carbonreport.testing.ledger import us
from carbonreport.units import US_PER_S
from carbonreport.workflows.ledger import Keeping, keep_meters, keep_sacct

NOON_S = us("2026-03-02T12:00Z") // US_PER_S
LOCAL = "timestamp, uuid, name, power.draw [W]\n" + "".join(
    f"2026/05/04 08:{minute:02d}:00.000, GPU-0123, NVIDIA H200, 300.00 W\n" for minute in range(30)
)


@pytest.fixture
def kept(con, tmp_path):
    """Device, host and energy of the ledger's readings of a file."""

    def keep(text, name, **keeping):
        path = tmp_path / name
        path.write_text(text)
        keep_meters(path, Keeping(str(tmp_path / "ledger"), people="none", **keeping), con=con)
        Ledger(str(tmp_path / "ledger")).open(con)
        return con.execute("SELECT device, host, start_us, energy_mj FROM meters ORDER BY host, start_us").fetchall()

    return keep


def answer(*labels):
    """A range of 300 W over half an hour for each set of labels."""
    values = [[NOON_S + 30 * i, "300"] for i in range(61)]
    result = [{"metric": {"__name__": "DCGM_FI_DEV_POWER_USAGE", **one}, "values": values} for one in labels]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


@pytest.mark.parametrize(
    ("labels", "host"),
    [
        ({"Hostname": "a1", "instance": "10.0.0.7:9400"}, "a1"),
        ({"instance": "a1:9400"}, "a1"),
        ({"node": "a1.lab.example"}, "a1.lab.example"),
        ({"instance": "10.0.0.7:9400"}, ""),
        ({"instance": "[fe80::1]:9400"}, ""),
        ({"instance": "localhost:9400"}, ""),
        ({}, ""),
    ],
)
def test_a_board_in_an_answer_of_prometheus_is_on_the_host_that_its_labels_name(kept, labels, host):
    assert kept(answer({"UUID": "GPU-0123", **labels}), "range.json") == [("GPU-0123", host, NOON_S * US_PER_S, 540_000_000)]


def test_boards_that_only_have_an_index_are_told_apart_by_host(kept):
    rows = kept(answer({"gpu": "0", "Hostname": "a1"}, {"gpu": "0", "Hostname": "a2"}), "range.json")

    assert [host for _, host, _, _ in rows] == ["a1", "a2"]
    assert len({device for device, _, _, _ in rows}) == 2


def test_a_board_whose_series_name_two_hosts_is_on_none_of_them(kept):
    text = answer({"UUID": "GPU-0123", "Hostname": "a1", "pod": "x"}, {"UUID": "GPU-0123", "Hostname": "a2", "pod": "x"})

    assert [host for _, host, _, _ in kept(text, "range.json")] == [""]


def test_one_scrape_of_an_exporter_is_refused_as_one(kept):
    text = 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-0123",Hostname="a1"} 4000000\n'

    with pytest.raises(RecordError, match=r"scrape\.prom: it is one scrape, .* save a range query"):
        kept(text, "scrape.prom")


def test_samples_with_local_times_ask_for_their_zone_and_are_kept_with_it(kept):
    with pytest.raises(RecordError, match=r"smi\.csv: its times are local and name no zone; give --time-zone"):
        kept(LOCAL, "smi.csv")

    assert [(device, start) for device, _, start, _ in kept(LOCAL, "smi.csv", time_zone="Europe/Berlin")] == [
        ("GPU-0123", us("2026-05-04T06:00Z"))
    ]


HEADER = ("JobIDRaw", "Start", "End", "ElapsedRaw", "State", "AllocTRES")


def jobs_file(path, delimiter, *periods):
    rows = [(str(i), *period, "3600", "COMPLETED", "gres/gpu:h200=2") for i, period in enumerate(periods, start=1)]
    path.write_text("".join(delimiter.join(row) + "\n" for row in (HEADER, *rows)))
    return path


@pytest.mark.parametrize("delimiter", ["|", ";"])
def test_a_time_that_cannot_be_read_is_no_missing_one_whatever_cuts_the_cells(con, tmp_path, delimiter):
    whole, torn = ("1772452800", "1772456400"), ("1772452800", "next Tuesday")
    path = jobs_file(tmp_path / "sacct.txt", delimiter, whole, torn, ("Monday", "1772456400"), ("1772452800", "Unknown"), ("None", "None"))

    taken = keep_sacct(path, Keeping(str(tmp_path / "ledger"), people="none"), con=con)

    why = dict(taken.not_used)
    assert taken.rows == 2
    assert sum(count for text, count in why.items() if text.startswith("times that cannot be read, such as ")) == 2
    assert sum(why.values()) == 3


@pytest.mark.parametrize("delimiter", ["|", ","])
def test_seconds_that_a_spreadsheet_has_rounded_are_no_time(con, tmp_path, delimiter):
    path = jobs_file(tmp_path / "sacct.txt", delimiter, ("1.77245E+09", "1.77246E+09"), ("1772452800", "1772456400"))

    taken = keep_sacct(path, Keeping(str(tmp_path / "ledger"), people="none"), con=con)

    assert (taken.rows, taken.not_used) == (1, (("time that cannot be read, such as '1.77245E+09'", 1),))


@pytest.mark.parametrize("delimiter", ["|", ","])
def test_dates_of_a_spreadsheet_are_read_between_pipes_as_between_commas(con, tmp_path, delimiter):
    path = jobs_file(tmp_path / "sacct.txt", delimiter, ("3/2/2026 10:00", "3/2/2026 11:00"), ("3/13/2026 10:00", "3/13/2026 11:00"))

    taken = keep_sacct(path, Keeping(str(tmp_path / "ledger"), people="none", time_zone="UTC"), con=con)

    Ledger(str(tmp_path / "ledger")).open(con)
    assert (taken.rows, taken.not_used) == (2, ())
    assert con.execute("SELECT min(start_us) FROM jobs").fetchall() == [(us("2026-03-02T10:00Z"),)]


def test_a_file_with_the_day_first_in_some_dates_and_the_month_first_in_others_is_refused(con, tmp_path):
    periods = [(f"{date} 10:00", f"{date} 11:00") for date in ("3/2/2026", "3/13/2026", "13/3/2026")]

    with pytest.raises(BadTime, match=r"'3/2/2026.*may be day-month or month-day, and the dates of the file do not tell"):
        keep_sacct(jobs_file(tmp_path / "s.csv", ",", *periods), Keeping(str(tmp_path / "ledger"), people="none", time_zone="UTC"), con=con)
