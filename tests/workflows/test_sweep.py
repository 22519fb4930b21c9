"""A sweep of a program on a virtual board that obeys a published curve: the curve comes back, the right cap is chosen, boards are put back."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pytest import approx

from carbonreport.control.controllers.nvml import NvmlController
from carbonreport.errors import CarbonreportError
from carbonreport.model.knobs import Knobs
from carbonreport.plan.cap_choice import CapRule
from carbonreport.workflows.caps import swept_caps
from carbonreport.workflows.sweep import Stopped, Sweep, SweepPlan
from carbonreport.workflows.sweep_command import write_outcome
from carbonreport.workflows.sweep_journal import Tried, identity, opened_journal
from carbonreport.workflows.sweep_trial import Ended

SQUAD_32 = Path(__file__).parents[1] / "data" / "dvfs" / "zeus_v100_squad_32.csv"
CAPS = (100.0, 150.0, 175.0, 200.0, 225.0)
LIMIT_WATTS = 250.0


def squad_32():
    """(limit, speed, watts) of a V100 that trains BERT on SQuAD with batches of 32 (Zeus, NSDI'23), full speed at 250 W."""
    with SQUAD_32.open() as file:
        rows = [[float(cell) for cell in row] for row in csv.reader(line for line in file if line[0].isdigit())]
    fastest = min(seconds for _, seconds, _ in rows)
    return [(cap, fastest / seconds, watts) for cap, seconds, watts in rows]


def truth(cap):
    """Time and energy ratio under a cap."""
    points = {limit: (speed, watts) for limit, speed, watts in squad_32()}
    speed, watts = points[cap]
    return 1 / speed, watts / speed / points[LIMIT_WATTS][1]


class BoardTrials:
    """Work on a virtual board in virtual time, some more of it or less each time."""

    def __init__(self, driver, pynvml, *, sd=0.005, seed=0, fails_at=None):
        self.driver, self.board, self.nvml, self.sd = driver, driver.board(0), pynvml, sd
        self.rng, self.fails_at = np.random.default_rng(seed), fails_at
        self.controller = NvmlController(pynvml)
        self.uuid = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(0))
        self.runs = []

    def run(self, key, cap_watts):
        if len(self.runs) == self.fails_at:
            return Ended(3, None)
        self.runs.append((key, cap_watts))
        if cap_watts is not None:
            self.controller.set(self.uuid, Knobs(power_cap_watts=cap_watts))
        self.driver.advance(2)
        began_s, joules = self.driver.boot_ns() / 1e9, self._joules()
        self.board.work(30 * float(np.exp(self.rng.normal(0, self.sd))))
        tried = Tried(key, cap_watts, self.driver.boot_ns() / 1e9 - began_s, self._joules() - joules)
        self.controller.restore(self.uuid, LIMIT_WATTS, Knobs(power_cap_watts=cap_watts or LIMIT_WATTS))
        return Ended(0, tried)

    def _joules(self):
        return self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.nvml.nvmlDeviceGetHandleByIndex(0)) / 1000


@pytest.fixture
def v100(make_virtual_driver, request):
    driver = make_virtual_driver("v100")
    board = driver.board(0).set(min_limit_watts=100)  # as a PCIe one
    board.set_limit(LIMIT_WATTS)
    board.curve(squad_32())
    board.utilisation(1, 1)
    return driver


def swept(folder, trials, plan, said=None, slept=None):
    with opened_journal(folder / "sweep.jsonl", identity(["train"], plan.caps, seed=plan.seed, same_lines=None, is_dry=False)) as journal:
        said, slept = [] if said is None else said, [] if slept is None else slept
        return Sweep(plan, trials, journal, said.append, slept.append).run()


@pytest.mark.parametrize(("slowdown", "chosen"), [(0.05, 225.0), (0.10, 200.0), (0.25, 175.0), (0.30, 150.0), (None, 150.0)])
def test_a_sweep_gives_back_the_curve_that_the_board_obeys(tmp_path, v100, pynvml, slowdown, chosen):
    outcome = swept(tmp_path, BoardTrials(v100, pynvml), SweepPlan(CAPS, 3, CapRule(slowdown)))

    inside = 0
    for point in outcome.curve.points:
        time_ratio, energy_ratio = truth(point.cap_watts)
        assert point.time.value == approx(time_ratio, rel=0.02)
        assert point.energy.value == approx(energy_ratio, rel=0.02)
        inside += (point.time.low <= time_ratio <= point.time.high) + (point.energy.low <= energy_ratio <= point.energy.high)
    assert inside >= 8  # of 10 intervals of 90 %
    assert [point.cap_watts for point in outcome.curve.points if point.is_dominated] == [100]
    assert outcome.choice.cap_watts == chosen
    assert outcome.confirmed.holds
    assert outcome.confirmed.energy.value == approx(truth(chosen)[1], rel=0.02)


