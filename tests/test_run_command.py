"""`carbonreport run -- COMMAND`: nothing that the command does or gets is changed."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from carbonreport.store import load
from carbonreport.workflows.run import name_of

PYTHON = sys.executable


def wrapped(folder: Path, *command: str, options: tuple[str, ...] = ("--zone", "DE", "--pue", "1.2")) -> list[str]:
    return [PYTHON, "-m", "carbonreport", "run", "--out", str(folder), *options, "--", *command]


def run(folder: Path, *command: str, **kwargs) -> subprocess.CompletedProcess:
    return subprocess.run(wrapped(folder, *command), capture_output=True, timeout=60, check=False, **kwargs)


def test_output_and_input_pass_untouched_and_the_summary_is_on_standard_error(tmp_path):
    # The sleep: processor time comes in ticks of 10 ms, and a shorter run may have none.
    echo = "import sys, time; sys.stdout.buffer.write(sys.stdin.buffer.read()); sys.stderr.write('its own\\n'); time.sleep(0.2)"
    content = bytes(range(256)) * 100

    done = run(tmp_path, PYTHON, "-c", echo, input=content)

    assert done.stdout == content
    lines = done.stderr.decode().splitlines()
    assert lines[0] == "its own"
    assert "gCO₂e" in lines[1]
    (record,) = tmp_path.glob("*.jsonl")
    assert f"carbonreport: record {record}" in lines
    assert lines[-1] == f"carbonreport: next: carbonreport statement {record} -o energy.tex"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ((PYTHON, "-c", "raise SystemExit(0)"), 0),
        ((PYTHON, "-c", "raise SystemExit(3)"), 3),
        ((PYTHON, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), 128 + 9),
        ((PYTHON, "-c", "import os, signal; signal.signal(2, signal.SIG_DFL); os.kill(os.getpid(), 2)"), 128 + 2),
        (("no-such-command-anywhere",), 127),
        (("/etc/passwd",), 126),
    ],
)
def test_the_exit_code_is_the_commands_own(tmp_path, command, code):
    done = run(tmp_path, *command)

    assert done.returncode == code
    assert b"Traceback" not in done.stderr


def test_a_wrong_place_does_not_start_the_command(tmp_path):
    command = (PYTHON, "-c", f"open({str(tmp_path / 'started')!r}, 'w')")

    done = subprocess.run(wrapped(tmp_path / "runs", *command, options=("--zone", "DEE")), capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr.startswith("carbonreport: error: unknown grid zone 'DEE'; nearest")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "started").exists()


_COUNTS = """
import signal, sys, time
got = []
signal.signal(signal.{name}, lambda n, f: got.append(n))
print("up", flush=True)
until = time.monotonic() + {seconds}
while time.monotonic() < until:
    time.sleep(0.02)
print("got", len(got), flush=True)
sys.exit(40 + len(got))
"""


def test_ctrl_c_at_a_terminal_reaches_the_command_once(tmp_path):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(PYTHON, wrapped(tmp_path, PYTHON, "-c", _COUNTS.format(name="SIGINT", seconds=1.5)))
    _read_until(terminal, b"up")
    os.write(terminal, b"\x03")
    output = _read_until(terminal, b"carbonreport: next")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)

    assert b"got 1" in output
    assert os.waitstatus_to_exitcode(status) == 41


def test_a_command_that_ctrl_c_ends_leaves_a_record_and_130(tmp_path):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(PYTHON, wrapped(tmp_path, "sh", "-c", "echo up; sleep 30"))
    _read_until(terminal, b"up")
    os.write(terminal, b"\x03")
    _read_until(terminal, b"carbonreport: next")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)

    assert os.waitstatus_to_exitcode(status) == 130
    (record,) = tmp_path.glob("*.jsonl")
    assert load(record).is_complete


def _read_until(terminal: int, mark: bytes) -> bytes:
    output, until = b"", time.monotonic() + 30
    while mark not in output and time.monotonic() < until:
        try:
            output += os.read(terminal, 4096)
        except OSError:  # the other side has closed
            break
    return output


@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1", "SIGINT", "SIGHUP"])
def test_a_signal_to_the_wrapper_alone_is_passed_on_once(tmp_path, name):
    process = subprocess.Popen(wrapped(tmp_path, PYTHON, "-c", _COUNTS.format(name=name, seconds=1.0)), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(getattr(signal, name))

    output = process.stdout.read()

    assert process.wait(timeout=30) == 41
    assert output == "got 1\n"
    process.stdout.close()


def test_the_command_inherits_no_blocked_or_ignored_signals(tmp_path):
    # Signals 32 and 33 belong to the C library, which leaves them ignored in what it spawns.
    script = "print([int(l.split()[1], 16) & 0x7FFFFFFF for l in open('/proc/self/status') if l[:6] in ('SigBlk', 'SigIgn')])"
    plain = subprocess.run(["sh", "-c", f'exec {PYTHON} -S -c "{script}"'], capture_output=True, text=True, check=True)

    done = run(tmp_path, PYTHON, "-S", "-c", script, text=True)

    assert done.stdout == plain.stdout


def test_a_script_that_traces_itself_is_counted_once(tmp_path):
    inner = f"import time, carbonreport\nwith carbonreport.trace('inner', out={str(tmp_path)!r}) as r:\n  with r.span('train'):\n    time.sleep(0.6)"
    done = run(tmp_path, PYTHON, "-c", inner)
    assert done.returncode == 0, done.stderr

    records = [load(path) for path in tmp_path.glob("*.jsonl")]
    outer = next(r for r in records if r.parent is None)
    (nested,) = [r for r in records if r.parent is not None]

    assert nested.parent == outer.id
    assert nested.name == "inner"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("python", "train.py", "--lr", "1"), "train"),
        (("python3.11", "-u", "scripts/train.py"), "train"),
        (("python", "-m", "torch.distributed.run", "x.py"), "torch.distributed.run"),
        (("python", "-c", "print('secret')"), "python"),
        (("/usr/bin/env", "x"), "env"),
    ],
)
def test_a_run_is_named_after_its_script_and_never_after_its_code(command, name):
    assert name_of(command) == name


def test_quiet_says_nothing(tmp_path):
    done = subprocess.run(wrapped(tmp_path, "true", options=("--quiet",)), capture_output=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
