"""The file under every journal: what was finished is there again, what was cut off is not, and one process at a time writes it."""

import os
import signal
import subprocess
import sys

import pytest

from carbonreport.errors import CarbonreportError, OutputError
from carbonreport.workflows.journal import JournalFile, opened_file

WRITER = """
import sys
from pathlib import Path
from carbonreport.workflows.journal import opened_file
with opened_file(Path(sys.argv[1]), "the work") as journal:
    journal.append(b"one")
    journal.append(b"two")
    print("kept", flush=True)
    sys.stdin.readline()
"""


def lines_of(path):
    with opened_file(path, "the work") as journal:
        return journal.lines


def test_what_was_appended_is_there_when_the_work_goes_on(tmp_path):
    path = tmp_path / "new" / "folder" / "journal.jsonl"
    with opened_file(path, "the work") as journal:
        assert journal.lines == ()
        journal.append(b"one")
        assert path.read_bytes() == b"one\n"
    with opened_file(path, "the work") as journal:
        assert journal.lines == (b"one",)
        journal.append("zwei, für später".encode())

    assert lines_of(path) == (b"one", "zwei, für später".encode())


@pytest.mark.parametrize("torn", [b"t", b'{"key":"thr', b"\xff\xfe"])
def test_a_last_line_that_was_cut_off_is_taken_away_and_the_next_one_begins_a_line(tmp_path, torn):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"one\ntwo\n" + torn)

    with opened_file(path, "the work") as journal:
        assert journal.lines == (b"one", b"two")
        journal.append(b"three")

    assert path.read_bytes() == b"one\ntwo\nthree\n"


def test_a_journal_whose_first_line_was_cut_off_is_a_new_one(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"on")

    assert lines_of(path) == ()
    assert path.read_bytes() == b""


def test_a_second_writer_is_refused_in_one_clear_line_and_changes_nothing(tmp_path):
    path = tmp_path / "journal.jsonl"
    with opened_file(path, "the work") as journal:
        journal.append(b"one")
        path.write_bytes(b"one\ntw")  # the first one is in the middle of a line
        with pytest.raises(CarbonreportError) as refused, opened_file(path, "the work"):
            pass

        assert str(refused.value) == "another process goes on with the work now; wait for it, or give another --out"
        assert path.read_bytes() == b"one\ntw"


def test_a_writer_that_was_killed_leaves_its_lines_and_no_lock(tmp_path):
    path = tmp_path / "journal.jsonl"
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "kept\n"
        with pytest.raises(CarbonreportError, match="another process"), opened_file(path, "the work"):
            pass
        writer.send_signal(signal.SIGKILL)
        writer.wait()

        assert lines_of(path) == (b"one", b"two")


def test_a_folder_that_cannot_be_made_is_one_line_with_the_path(tmp_path):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "journal.jsonl"

    with pytest.raises(OutputError, match=f"cannot write {path}: "), opened_file(path, "the work"):
        pass


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full disk to try")
def test_a_full_disk_is_one_line_with_the_path(tmp_path):
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        with pytest.raises(OutputError, match=f"cannot write {tmp_path}: No space left on device"):
            JournalFile(tmp_path, full).append(b"one")
    finally:
        os.close(full)


def test_a_line_that_did_not_fit_leaves_the_journal_as_it_was(tmp_path):
    program = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from carbonreport.errors import OutputError; from carbonreport.workflows.journal import opened_file\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "path = Path(sys.argv[1])\n"
        "with opened_file(path, 'the work') as journal:\n"
        "    journal.append(b'one'); resource.setrlimit(resource.RLIMIT_FSIZE, (6, -1))\n"
        "    try: journal.append(b'a line that is too long')\n"
        "    except OutputError: print('refused')\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1)); journal.append(b'two')\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "j")], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout == "refused\n"
    assert (tmp_path / "j").read_bytes() == b"one\ntwo\n"
