"""The command: from files to a report that says what is known, and no name that it should not."""

import json
import re
import subprocess
import sys

import pytest

from carbonreport.audit.advice import SweptCap, advise, shift_of
from carbonreport.audit.database import connect
from carbonreport.audit.ledger import Ledger
from carbonreport.errors import CarbonreportError, OutputError
from carbonreport.render.audit import compose
from carbonreport.store.writer import save
from carbonreport.testing import make_record
from carbonreport.testing.ledger import a_job, a_reading, us
from carbonreport.workflows.audit import Asked, audit
from carbonreport.workflows.audit_report import facts_of, summary, write_audit
from carbonreport.workflows.imports import import_file
from carbonreport.workflows.ledger import Keeping, keep, keep_imported, keep_meters, keep_sacct
from carbonreport.workflows.place import PlaceOptions

NOW_S = us("2027-06-01T00:00Z") / 1e6
PLACE = PlaceOptions(zone="DE", pue="1.2")
NAMES = ("ada.lovelace", "grace.hopper")
SACCT = (
    "JobIDRaw|JobID|Cluster|Partition|Account|User|Submit|Start|End|ElapsedRaw|State|NNodes|NodeList|AllocTRES|ConsumedEnergyRaw|JobName\n"
    "1|1|lab|gpu|vision|ada.lovelace|2026-03-02T08:00:00Z|2026-03-02T09:00:00Z|2026-03-02T15:00:00Z|21600|COMPLETED|1|n1|cpu=8,gres/gpu:h200=2,node=1||ada.lovelace trains\n"
    "2|2|lab|gpu|language|grace.hopper|2026-03-02T08:00:00Z|2026-03-02T16:00:00Z|2026-03-02T18:00:00Z|7200|FAILED|1|n1|cpu=8,gres/gpu:h200=2,node=1||x\n"
    "3|3|lab|long|language|grace.hopper|2025-12-31T08:00:00Z|2025-12-31T12:00:00Z|2026-01-01T12:00:00Z|86400|TIMEOUT|1|n2|cpu=8,gres/gpu:h200=4,node=1||x\n"
)
HOSTILE = "<script>document.title='owned'</script>=1+1"


def samples():
    rows = ["uuid,timestamp,watts,hostname,modelname"]
    start = us("2026-03-02T00:00Z") // 10**6
    for device in range(2):
        rows += [f"GPU-{device},{start + 60 * i},{600 if 540 <= i < 900 else 75},n1,NVIDIA H200" for i in range(24 * 60 + 1)]
    return "\n".join(rows) + "\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "sacct.txt").write_text(SACCT)
    (tmp_path / "power.csv").write_text(samples())
    return tmp_path


def asked(files, **others):
    given = {"ledger": str(files / "ledger"), "sacct": (str(files / "sacct.txt"),), "meters": (files / "power.csv",)}
    return Asked(2026, **(given | others))


def test_a_year_out_of_sacct_and_samples(files):
    found = audit(asked(files), PLACE, environ={}, now_s=NOW_S)

    year = found.priced.year
    assert {g.name: g.jobs for g in year.groups["project"]} == {"vision": 1, "language": 2}
    vision = next(g for g in year.groups["project"] if g.name == "vision")
    assert vision.energy.measured_mj == pytest.approx(2 * 600 * 6 * 3600 * 1000, rel=0.01)
    assert vision.known_gpu_us == vision.gpu_us
    assert year.jobs.gpu_us == (2 * 6 + 2 * 2 + 4 * 13) * 3600 * 10**6  # job 3 ends 13 h after midnight in Berlin
    assert year.idle.measured_mj > 0
    assert found.window.time_zone == "Europe/Berlin"
    assert found.priced.facility_joules.value == pytest.approx(1.2 * found.priced.it_joules.value)
    assert found.priced.market_grams is None
    assert (found.before, found.months_before) == (None, 0)


def test_all_months_are_there_and_add_up(files):
    year = audit(asked(files), PLACE, environ={}, now_s=NOW_S).priced.year

    assert len(year.months) == 12
    assert sum(energy.it_mj for _, energy in year.months) == year.whole.it_mj


def test_auditing_twice_gives_the_same_bytes(files):
    outputs = []
    for turn in range(2):
        path = files / f"{turn}.json"
        write_audit(audit(asked(files), PLACE, environ={}, now_s=NOW_S), [path])
        held = json.loads(path.read_text())
        held.pop("repeated_rows")
        outputs.append(held)

    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(("people", "ledger"), [("pseudonyms", True), ("none", True), ("pseudonyms", False), ("none", False)])
