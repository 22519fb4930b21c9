"""Forward, backward, optimiser and modules of the real PyTorch begin phases, and the program runs as it ran without hooks."""

import copy
import io
import subprocess
import sys
import warnings
from dataclasses import dataclass

import pytest

from carbonreport.measure.torch_phases import follow, is_compiling_here
from carbonreport.workflows.trace import trace

torch = pytest.importorskip(
    "torch", reason="torch is not installed: THE HOOKS OF PYTORCH ARE NOT TESTED (pip install 'carbonreport[torch]')"
)
nn = torch.nn

STEP = ["forward", "backward", "optimiser", ""]


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Linear(8, 4), nn.Linear(4, 1))


def step(model, optimiser, x=None):
    """One step as people write it; its loss."""
    optimiser.zero_grad()
    loss = model(torch.ones(4, 8) if x is None else x).pow(2).mean()
    loss.backward()
    optimiser.step()
    return float(loss.detach())


def followed(model, steps=step, **more):
    """Phases of one step in their order."""
    seen = []
    optimiser = torch.optim.AdamW(model.parameters())
    remove = follow(seen.append, model, optimiser, is_compiling=is_compiling_here(), **more)
    steps(model, optimiser)
    remove()
    return seen


def test_a_step_is_forward_backward_optimiser_and_what_is_between():
    assert followed(network()) == STEP


def test_inner_modules_are_phases_of_both_passes():
    assert followed(network(), modules=("2",)) == [
        "forward", "forward/2", "forward", "backward", "backward/2", "backward", "optimiser", "",
    ]  # fmt: skip


def test_of_neighbours_in_the_backward_pass_one_follows_the_other():
    assert followed(network(), modules=("2", "3"))[5:] == ["backward/3", "backward/2", "backward", "optimiser", ""]


def test_a_module_inside_another_gives_back_to_that_one():
    model = nn.Sequential(network(), nn.Linear(1, 1))

    assert followed(model, modules=("0", "0.2", "0.3")) == [
        "forward", "forward/0", "forward/0.2", "forward/0", "forward/0.3", "forward/0", "forward",
        "backward", "backward/0.3", "backward/0.2", "backward/0", "optimiser", "",
    ]  # fmt: skip


def test_a_first_module_whose_input_needs_no_gradient_ends_with_the_backward_pass():
    assert followed(network(), modules=("0",))[3:] == ["backward", "backward/0", "optimiser", ""]


@pytest.mark.parametrize("modules", [(), ("0",), ("0", "1", "2", "3")])
def test_weights_and_losses_are_those_without_hooks_to_the_last_bit(modules):
    plain, hooked = network(), network()
    optimisers = [torch.optim.AdamW(one.parameters()) for one in (plain, hooked)]
    follow(lambda _: None, hooked, optimisers[1], modules=modules)

    for _ in range(5):
        assert step(plain, optimisers[0]) == step(hooked, optimisers[1])
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), hooked.parameters(), strict=True))


def test_a_program_may_change_in_place_what_a_module_gave_back():
    def steps(model, optimiser):
        out = model(torch.ones(4, 8))
        out.add_(1.0).relu_()
        out.mean().backward()
        optimiser.step()

    assert followed(network(), steps, modules=("0", "3"))[-2:] == ["optimiser", ""]


def test_pytorch_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        followed(network(), modules=("0", "2"))


@dataclass
class Output:
    logits: object
    more: tuple = ()
    text: str = "unused"


@pytest.mark.parametrize(
    ("wrap", "unwrap"),
    [
        (lambda y: {"loss": y.mean(), "logits": y, "labels": torch.zeros(1), "cache": None}, lambda out: out["loss"]),
        (lambda y: (None, [y, y.detach()]), lambda out: out[1][0].mean()),
        (lambda y: Output(y), lambda out: out.logits.mean()),
    ],
    ids=["a mapping with a loss", "a list in a tuple", "a dataclass"],
)
def test_models_that_give_back_more_than_a_tensor_have_one_backward_pass(wrap, unwrap):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network()

        def forward(self, x):
            return wrap(self.inner(x))

    def steps(model, optimiser):
        unwrap(model(torch.ones(4, 8))).backward()
        optimiser.step()

    assert followed(Model(), steps) == STEP


def test_a_model_that_runs_twice_before_its_loss_has_one_backward_pass():
    def steps(model, optimiser):
        (model(torch.ones(4, 8)) + model(torch.zeros(4, 8))).mean().backward()
        optimiser.step()

    assert followed(network(), steps) == ["forward", *STEP]


def test_gradients_that_are_gathered_over_batches_are_passes_of_their_own():
    def steps(model, optimiser):
        for _ in range(2):
            model(torch.ones(4, 8)).mean().backward()
        optimiser.step()

    assert followed(network(), steps) == ["forward", "backward", *STEP]


def test_a_forward_pass_that_needs_no_gradient_ends_with_itself():
    def steps(model, _):
        with torch.no_grad():
            model(torch.ones(4, 8))

    assert followed(network(), steps) == ["forward", ""]


