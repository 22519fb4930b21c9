"""One tracer a host: locks among the ranks of a job, with real processes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pytest import approx

from carbonreport.errors import OutputError
from carbonreport.measure.claim import claim, runtime_folder
from carbonreport.measure.ranks import RUN_VARIABLE, Rank
from carbonreport.measure.tracer import Run, RunPlan
from carbonreport.model.run import Place
from carbonreport.store import load
from carbonreport.store.writer import save
from carbonreport.testing import FakeMeter, make_record


def rank(number, job="job", boards="all"):
    return Rank(job, number, number, 4, boards)


def parts(one):
    return one.has_host, one.has_boards


@pytest.fixture
def locks(tmp_path):
    return tmp_path / "locks"


def test_the_first_rank_measures_and_the_others_know_who(locks):
    first, second = claim(rank(2), locks), claim(rank(0), locks)

    assert parts(first) == (True, True)
    assert parts(second) == (False, False)
    assert second.holder == 2
    assert first.covers("rapl") and first.covers("nvml")
    assert not second.covers("hostmodel") and not second.covers("amd")


def test_after_the_first_has_ended_another_may_measure_and_no_file_is_left(locks):
    first = claim(rank(0), locks)
    first.release()
    first.release()
    second = claim(rank(1), locks)
    assert parts(second) == (True, True)
    second.release()

    assert [path.name for path in locks.iterdir()] == ["turn"]


def test_ranks_with_boards_of_their_own_measure_these_and_only_the_first_the_host(locks):
    claims = [claim(rank(i, boards=f"gpu {i}"), locks) for i in range(3)]

    assert [parts(one) for one in claims] == [(True, True), (False, True), (False, True)]
    assert [one.holder for one in claims] == [None, 0, 0]


def test_other_jobs_and_processes_of_the_same_rank_are_independent(locks):
    first, other_job, same_rank = claim(rank(0), locks), claim(rank(1, job="other"), locks), claim(rank(0), locks)

    assert parts(first) == parts(other_job) == parts(same_rank) == (True, True)


def test_after_a_restart_of_the_machine_old_locks_mean_nothing(locks):
    assert parts(claim(rank(0), locks, lambda: "boot 1")) == (True, True)
    assert parts(claim(rank(1), locks, lambda: "boot 2")) == (True, True)


def test_a_folder_that_is_not_the_users_own_is_not_trusted_and_everybody_measures(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    link = tmp_path / "link"
    link.symlink_to(shared)
    (tmp_path / "file").write_text("")

    for folder in (shared, link, tmp_path / "file" / "locks"):
        assert [parts(claim(rank(i), folder)) for i in range(2)] == [(True, True), (True, True)]


def test_locks_lie_in_the_users_runtime_folder(tmp_path):
    assert runtime_folder({"XDG_RUNTIME_DIR": str(tmp_path)}) == tmp_path / "carbonreport"
    assert runtime_folder({"XDG_RUNTIME_DIR": "/nowhere", "TMPDIR": "/scratch"}) == Path(f"/scratch/carbonreport-{os.getuid()}")


def plan(folder, locks, number, *names, boards="all"):
    ladders = [[(name, lambda n=name: FakeMeter(100.0, device=f"{n}-device"))] for name in names or ("rapl", "nvml")]
    place = Place("DE", "option", "UTC")
    return RunPlan("run", "training", folder, place, "host", ladders, 0.1, {}, load, rank=rank(number, boards=boards), locks=locks)


def test_an_attached_run_works_writes_nothing_and_says_whose_record_it_is(tmp_path, locks):
    with Run(plan(tmp_path, locks, 0)) as holder, Run(plan(tmp_path, locks, 1)) as attached:
        assert os.environ[RUN_VARIABLE] == holder.id
        with attached.span("step") as span:
            span.items = 3
        assert attached.path is None

    assert attached.stop() is None
    with pytest.raises(RuntimeError, match="rank 0 of the job measures this host"):
        attached.record  # noqa: B018
    with pytest.raises(RuntimeError, match="started before"):
        attached.start()
    assert [path.name for path in tmp_path.glob("*.jsonl")] == [holder.path.name]
    record = holder.record
    assert (record.job, record.rank, record.world_size) == ("job", 0, 4)
    assert {device.id for device in record.devices} == {"rapl-device", "nvml-device"}


def test_a_rank_with_boards_of_its_own_records_these_alone(tmp_path, locks):
    with Run(plan(tmp_path, locks, 0, boards="0")) as first, Run(plan(tmp_path, locks, 1, boards="1")) as second:
        pass
    with Run(plan(tmp_path, locks, 0, "hostmodel", boards="0")), Run(plan(tmp_path, locks, 1, "hostmodel", boards="1")) as no_boards:
        pass

    assert {device.id for device in first.record.devices} == {"rapl-device", "nvml-device"}
    assert {device.id for device in second.record.devices} == {"nvml-device"}
    assert no_boards.path is None


def test_a_folder_that_cannot_be_written_frees_the_lock(tmp_path, locks):
    (tmp_path / "file").write_text("")

    run = Run(plan(tmp_path / "file" / "runs", locks, 0))
    for _ in range(2):
        with pytest.raises(OutputError):
            run.start()
    assert parts(claim(rank(1), locks)) == (True, True)


def test_a_child_of_the_holder_keeps_no_lock(tmp_path, locks):
    ready, alive = os.pipe(), os.pipe()
    run = Run(plan(tmp_path, locks, 0)).start()
    pid = os.fork()
    if pid == 0:
        os.write(ready[1], b"1")
        os.read(alive[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    run.stop()
    freed = claim(rank(1), locks)
    os.write(alive[1], b"1")
    os.waitpid(pid, 0)

    assert parts(freed) == (True, True)


RANK = """
import os, sys, time
from carbonreport import trace
with trace("job", out=os.environ["OUT"], zone="DE", meters=(os.environ["METER"],), interval_s=0.1) as run:
    print("started", run.path is not None, flush=True)
    with run.span("step"):
        sys.stdin.readline()