def test_no_name_leaks_into_the_ledger_or_any_report(files, people, ledger):
    pytest.importorskip("weasyprint")
    found = audit(asked(files, people=people, ledger=str(files / "ledger") if ledger else None), PLACE, environ={}, now_s=NOW_S)
    paths = write_audit(found, [files / f"audit{suffix}" for suffix in (".html", ".csv", ".json", ".pdf")])

    held = [path.read_bytes() for path in [*paths, *files.glob("ledger/**/*.parquet")]] + [summary(found).encode()]
    con = connect()
    for path in files.glob("ledger/**/*.parquet"):
        held.append(str(con.execute(f"SELECT * FROM read_parquet('{path}')").fetchall()).encode())
    for content in held:
        for name in (*NAMES, "lovelace", "hopper"):
            assert name.encode() not in content
    pseudonyms = set(re.findall(r"p-[0-9a-z]{8}", paths[2].read_text()))
    assert len(pseudonyms) == (2 if people == "pseudonyms" else 0)


def test_a_ledger_with_names_gives_a_report_without_them_where_that_is_asked(files):
    audit(asked(files, people="names"), PLACE, environ={}, now_s=NOW_S)

    found = audit(asked(files, sacct=(), meters=()), PLACE, environ={}, now_s=NOW_S)
    write_audit(found, [files / "a.html", files / "a.json"])

    assert all(name not in (files / f).read_text() for f in ("a.html", "a.json") for name in NAMES)
    assert len({g.name for g in found.priced.year.groups["person"]}) == 2


def test_names_are_shown_where_they_are_asked_for(files):
    found = audit(asked(files, people="names"), PLACE, environ={}, now_s=NOW_S)

    assert {g.name for g in found.priced.year.groups["person"]} == set(NAMES)


def test_a_contract_a_price_and_a_factor_stand_beside_the_location_based_figure(files):
    (files / "site.toml").write_text(
        '[place]\nzone = "DE"\ntime_zone = "Europe/Berlin"\nsite = "The lab"\npue = { value = 1.3, low = 1.25, high = 1.4, source = "meter" }\n'
        '[price]\nper_kwh = 0.25\ncurrency = "EUR"\n[contract]\ngrams_per_kwh = 0\nshare = 0.5\ninstrument = "wind, 2026"\n'
        '[embodied]\ndevices = { "NVIDIA H200" = { kg = 200, lifetime_years = 5, utilisation = 0.85, source = "a paper" } }\n'
    )
    options = PlaceOptions(site=str(files / "site.toml"))

    found = audit(asked(files), options, environ={}, now_s=NOW_S)

    assert found.priced.market_grams.value == pytest.approx(found.priced.location_grams.value / 2, rel=1e-6)
    assert found.priced.cost == (pytest.approx(found.priced.facility_joules.value / 3.6e6 * 0.25), "EUR")
    hours = found.priced.year.jobs.gpu_us / 3.6e9
    assert found.priced.embodied_grams.value == pytest.approx(200e3 * hours / (5 * 365 * 24 * 0.85))
    text = summary(found)
    assert "never added" in text and "wind" not in text.split("Do this first")[1]


def test_what_may_not_be_said_is_not_said(files):
    (path,) = write_audit(audit(asked(files), PLACE, environ={}, now_s=NOW_S), [files / "a.html"])

    text = re.sub(r"<svg.*?</svg>|<style>.*?</style>", "", path.read_text(), flags=re.DOTALL).casefold()
    for words in (
        "carbon neutral",
        "net zero",
        "climate-friendly",
        "100 % renewable",
        "avoided",
        "measured emissions",
        "exactly",
        "actual",
        "negligible",
        "tree",
        "saved",
    ):
        assert words not in text
    assert "location-based" in text and "market-based" in text


def test_a_year_in_progress_says_so(files):
    found = audit(asked(files), PLACE, environ={}, now_s=us("2026-04-15T10:00Z") / 1e6)

    assert "a year in progress" in summary(found)
    assert len(found.priced.year.months) == 4


def test_energy_that_nobody_knows_is_called_unknown_and_not_zero(tmp_path):
    Ledger(str(tmp_path / "ledger")).add([a_job("1", "2026-03-02T10:00Z", 5)], "jobs", connect())

    text = summary(audit(Asked(2026, str(tmp_path / "ledger")), PLACE, environ={}, now_s=NOW_S))

    assert "not known" in text and "unknown" in text
    assert "0 kWh" not in text.replace("\u00a0", " ").replace("0.0", "")


