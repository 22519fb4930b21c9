"""What every importer keeps: its folder is the registry, it knows its own files by content alone, and refuses the others'."""

import pytest
from pytest import approx

from carbonreport.importers.log_file import LogFile
from carbonreport.model.run import ORIGIN_OF_METHOD
from carbonreport.plugins import load, module, names

NOISE = (
    "",
    "\n\n",
    "epoch 1: loss 0.3\nepoch 2: loss 0.2\n",
    '{"step": 1}\n',
    "[1, 2]\n",
    "{",
    '{"a": ' * 3000,
    "\x00" * 500,
    "a,b\n1,2\n",
    "| | |\n",
    "#\n# \n",
    "🙂" * 50,
)


@pytest.mark.parametrize("name", names("importer"))
def test_an_importer_is_a_file_that_creates_itself_and_says_whether_it_can_be_used(name):
    assert module("importer", name).available() is None
    importer = load("importer", name, {"time_zone": "UTC", "unit": "W"})

    assert callable(importer.recognises) and callable(importer.read)


@pytest.mark.parametrize("name", names("importer"))
@pytest.mark.parametrize("text", NOISE, ids=range(len(NOISE)))
def test_an_importer_says_why_it_reads_nothing_out_of_noise(name, text):
    importer = load("importer", name)
    file = LogFile("noise.txt", text.encode())
    if name != "csv":
        assert not importer.recognises(file)

    found = importer.read(file)

    assert found.it_joules is None and found.method is None and found.why_not


def test_a_log_is_known_by_its_content_to_one_importer(sample):
    file = LogFile("renamed", sample.text.encode())

    known = [name for name in names("importer") if name != "csv" and load("importer", name, {}).recognises(file)]

    assert len(known) == (0 if sample.format == "csv" else 1)
    assert load("importer", known[0] if known else "csv", sample.options).read(file).format == sample.format


def test_a_log_gives_its_energy_and_how_it_is_known(sample, read):
    found = read(sample.file, sample.text, **sample.options)

    assert (found.format, found.method) == (sample.format, sample.method)
    assert found.it_joules == approx(sample.it_joules, rel=1e-9)
    assert (len(found.runs), len(found.undated)) == ((sample.runs, 0) if sample.is_dated else (0, sample.runs))
    assert found.why_not is None and found.rows > 0


def test_the_runs_of_a_log_add_up_to_its_energy_and_lie_in_2026(sample, read):
    found = read(sample.file, sample.text, **sample.options)
    runs = (*found.runs, *found.undated)

    assert sum(trace.joules[-1] for run in runs for trace in run.traces) == approx(found.it_joules)
    assert len({run.id for run in runs}) == len(runs)
    for run in found.runs:
        assert 1767225600 < run.started_s < run.ended_s < 1798761600
    for run in runs:
        assert run.source == sample.file and run.sha256
        assert any(note.slug == "imported-log" for note in run.notes)
        for device in run.devices:
            assert device.origin == ORIGIN_OF_METHOD[device.method] and device.gain_low <= 1 <= device.gain_high


def test_a_local_log_without_a_time_zone_has_its_energy_and_no_date(sample, read):
    if "time_zone" not in sample.options:
        pytest.skip("its times are not local")
    found = read(sample.file, sample.text, **{k: v for k, v in sample.options.items() if k != "time_zone"})

    assert found.it_joules == approx(sample.it_joules)
    assert not found.runs and found.is_local
    assert any(note.slug == "import-undated" and "--time-zone" in note.text for note in found.notes)


def test_the_same_log_twice_is_the_same_run(sample, read):
    first, second = (read(sample.file, sample.text, **sample.options) for _ in range(2))

    assert first == second
