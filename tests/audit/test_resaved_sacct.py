"""sacct's text after a spreadsheet or another delimiter has had it: the same jobs, or a line that says what is missing."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from carbonreport.audit.ledger import Ledger
from carbonreport.errors import BadTime, CarbonreportError, RecordError
from carbonreport.testing.ledger import us
from carbonreport.units import US_PER_S
from carbonreport.workflows.ledger import Keeping, keep_sacct

COLUMNS = ("JobIDRaw", "JobID", "Account", "User", "Submit", "Start", "End", "ElapsedRaw", "State", "NodeList", "AllocTRES")
NOON_S = us("2026-03-02T12:00Z") // US_PER_S
BERLIN = ZoneInfo("Europe/Berlin")


def epoch(seconds):
    return str(seconds)


def us_date(seconds):
    """3/7/2026 10:59, as a spreadsheet in Berlin shows it with American dates."""
    local = datetime.fromtimestamp(seconds, UTC).astimezone(BERLIN)
    return f"{local.month}/{local.day}/{local.year} {local:%H:%M}"


def german_date(seconds):
    return f"{datetime.fromtimestamp(seconds, UTC).astimezone(BERLIN):%d.%m.%Y %H:%M}"


def starts(days):
    return [NOON_S + day * 86_400 + 37 for day in days]


def written(path, delimiter, written_as, begins, *, length_s=7234, columns=COLUMNS):
    rows = [
        dict(zip(COLUMNS, (str(i), str(i), "vision", "ada", written_as(s - 60), written_as(s), written_as(s + length_s), str(length_s), "COMPLETED", "n1", "gres/gpu:h200=2"), strict=True))
        for i, s in enumerate(begins, start=1)
    ]  # fmt: skip
    path.write_text(
        "\n".join(delimiter.join(row[name] for name in columns) for row in [dict(zip(COLUMNS, COLUMNS, strict=True)), *rows]) + "\n"
    )
    return path


@pytest.fixture
def kept(con, tmp_path):
    """Rows of the ledger, and what the import said."""

    def keep(path, time_zone=None):
        taken = keep_sacct(path, Keeping(str(tmp_path / "ledger"), people="none", time_zone=time_zone), con=con)
        Ledger(str(tmp_path / "ledger")).open(con)
        rows = con.execute("SELECT job_id, submit_us, start_us, end_us, gpus, suspended_us FROM jobs ORDER BY start_us").fetchall()
        return rows, taken

    return keep


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo", "Europe/Berlin"])
@pytest.mark.parametrize("delimiter", ["|", ",", ";", "\t", "^", "~", "@@"])
def test_posix_seconds_need_no_zone_and_are_never_shifted_whatever_cuts_the_cells(kept, tmp_path, delimiter, zone):
    begins = starts([0, 30])

    rows, taken = kept(written(tmp_path / "sacct.txt", delimiter, epoch, begins), zone)

    assert [(submit, start, end) for _, submit, start, end, _, _ in rows] == [
        ((s - 60) * US_PER_S, s * US_PER_S, (s + 7234) * US_PER_S) for s in begins
    ]
    assert (taken.rows, taken.not_used) == (2, ())


@pytest.mark.parametrize(("written_as", "delimiter"), [(us_date, ","), (german_date, ";")])
def test_dates_of_a_spreadsheet_are_read_in_the_order_that_one_of_them_tells(kept, tmp_path, written_as, delimiter):
    begins = starts(range(1, 29))  # 3 to 30 March: 3/3 to 3/12 alone would tell nothing

    rows, taken = kept(written(tmp_path / "sacct.csv", delimiter, written_as, begins), "Europe/Berlin")

    assert [start for _, _, start, _, _, _ in rows] == [(s - s % 60) * US_PER_S for s in begins]
    assert (taken.rows, taken.not_used) == (28, ())


def test_a_file_whose_dates_tell_no_order_is_refused(kept, tmp_path):
    with pytest.raises(
        BadTime, match=r"may be day-month or month-day, and the dates of the file do not tell; pull it with SLURM_TIME_FORMAT=%s"
    ):
        kept(written(tmp_path / "sacct.csv", ",", us_date, starts([1, 2])), "Europe/Berlin")


def test_a_time_that_cannot_be_read_is_called_that_and_shown(kept, tmp_path):
    path = written(tmp_path / "sacct.csv", ",", epoch, starts([1, 2, 3]))
    path.write_text(path.read_text().replace(epoch(starts([2])[0]), "next Tuesday"))

    rows, taken = kept(path)

    assert ([row[0] for row in rows], taken.not_used) == (["1", "3"], (("time that cannot be read, such as 'next Tuesday'", 1),))


@pytest.mark.parametrize("delimiter", ["|", ";"])
@pytest.mark.parametrize(("jobs", "away_s"), [(6, 0), (2, 94)])
def test_times_to_the_minute_are_no_suspension_where_a_whole_file_has_them(kept, tmp_path, delimiter, jobs, away_s):
    begins = [s - s % 60 for s in starts(range(jobs))]
    path = written(tmp_path / "sacct.txt", delimiter, epoch, begins, length_s=7260)
    path.write_text(path.read_text().replace(f"{delimiter}7260{delimiter}", f"{delimiter}7166{delimiter}"))

    rows, _ = kept(path)

    assert {suspended for *_, suspended in rows} == {away_s * US_PER_S}


@pytest.mark.parametrize("delimiter", ["|", ","])
@pytest.mark.parametrize(("missing", "word"), [("AllocTRES", "AllocTRES"), ("Start", "Start"), ("State", "State"), ("JobID", "JobID")])
def test_a_column_without_which_nothing_is_known_is_named(kept, tmp_path, delimiter, missing, word):
    columns = [name for name in COLUMNS if not name.startswith(missing)]

    with pytest.raises(CarbonreportError, match=f"no {word} of its jobs.*--format") as caught:
        kept(written(tmp_path / "sacct.txt", delimiter, epoch, starts([1]), columns=columns))

    assert isinstance(caught.value, RecordError)