def test_records_are_jobs_and_readings_and_count_once(tmp_path):
    runs = [make_record({"GPU-a": 300.0, "host": 60.0}, 4, start="2026-02-03T10:10Z", kinds={"host": "cpu"}, name="train")]
    keeping = Keeping(str(tmp_path / "ledger"))
    for _ in range(2):
        keep(runs, keeping, person="ada.lovelace")

    year = audit(Asked(2026, keeping.url), PLACE, environ={}, now_s=NOW_S).priced.year

    assert year.jobs.jobs == 1
    assert year.whole.measured_mj == 360 * 4 * 3600 * 1000
    assert year.jobs.known_gpu_us == year.jobs.gpu_us == 4 * 3600 * 10**6
    assert [g.name for g in year.groups["person"]] != ["ada.lovelace"]


def test_a_run_inside_another_counts_once(tmp_path):
    outer = make_record({"GPU-a": 300.0}, 4, start="2026-02-03T10:00Z", name="outer", run_id="outer")
    inner = make_record({"GPU-a": 300.0}, 2, start="2026-02-03T11:00Z", name="inner", parent="outer")
    keeping = Keeping(str(tmp_path / "ledger"))
    keep([outer], keeping)
    keep([outer, inner], keeping)
    keep([inner], keeping)

    assert audit(Asked(2026, keeping.url), PLACE, environ={}, now_s=NOW_S).priced.year.whole.it_mj == 300 * 4 * 3600 * 1000


def test_files_of_sacct_in_other_shapes_are_read_line_by_line(tmp_path):
    path = tmp_path / "sacct.txt"
    path.write_text(
        "JobID           Start               End                 ElapsedRaw State      AllocTRES               Account\n"
        "--------------- ------------------- ------------------- ---------- ---------- ----------------------- ----------\n"
        "12              2026-03-01T10:00:00 2026-03-01T12:00:00       7200  COMPLETED  gres/gpu:h200=2          vision\n"
    )  # fmt: skip
    keeping = Keeping(str(tmp_path / "ledger"), people="none", time_zone="UTC")

    assert keep_sacct(path, keeping).rows == 1


def test_samples_of_another_shape_go_through_the_importers(tmp_path):
    path = tmp_path / "smi.csv"
    rows = [f"2026/03/01 10:{i:02d}:00.000, NVIDIA H200, 300.00 W" for i in range(30)]
    path.write_text("\n".join(["timestamp, name, power.draw [W]", *rows]) + "\n")

    taken = keep_meters(path, Keeping(str(tmp_path / "ledger"), time_zone="UTC"))

    assert taken.rows == 1


def test_what_import_read_is_kept_jobs_as_jobs_and_runs_as_runs(files):
    jobs, energies = Keeping(str(files / "jobs")), Keeping(str(files / "energies"))

    assert keep_imported(import_file(files / "sacct.txt"), files / "sacct.txt", jobs).rows == 3
    assert keep_imported(import_file(files / "power.csv"), files / "power.csv", energies).rows >= 1
    assert audit(Asked(2026, jobs.url), PLACE, environ={}, now_s=NOW_S).priced.year.jobs.jobs == 3


def test_a_board_that_sacct_does_not_name_may_be_named(tmp_path):
    Ledger(str(tmp_path / "ledger")).add([a_job("1", "2026-03-02T10:00Z", 10)], "jobs", connect())

    year = audit(Asked(2026, str(tmp_path / "ledger"), gpu="H200-SXM"), PLACE, environ={}, now_s=NOW_S).priced.year

    assert year.jobs.unknown_gpu_us == 0
    assert year.jobs.energy.estimated_mj == round(0.65 * 700 * 10 * 3600 * 1000)


def test_jobs_without_a_gpu_and_without_an_energy_are_counted_and_said(tmp_path):
    Ledger(str(tmp_path / "ledger")).add(
        [a_job("1", "2026-03-02T10:00Z", 10, gpus=0), a_job("2", "2026-03-02T10:00Z", 1)], "jobs", connect()
    )

    found = audit(Asked(2026, str(tmp_path / "ledger")), PLACE, environ={}, now_s=NOW_S).priced.year.findings

    assert next(f.count for f in found if f.slug == "no-gpu") == 1


# What to do first


