"""A step marks its phases by spans or by the hooks of its model, and whoever measures it hears the same."""

import subprocess
import sys
from contextlib import nullcontext

import pytest

from carbonreport.workflows.plan_spans import Recorded, StepSpans, nobody, silent


def by_spans(span):
    with span("forward"), span("norm"):
        pass
    with span("backward"):
        pass


def test_phases_are_recorded_in_their_order_with_what_is_around_them():
    spans, recorded = StepSpans(), Recorded()
    with spans.heard(recorded.span, recorded.enter):
        by_spans(spans)

    assert recorded.names == ["forward", "forward/norm", "forward", "backward"]


def test_a_plan_is_told_each_phase_and_what_is_around_it_again():
    spans, told = StepSpans(), []
    with spans.heard(silent, nobody, told.append):
        by_spans(spans)
    by_spans(spans)

    assert told == ["forward", "forward/norm", "forward", "", "backward", ""]


def test_items_of_a_span_go_on_to_who_records():
    seen = []
    spans = StepSpans()
    with spans.heard(lambda name, **more: seen.append((name, more)) or nullcontext(), nobody, nobody), spans("eval", items=3):
        pass

    assert seen == [("eval", {"items": 3})]


def test_hooks_are_put_once_and_tell_whoever_listens():
    torch = pytest.importorskip(
        "torch", reason="torch is not installed: THE HOOKS OF A STEP ARE NOT TESTED (pip install 'carbonreport[torch]')"
    )
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    spans, recorded, entered, told = StepSpans(), Recorded(), [], []

    def step(span):
        span.follow(model, optimiser, modules=("1",))
        model(torch.ones(2, 4)).mean().backward()
        optimiser.step()

    with spans.heard(recorded.span, recorded.enter):
        step(spans)
    with spans.heard(silent, entered.append, told.append):
        for _ in range(2):
            step(spans)
            spans.end_step()
    spans.close()
    model(torch.ones(2, 4)).mean().backward()

    phases = ["forward", "forward/1", "forward", "backward/1", "backward", "optimiser"]
    assert recorded.names == phases
    assert entered == told == [*phases, "", ""] * 2
    assert not model._forward_hooks and not optimiser._optimizer_step_pre_hooks


def test_what_a_step_is_given_needs_no_pytorch():
    program = "import sys; import carbonreport.workflows.plan_spans; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