def test_a_module_that_is_recomputed_in_the_backward_pass_is_seen_there():
    from torch.utils.checkpoint import checkpoint

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 1)

        def forward(self, x):
            return self.b(checkpoint(self.a, x, use_reentrant=False))

    assert followed(Model(), modules=("a",)) == [
        "forward", "forward/a", "forward", "backward", "backward/a", "forward/a", "optimiser", "",
    ]  # fmt: skip


def test_arguments_by_name_are_inputs_too():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 1)

        def forward(self, x):
            return self.last(input=self.first(x)).tanh()

    assert followed(Model(), modules=("last",))[3:] == ["backward", "backward/last", "backward", "optimiser", ""]


def test_hooks_go_away_also_those_of_a_pass_that_is_under_way():
    seen, model = [], network()
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    remove = follow(seen.append, model, optimiser, modules=("2",))
    loss = model(torch.ones(4, 8)).mean()
    remove()
    loss.backward()
    optimiser.step()
    step(model, optimiser)

    assert seen == ["forward", "forward/2", "forward"]
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in model.modules())


def test_nothing_is_kept_of_a_step():
    model = network()
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    follow(lambda _: None, model, optimiser, modules=("0", "2"))
    for _ in range(3):
        step(model, optimiser)

    assert all(not one._backward_hooks for one in model.parameters())


def test_a_copy_is_not_followed_and_a_saved_model_needs_no_carbonreport(tmp_path):
    seen, model = [], network()
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    follow(seen.append, model, optimiser, modules=("2",))
    average = copy.deepcopy(model)
    average(torch.ones(4, 8)).mean().backward()
    assert seen == []

    torch.save(model, tmp_path / "model.pt")
    torch.save(optimiser.state_dict(), io.BytesIO())
    program = "import sys, torch; sys.modules['carbonreport'] = None; m = torch.load(sys.argv[1], weights_only=False); m(torch.ones(1, 8)).sum().backward()"
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "model.pt")], check=True, timeout=120)


def test_a_compiled_model_is_followed_from_outside():
    assert followed(torch.compile(network(), backend="aot_eager", fullgraph=True)) == STEP


def test_hooks_that_would_be_compiled_do_nothing_and_break_no_graph():
    model = network()
    model.compile(backend="aot_eager", fullgraph=True)

    assert followed(model) == ["optimiser", ""]


def test_a_step_that_a_scaler_skips_has_no_optimiser():
    def steps(model, optimiser):
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        for scale in (float("inf"), 1.0):
            optimiser.zero_grad()
            scaler.scale(model(torch.ones(4, 8)).mean() * scale).backward()
            scaler.step(optimiser)
            scaler.update()

    assert followed(network(), steps) == ["forward", "backward", *STEP]


@pytest.mark.parametrize("by_name", [True, False])
def test_where_the_optimiser_runs_the_passes_itself_it_begins_behind_them(by_name):
    losses = []

    def steps(model, optimiser):
        def closure():
            optimiser.zero_grad()
            loss = model(torch.ones(4, 8)).pow(2).mean()
            loss.backward()
            return loss

        losses.append(optimiser.step(closure=closure) if by_name else optimiser.step(closure))

    assert followed(network(), steps) == STEP
    assert losses[0].requires_grad


def test_a_schedule_of_learning_rates_does_not_hide_the_optimiser():
    def steps(model, optimiser):
        schedule = torch.optim.lr_scheduler.StepLR(optimiser, 1)
        for _ in range(2):
            step(model, optimiser)
            schedule.step()

    assert followed(network(), steps) == STEP * 2


def test_a_module_that_the_model_does_not_have_is_named():
    with pytest.raises(ValueError, match="no module 'attention'; it has 0, 1, 2, 3"):
        follow(print, network(), modules=("attention",))


@pytest.mark.parametrize("wrapped", [True, False])
def test_an_optimiser_without_hooks_is_named_and_no_hook_is_left(wrapped):
    model = network()

    class Wrapper(torch.optim.Optimizer):
        """As training frameworks make them: none of an optimiser's attributes is there."""

        def __init__(self, optimizer):
            self.optimizer = optimizer

    other = Wrapper(torch.optim.SGD(model.parameters(), 0.1)) if wrapped else [1]
    with pytest.raises(ValueError, match=f"{type(other).__name__} takes no hooks; give the torch.optim.Optimizer inside it"):
        follow(print, model, other)
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in model.modules())


def test_passes_of_a_model_are_spans_of_a_run(tmp_path):
    with trace("train", out=tmp_path) as run:
        model = network()
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        remove = run.follow(model, optimiser, modules=("2",))
        for _ in range(3):
            with run.span("step"):
                step(model, optimiser)
        with run.span("check"), torch.no_grad():
            model(torch.ones(4, 8))
        remove()
        step(model, optimiser)

    assert {span.path: span.count for span in run.record.spans} == {
        "step": 3, "step/forward": 3, "step/forward/2": 3, "step/backward": 3, "step/backward/2": 3, "step/optimiser": 3,
        "check": 1, "check/forward": 1, "check/forward/2": 1,
    }  # fmt: skip