def test_advice_is_given_by_size_and_only_where_it_is_worth_it(files):
    found = audit(asked(files), PLACE, environ={}, now_s=NOW_S)
    year = found.priced.year

    slugs = [advice.slug for advice in found.advice]
    assert "failed" in slugs
    assert [a.joules or 0 for a in found.advice] == sorted((a.joules or 0 for a in found.advice), reverse=True)
    cap = SweptCap("sweep.json", ("NVIDIA H200",), 500.0, (0.88, 0.86, 0.9), 1.03)
    advised = next(a for a in advise(year, {"NVIDIA H200": (1e9, 1e5)}, [cap], None) if a.slug == "cap")
    assert (advised.joules, advised.low, advised.high) == (pytest.approx(0.12e9), pytest.approx(0.1e9), pytest.approx(0.14e9))
    assert not any(a.slug == "cap" for a in advise(year, {"NVIDIA A100": (1e9, 1e5)}, [cap], None))


def test_a_flat_grid_gives_no_reason_to_shift():
    import numpy as np

    flat = shift_of(np.ones(240), np.full(240, 1e-4), 1.0, 0, is_typical=True)
    bumpy = shift_of(np.ones(240), np.tile(np.where(np.arange(24) < 8, 0.5e-4, 1.5e-4), 10), 1.0, 0, is_typical=True)

    assert flat.ratio == pytest.approx(1.0)
    assert (bumpy.ratio, bumpy.hour) == (pytest.approx(0.5 / (0.5 / 3 + 1.5 * 2 / 3)), 0)


def test_a_sweep_that_chose_no_cap_advises_none(files):
    (files / "sweep.json").write_text(json.dumps({"baseline": {"boards": [{"name": "NVIDIA H200"}]}, "points": [], "choice": None}))

    assert not any(a.slug == "cap" for a in audit(asked(files, sweeps=(files / "sweep.json",)), PLACE, environ={}, now_s=NOW_S).advice)


# Files and errors


def test_foreign_files_are_not_replaced(files):
    (files / "a.html").write_text("mine")

    with pytest.raises(OutputError, match="--force"):
        write_audit(audit(asked(files), PLACE, environ={}, now_s=NOW_S), [files / "a.html"])


