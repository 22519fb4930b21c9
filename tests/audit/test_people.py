"""Pseudonyms: the same for the same salt, nothing without it, and a salt that only its owner reads."""

import os
import stat

import pytest

from carbonreport.audit.ledger import Ledger
from carbonreport.audit.people import named, pseudonym, salt_of
from carbonreport.errors import CarbonreportError
from carbonreport.workflows.ledger import Keeping


def test_a_name_has_one_pseudonym_a_salt():
    assert pseudonym("ada", b"1" * 32) == pseudonym("ada", b"1" * 32)
    assert pseudonym("ada", b"1" * 32) != pseudonym("ada", b"2" * 32)
    assert len({pseudonym(f"user{i}", b"1" * 32) for i in range(2000)}) == 2000
    assert "ada" not in pseudonym("ada", b"1" * 32)


def test_people_are_written_as_asked():
    assert named("names", None)(["ada"]) == {"ada": "ada"}
    assert named("none", None)(["ada"]) == {"ada": ""}
    assert named("pseudonyms", b"1" * 32)(["ada", ""]) == {"ada": pseudonym("ada", b"1" * 32), "": ""}


def test_a_salt_is_made_once_and_for_its_owner_alone(tmp_path):
    path = tmp_path / "ledger.salt"

    first = salt_of(path)

    assert salt_of(path) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["ledger.salt"]


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_a_salt_that_others_may_read_is_refused(tmp_path):
    path = tmp_path / "salt"
    salt_of(path)
    path.chmod(0o640)

    with pytest.raises(CarbonreportError, match="others may read"):
        salt_of(path)


def test_a_short_salt_is_refused(tmp_path):
    path = tmp_path / "salt"
    path.write_bytes(b"1234")
    path.chmod(0o600)

    with pytest.raises(CarbonreportError, match="4 bytes"):
        salt_of(path)


def test_the_salt_lies_beside_the_ledger_and_never_in_it(tmp_path):
    Keeping(str(tmp_path / "ledger")).names()(["ada"])

    assert [p.name for p in tmp_path.iterdir()] == ["ledger.salt"]


def test_a_ledger_behind_a_url_wants_a_salt_of_ones_own():
    with pytest.raises(CarbonreportError, match="--salt FILE"):
        Keeping("s3://bucket/ledger").names()


@pytest.mark.parametrize(("kept", "asked"), [("pseudonyms", "names"), ("none", "names")])
def test_a_ledger_without_names_shows_none(tmp_path, kept, asked):
    ledger = Ledger(str(tmp_path / "ledger"))
    ledger.claim(kept)

    with pytest.raises(CarbonreportError, match=f"no names to show: give --people {kept}"):
        ledger.check_people(asked)


@pytest.mark.parametrize(("kept", "asked"), [("names", "names"), ("names", "none"), ("pseudonyms", "none"), (None, "names")])
def test_what_a_ledger_has_or_hides_is_shown_as_asked(tmp_path, kept, asked):
    ledger = Ledger(str(tmp_path / "ledger"))
    if kept is not None:
        ledger.claim(kept)

    ledger.check_people(asked)