print("ended", flush=True)
"""


class Ranks:
    """Real processes, started as torchrun starts them."""

    def __init__(self, folder, locks):
        locks.mkdir(mode=0o700, exist_ok=True)
        self.environ = {key: value for key, value in os.environ.items() if key != RUN_VARIABLE}
        self.environ |= {"OUT": str(folder), "XDG_RUNTIME_DIR": str(locks), "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
        self.environ |= {"METER": "hostmodel"}
        self.processes = []

    def start(self, number, **more):
        environ = self.environ | {"LOCAL_RANK": str(number), "RANK": str(number), "WORLD_SIZE": "4"} | more
        self.processes.append(
            subprocess.Popen([sys.executable, "-c", RANK], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        return self.processes[-1]

    def has_record(self, process):
        return process.stdout.readline().split() == ["started", "True"]

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.communicate("go\n", timeout=60)
            for pipe in (process.stdin, process.stdout):
                pipe.close()


@pytest.fixture
def ranks(tmp_path, locks):
    made = Ranks(tmp_path / "runs", locks)
    yield made
    made.end()


def records(tmp_path):
    return [load(path) for path in sorted((tmp_path / "runs").glob("*.jsonl"))]


def test_of_four_processes_of_a_job_one_measures_the_node_and_the_others_run_on(tmp_path, ranks):
    node = save(make_record({f"GPU-{i}": 100.0 for i in range(4)}, 1.0), tmp_path / "node.jsonl")
    processes = [ranks.start(i, METER=f"replay={node}") for i in range(4)]
    with_record = [ranks.has_record(process) for process in processes]
    time.sleep(1)
    ranks.end()

    assert sum(with_record) == 1
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    (record,) = records(tmp_path)
    assert record.is_complete
    assert sum(trace.joules[-1] for trace in record.traces) == approx(400 * record.duration_s, rel=0.1)
    assert record.rank == with_record.index(True)
    assert record.world_size == 4
    assert [span.path for span in record.spans] == ["step"]


def test_a_holder_that_crashes_frees_its_lock(tmp_path, ranks):
    first = ranks.start(0)
    assert ranks.has_record(first)
    first.kill()
    first.wait()
    second = ranks.start(1)
    assert ranks.has_record(second)
    ranks.end()

    first_record, second_record = sorted(records(tmp_path), key=lambda record: record.started_s)
    assert (first_record.is_complete, second_record.is_complete) == (False, True)
    assert first_record.job == second_record.job


def test_two_independent_programs_on_a_host_each_measure(tmp_path, ranks):
    processes = [ranks.start(0, MASTER_PORT="1"), ranks.start(1, MASTER_PORT="2")]
    assert [ranks.has_record(process) for process in processes] == [True, True]
    ranks.end()

    assert len({record.job for record in records(tmp_path)}) == 2


def test_a_program_without_a_launcher_has_no_job(tmp_path, ranks):
    process = ranks.start(0, LOCAL_RANK="", RANK="")
    assert ranks.has_record(process)
    ranks.end()

    (record,) = records(tmp_path)
    assert (record.job, record.rank, record.world_size) == (None, None, None)