def test_an_empty_year_is_said(files):
    with pytest.raises(CarbonreportError, match="no job and no reading of 2019"):
        audit(Asked(2019, str(files / "nothing")), PLACE, environ={}, now_s=NOW_S)


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "carbonreport", "audit", *map(str, arguments)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--year", "2026"], "nothing to audit"),
        (["--year", "2026", "--sacct", "missing.txt"], "missing.txt"),
        (["--year", "2026", "--meters", "missing.csv"], "missing.csv"),
        (["--year", "2026", "--ledger", "memory://x", "--sacct", "{files}/sacct.txt"], "--salt FILE"),
        (["--year", "2026", "--ledger", "nonsense://x"], "cannot open the ledger nonsense://x"),
        (["--year", "2026", "--sacct", "{files}/sacct.txt", "-o", "x.docx"], ".html, .pdf, .csv, .json"),
        (["--year", "2099", "--sacct", "{files}/sacct.txt"], "2099 has not begun"),
        (["--year", "2026", "--sacct", "{files}/sacct.txt", "--gpu", "Foo"], "unknown board --gpu Foo"),
        (["--year", "2026", "--sacct", "{files}/sacct.txt", "--ledger", "/"], "folder of its own"),
        (["--year", "2026", "--sacct", "{files}/torn.txt"], "1 line is torn"),
        (["--year", "2026", "--sacct", "{files}/sacct.txt", "--sweep", "{files}/nan.json"], "no number above 0"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_1(files, arguments, words):
    (files / "torn.txt").write_text(SACCT[: SACCT.index("2026-03-02T15")])
    choice = {"cap_watts": 300, "promised": {"energy_ratio": "nan", "energy_low": 0.4, "energy_high": 0.5, "time_ratio": 1}}
    (files / "nan.json").write_text(json.dumps({"baseline": {"boards": []}, "choice": choice}))
    done = run(*(text.format(files=files) for text in arguments))

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert words in done.stderr


def test_the_command_writes_what_it_says(files):
    record = save(make_record({"GPU-z": 300.0}, 2, start="2026-05-03T10:00Z"), files / "run.jsonl")

    done = run(
        "--year",
        "2026",
        "--sacct",
        files / "sacct.txt",
        "--meters",
        files / "power.csv",
        "--zone",
        "DE",
        "-o",
        files / "a.csv",
        "-o",
        files / "a.json",
        record,
    )

    assert done.returncode == 0, done.stderr
    assert "1 record: 1 row used" in done.stdout
    assert json.loads((files / "a.json").read_text())["jobs"]["jobs"] == 4
    assert (files / "a.csv").read_text().startswith("# written by carbonreport")


def test_a_cell_is_no_formula_and_a_page_runs_nothing(tmp_path):
    ledger = Ledger(str(tmp_path / "ledger"))
    con = connect()
    ledger.add(
        [
            a_job("1", "2026-03-02T10:00Z", 5, project="=1+1", gpu_model="h200"),
            a_job("2", "2026-03-02T10:00Z", 5, project=HOSTILE, gpu_model="h200", hosts="n2"),
        ],
        "jobs",
        con,
    )
    ledger.add([a_reading("GPU-a", "2026-03-02T10:00Z", 5, 10**9)], "meters", con)

    page, table = write_audit(audit(Asked(2026, ledger.url), PLACE, environ={}, now_s=NOW_S), [tmp_path / "a.html", tmp_path / "a.csv"])

    assert "<script" not in page.read_text()
    assert not re.search(r'(?:src|href)="(?!#)', page.read_text())
    assert "\nproject,'=1+1," in table.read_text()


def test_the_table_holds_every_group_under_its_own_dimension(tmp_path):
    Ledger(str(tmp_path / "ledger")).add(
        [a_job("1", "2026-03-02T10:00Z", 5, project="", partition="", person="", gpu_model="h200")], "jobs", connect()
    )

    (table,) = write_audit(audit(Asked(2026, str(tmp_path / "ledger")), PLACE, environ={}, now_s=NOW_S), [tmp_path / "a.csv"])

    rows = [line.split(",")[:2] for line in table.read_text().splitlines()[2:]]
    assert {dimension for dimension, name in rows if name == "not said"} == {"project", "person", "partition"}


def test_without_a_grid_zone_the_world_is_charged_and_said(files, monkeypatch):
    monkeypatch.chdir(files)

    text = summary(audit(asked(files), PlaceOptions(), environ={}, now_s=NOW_S))

    assert "nobody gave a grid zone" in text and "WORLD" not in text
    assert "(UTC)" in text


def test_the_folder_one_is_in_can_be_a_ledger(files, monkeypatch):
    (files / "here").mkdir()
    monkeypatch.chdir(files / "here")

    assert keep_sacct(files / "sacct.txt", Keeping(".")).rows == 3
    assert (files / "here.salt").exists()


@pytest.mark.parametrize(("people", "shown"), [("names", True), ("pseudonyms", False), ("none", False)])
def test_a_file_named_after_a_person_is_not_named_where_people_are_not(files, people, shown):
    (files / "jobs_of_ada.txt").write_text(SACCT)

    found = audit(asked(files, sacct=(str(files / "jobs_of_ada.txt"),), people=people), PLACE, environ={}, now_s=NOW_S)
    paths = write_audit(found, [files / "a.html", files / "a.json"])

    assert [("jobs_of_ada" in path.read_text()) for path in paths] == [shown, shown]
    assert ("sacct file 1" in paths[1].read_text()) is not shown


def test_people_written_in_two_ways_are_not_mixed_in_a_ledger(files):
    audit(asked(files, people="names"), PLACE, environ={}, now_s=NOW_S)

    with pytest.raises(CarbonreportError, match="keeps people as names"):
        audit(asked(files), PLACE, environ={}, now_s=NOW_S)


def test_formulas_behind_a_space_or_a_line_end_are_no_formulas_either(tmp_path):
    names = {" =1": "' =1", "\r=2": "'\r=2"}
    rows = [a_job(str(i), "2026-03-02T10:00Z", 5, project=name) for i, name in enumerate(names)]
    Ledger(str(tmp_path / "ledger")).add(rows, "jobs", connect())

    (table,) = write_audit(audit(Asked(2026, str(tmp_path / "ledger")), PLACE, environ={}, now_s=NOW_S), [tmp_path / "a.csv"])

    assert all(written.encode() in table.read_bytes() for written in names.values())


def test_numbers_stay_with_their_units_and_what_is_counted_is_not_measured(files):
    found = audit(asked(files), PLACE, environ={}, now_s=NOW_S)
    report = compose(facts_of(found))

    assert found.advice and not any(re.search(r"[0-9] (?:%|W|h)(?![A-Za-z])", task.because) for task in report.tasks)
    assert {line.known for line in report.lines if line.label.startswith(("Occupancy", "GPU-hours with"))} == {"counted"}