def test_what_was_promised_is_measured_anew_beside_runs_without_a_cap(tmp_path, v100, pynvml):
    trials = BoardTrials(v100, pynvml)

    outcome = swept(tmp_path, trials, SweepPlan((150.0, 200.0), 2, CapRule(None), pairs=2))

    assert [cap for _, cap in trials.runs][-4:] == [150, None, None, 150]
    assert outcome.confirmed.pairs == 2
    assert v100.board(0).peek().requested_watts == LIMIT_WATTS


def test_without_a_new_measurement_a_choice_is_called_a_promise(tmp_path, v100, pynvml):
    outcome = swept(tmp_path, BoardTrials(v100, pynvml), SweepPlan((150.0,), 2, CapRule(None), pairs=0))

    assert outcome.confirmed is None
    assert "a promise, not a result" in next(note.text for note in outcome.notes if note.slug == "sweep-unconfirmed")


def test_a_promise_that_is_not_seen_again_is_no_choice(tmp_path):
    class Lucky:
        def run(self, key, cap_watts):
            energy = 80.0 if cap_watts is not None and key.startswith("sweep") else 100.0
            return Ended(0, Tried(key, cap_watts, 10.0, energy + 0.1 * (int(key[6]) % 3 if key.startswith("sweep") else 1)))

    outcome = swept(tmp_path, Lucky(), SweepPlan((300.0,), 3, CapRule(0.05)))

    assert outcome.verdict.choice.cap_watts == 300
    assert outcome.choice is None
    assert "no cap is worth it: 300 W was chosen, and measured anew" in outcome.because


def test_a_sweep_that_was_stopped_goes_on_where_it_was(tmp_path, v100, pynvml):
    plan = SweepPlan((150.0, 200.0), 2, CapRule(0.05))
    first = BoardTrials(v100, pynvml, fails_at=4)
    with pytest.raises(Stopped, match="exit code 3") as stopped:
        swept(tmp_path, first, plan)

    second = BoardTrials(v100, pynvml)
    said, slept = [], []
    swept(tmp_path, second, plan, said, slept)

    assert stopped.value.code == 3
    assert [key for key, _ in (*first.runs, *second.runs)][:7] == [f"sweep:{i}" for i in range(7)]
    assert len(first.runs) == 4
    assert slept == [2.0] * (len(second.runs) - 1)
    assert "2 more after it, about" in said[0] or "6 more after it, about" in said[0]

    third = BoardTrials(v100, pynvml)
    swept(tmp_path, third, plan)
    assert third.runs == []


def test_more_repeats_go_on_with_the_trials_of_fewer(tmp_path, v100, pynvml):
    swept(tmp_path, BoardTrials(v100, pynvml), SweepPlan((150.0, 200.0), 1, CapRule(0.05), pairs=0))
    more = BoardTrials(v100, pynvml)

    swept(tmp_path, more, SweepPlan((150.0, 200.0), 2, CapRule(0.05), pairs=0))

    assert [key for key, _ in more.runs] == ["sweep:4", "sweep:5", "sweep:6"]


def test_a_journal_of_another_sweep_is_refused_and_a_torn_line_left_out(tmp_path):
    path, own = tmp_path / "sweep.jsonl", identity(["a"], [200], seed=0, same_lines=None, is_dry=False)
    with opened_journal(path, own) as journal:
        journal.add(Tried("sweep:0", None, 1.0, 2.0))
        with pytest.raises(CarbonreportError, match="another process goes on"), opened_journal(path, own):
            pass
    path.write_text(path.read_text() + '{"type":"trial","key":"swe')

    with opened_journal(path, own) as journal:
        assert journal.get("sweep:0") == Tried("sweep:0", None, 1.0, 2.0)
        journal.add(Tried("sweep:1", 200, 1.0, 2.0))
    with opened_journal(path, own) as journal:
        assert journal.get("sweep:1") == Tried("sweep:1", 200, 1.0, 2.0)
    for other, words in (
        (identity(["b"], [200], seed=0, same_lines=None, is_dry=False), "another command"),
        (identity(["a"], [300], seed=0, same_lines=None, is_dry=False), "other caps"),
    ):
        with pytest.raises(CarbonreportError, match=words), opened_journal(path, other):
            pass


