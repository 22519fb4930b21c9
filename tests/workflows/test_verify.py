"""verify accepts the untouched file and finds any changed digit."""

import random
import re
from pathlib import Path

import pytest

from carbonreport.cli.main import main
from carbonreport.errors import OutputError
from carbonreport.store.writer import save
from carbonreport.testing import make_record
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.statement import statement
from carbonreport.workflows.verify import Asked, verify

FILES = ("energy.tex", "energy.md", "energy.html", "energy.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two records and a statement of them in four formats, made with options."""
    folder = tmp_path_factory.mktemp("verify")
    save(
        make_record({"GPU": 437.0, "host": 61.0}, 5.3, kinds={"host": "cpu"}, spans={"train": 0.7}, items={"train": 1e5}),
        folder / "a.jsonl",
    )
    save(make_record({"GPU": 219.0}, 2.1, name="b", kind="search", start="2026-02-03T08:00Z"), folder / "b.jsonl")
    statement(
        [folder / "a.jsonl", folder / "b.jsonl"], [folder / name for name in FILES], zone="DE", pue="1.1:1.2:1.4", bib=folder / "energy.bib"
    )
    return folder


def records(folder: Path) -> list[Path]:
    return [folder / "a.jsonl", folder / "b.jsonl"]


@pytest.mark.parametrize("name", FILES)
def test_an_untouched_file_agrees_whatever_the_order_of_the_records(folder, name):
    assert verify(folder / name, records(folder), Asked()) == []
    assert verify(folder / name, records(folder), Asked(PlaceOptions(zone="DE", pue="1.1:1.2:1.4"))) == []


def test_each_of_200_random_changed_digits_is_found(folder, tmp_path):
    dice = random.Random(8)
    (tmp_path / "energy.json").write_text((folder / "energy.json").read_text())
    for _ in range(200):
        name = dice.choice(FILES[:2])
        text = (folder / name).read_text()
        body = [m.start() for m in re.finditer(r"\d", text) if m.start() > text.index("\n")]
        at = dice.choice(body)
        changed = text[:at] + dice.choice("0123456789".replace(text[at], "")) + text[at + 1 :]
        if re.sub(r"carbonreport \d+\.\d[\w.]*", "", changed) == re.sub(r"carbonreport \d+\.\d[\w.]*", "", text):
            continue  # the tool's version is no figure
        (tmp_path / name).write_text(changed)

        found = verify(tmp_path / name, records(folder), Asked())

        assert found
        assert found[0].startswith(f"{name}:")


def test_a_changed_digit_is_shown_in_whole_words_as_they_are_written(folder, tmp_path):
    (tmp_path / "energy.json").write_text((folder / "energy.json").read_text())
    text = (folder / "energy.tex").read_text()
    (macro,) = re.findall(r".*renewcommand{\\carbonreportWallClock}{.*}", text)
    changed = macro.replace("7.40", "7.41")
    (tmp_path / "energy.tex").write_text(text.replace(macro, changed))

    (line,) = verify(tmp_path / "energy.tex", records(folder), Asked())

    assert line.endswith(f": has “{changed}”, recomputed “{macro}”")


def test_a_difference_inside_a_long_line_is_shown_with_the_words_around_it(folder, tmp_path):
    (tmp_path / "energy.json").write_text((folder / "energy.json").read_text())
    text = (folder / "energy.md").read_text()
    at = text.index("the facility")
    (tmp_path / "energy.md").write_text(text[:at] + "our" + text[at + 3 :])

    (line,) = verify(tmp_path / "energy.md", records(folder), Asked())

    has, recomputed = re.findall("“… (.*?) …”", line)
    assert "our facility" in has and "the facility" in recomputed
    assert has in (tmp_path / "energy.md").read_text().replace("\u00a0", " ")
    assert {*has.split()[::-1][:1], *has.split()[:1]} <= set((tmp_path / "energy.md").read_text().split())


def test_a_changed_record_is_named(folder, tmp_path):
    for name in (*FILES, "b.jsonl"):
        (tmp_path / name).write_text((folder / name).read_text())
    (tmp_path / "a.jsonl").write_text((folder / "a.jsonl").read_text().replace('"name":"run"', '"name":"ran"'))

    found = verify(tmp_path / "energy.md", records(tmp_path), Asked())

    assert found[0] == "record a.jsonl of the statement was not given, or has changed"


def test_other_options_give_other_figures(folder):
    assert verify(folder / "energy.md", records(folder), Asked(PlaceOptions(zone="SE", pue="1.2")))


@pytest.mark.parametrize("name", ["energy.pdf", "energy.docx", "none.tex"])
def test_what_cannot_be_read_back_is_refused(folder, name):
    with pytest.raises(OutputError):
        verify(folder / name, records(folder), Asked())


def test_an_anonymous_statement_verifies_too_and_tells_no_hash(folder, tmp_path):
    out = tmp_path / "blind.json"
    statement(records(folder), [out], zone="DE", pue="1.2", anonymous=True)

    assert "sha256" not in out.read_text()
    assert verify(out, records(folder), Asked(PlaceOptions(zone="DE", pue="1.2"), is_anonymous=True)) == []


@pytest.mark.parametrize("name", ["checklist.tex", "checklist.md", "checklist.html", "checklist.json"])
@pytest.mark.parametrize("style", ["neurips", "acl"])
@pytest.mark.parametrize("anonymous", [False, True])
def test_a_file_says_itself_in_which_style_and_for_whom_it_was_written(folder, tmp_path, name, style, anonymous):
    statement(records(folder), [tmp_path / name], style=style, anonymous=anonymous, zone="DE", pue="1.2")

    assert verify(tmp_path / name, records(folder), Asked(PlaceOptions(zone="DE", pue="1.2"))) == []


def test_a_model_cards_metadata_for_a_blind_review_verifies_by_its_own_head(folder, tmp_path):
    statement(records(folder), [tmp_path / "card.yaml"], style="modelcard", anonymous=True, zone="DE", pue="1.2")

    assert verify(tmp_path / "card.yaml", records(folder), Asked(PlaceOptions(zone="DE", pue="1.2"))) == []


def test_a_style_of_ones_own_is_given_by_its_folder_and_not_told_in_the_file(folder, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "statement.md.j2").write_text('{% include "shared/head.md.j2" %}\n{{ s.details.energy }}\n')
    own = str(tmp_path / "mine")
    statement(records(folder), [tmp_path / "own.md"], style=own, zone="DE", pue="1.2")

    assert own not in (tmp_path / "own.md").read_text()
    assert verify(tmp_path / "own.md", records(folder), Asked(PlaceOptions(zone="DE", pue="1.2"), style=own)) == []


def test_other_records_are_named_and_do_not_flood_the_terminal(folder, tmp_path):
    other = save(make_record({"GPU": 99.0}, 9.9, name="other", zone="FR"), tmp_path / "other.jsonl")

    found = verify(folder / "energy.json", [other], Asked())

    assert {f"record {name} of the statement was not given, or has changed" for name in ("a.jsonl", "b.jsonl")} <= set(found)
    assert len(found) <= 8
    assert found[-1].endswith(" more lines differ")


def test_without_a_json_beside_it_a_difference_comes_with_the_options_that_may_be_missing(folder, tmp_path):
    statement(records(folder), [tmp_path / "alone.md"], zone="DE", pue="1.1:1.2:1.4")

    found = verify(tmp_path / "alone.md", records(folder), Asked(PlaceOptions(zone="FR")))

    assert len(found) <= 12
    assert found[-1].startswith("alone.md: no JSON beside it says how it was made; give the records and the options of then (--zone, ")


def test_the_command_says_how_it_went(folder, capsys):
    with pytest.raises(SystemExit) as good:
        main(["verify", str(folder / "energy.tex"), *map(str, records(folder))])
    assert (good.value.code, capsys.readouterr().out.strip()) == (0, f"{folder / 'energy.tex'}: every figure agrees with 2 records")

    with pytest.raises(SystemExit) as bad:
        main(["verify", str(folder / "energy.tex"), str(records(folder)[0])])
    assert bad.value.code == 1
    assert "record b.jsonl of the statement was not given" in capsys.readouterr().out