BOARDS = (("GPU-1", 250.0), ("GPU-0", 250.0))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"boards": (("GPU-0", 250.0), ("GPU-2", 250.0))}, r"other boards \(GPU-0, GPU-1\)"),
        ({"boards": (("GPU-0", 250.0),)}, "other boards"),
        ({"boards": (("GPU-0", 250.0), ("GPU-1", 300.0))}, "other power limits .GPU-1 had 250 W, and has 300 W"),
        ({"boards": (("GPU-0", None), ("GPU-1", 250.0))}, "GPU-0 had 250 W, and has none"),
        ({"host": "ef01"}, "another host"),
        ({"interval_s": 0.5}, r"another --interval \(1 s\)"),
    ],
)
def test_trials_of_other_boards_limits_hosts_or_intervals_are_never_mixed(tmp_path, changed, words):
    path, common = tmp_path / "sweep.jsonl", {"seed": 0, "same_lines": None, "is_dry": False}
    own = {"boards": BOARDS, "host": "abcd", "interval_s": 1.0}
    with opened_journal(path, identity(["a"], [200], **common, **own)) as journal:
        journal.add(Tried("sweep:0", None, 1.0, 2.0))

    with pytest.raises(CarbonreportError, match=words) as refused, opened_journal(path, identity(["a"], [200], **common, **own | changed)):
        pass
    assert "\n" not in str(refused.value) and "give another --out" in str(refused.value)
    in_another_order = own | {"boards": BOARDS[::-1]}
    with opened_journal(path, identity(["a"], [200], **common, **in_another_order)) as journal:
        assert journal.keys == ("sweep:0",)


def test_another_slowdown_goes_on_and_says_that_the_old_choice_measured_anew_is_not_used(tmp_path, v100, pynvml):
    plan = SweepPlan((150.0, 225.0), 2, CapRule(0.05), pairs=1)
    swept(tmp_path, BoardTrials(v100, pynvml), plan)
    more, said = BoardTrials(v100, pynvml), []

    outcome = swept(tmp_path, more, replace(plan, rule=CapRule(None)), said)

    assert outcome.choice.cap_watts == 150
    assert {key for key, _ in more.runs} == {"confirm:150:0:cap", "confirm:150:0:none"}
    assert "the choice is 150 W now: what was measured anew of 225 W is kept and not used" in said


def test_finished_trials_are_called_kept_only_where_one_is_finished(tmp_path):
    class Refusing:
        def __init__(self, after):
            self.after = after

        def run(self, key, cap_watts):
            if key == f"sweep:{self.after}":
                raise CarbonreportError("the trial says nothing")
            return Ended(0, Tried(key, cap_watts, 10.0, 100.0))

    for after, ending in ((0, "the trial says nothing"), (1, "finished trials are kept: the same command line goes on with them")):
        with pytest.raises(CarbonreportError) as ended:
            swept(tmp_path / str(after), Refusing(after), SweepPlan((300.0,), 1, CapRule(0.05)))
        assert str(ended.value).endswith(ending)


def test_the_outcome_is_what_when_reads(tmp_path, v100, pynvml):
    outcome = swept(tmp_path, BoardTrials(v100, pynvml), SweepPlan((100.0, 150.0, 200.0), 3, CapRule(0.10)))
    write_outcome(outcome, tmp_path / "sweep.json")

    (point,) = swept_caps(tmp_path / "sweep.json").points
    held = json.loads((tmp_path / "sweep.json").read_text())

    assert (point.cap_watts, point.energy_ratio) == (200, outcome.curve.at(200).energy.value)
    assert held["choice"]["promised"]["energy_ratio"] != held["choice"]["confirmed"]["energy_ratio"]
    assert [p["dominated"] for p in held["points"]] == [True, False, False]
