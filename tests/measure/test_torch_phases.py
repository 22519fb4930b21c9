"""Forward, backward, optimiser and modules of the real PyTorch begin phases, and the program runs as it ran without hooks."""

import copy
import io
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import dataclass

import pytest

from carbonreport.measure.torch_phases import follow
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


def followed(model, steps=step, *, optimiser=True, **more):
    """Phases of one step in their order."""
    seen = []
    optimiser = torch.optim.AdamW(model.parameters()) if optimiser else None
    remove = follow(seen.append, model, optimiser, **more)
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
        "forward", "forward/0", "forward/0/2", "forward/0", "forward/0/3", "forward/0", "forward",
        "backward", "backward/0/3", "backward/0/2", "backward/0", "optimiser", "",
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


def test_a_forward_pass_that_needs_no_gradient_is_inference_and_ends_with_itself():
    def steps(model, _):
        with torch.no_grad():
            model(torch.ones(4, 8))

    assert followed(network(), steps, modules=("2",)) == ["inference", "inference/2", "inference", ""]


@pytest.mark.parametrize(("is_reentrant", "end"), [(False, ["backward/a", "optimiser", ""]), (True, ["backward/a", "optimiser", ""])])
def test_what_is_computed_again_in_the_backward_pass_is_a_part_of_it(is_reentrant, end):
    from torch.utils.checkpoint import checkpoint

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 1)

        def forward(self, x):
            return self.b(checkpoint(self.a, x.requires_grad_(), use_reentrant=is_reentrant))

    assert followed(Model(), modules=("a",)) == ["forward", "forward/a", "forward", "backward", *end]


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


class Breaking(nn.Module):
    """Raises in the middle where it is told to."""

    def __init__(self):
        super().__init__()
        self.inner, self.is_broken = network(), False

    def forward(self, x):
        y = self.inner(x)
        if self.is_broken:
            raise ValueError("a batch that cannot be used")
        return y


def test_a_forward_pass_that_raises_ends_there():
    def steps(model, optimiser):
        model.is_broken = True
        with pytest.raises(ValueError, match="a batch that cannot be used"):
            model(torch.ones(4, 8))
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            model(torch.ones(4, 7))
        model.is_broken = False
        step(model, optimiser)

    inner = ["forward", "forward/inner", "forward"]
    assert followed(Breaking(), steps, modules=("inner",)) == [
        *inner,
        "",
        *inner,
        "",
        *inner,
        "backward/inner",
        "optimiser",
        "",
    ]


def test_a_module_that_is_called_by_itself_is_a_phase_of_its_own():
    def steps(model, optimiser):
        model.inner(torch.ones(4, 8)).mean().backward()
        optimiser.step()

    assert followed(Breaking(), steps, modules=("inner",)) == ["forward/inner", "", "backward/inner", "optimiser", ""]


class Wrong(dict):
    """A mapping that cannot be looked through."""

    def values(self):
        raise KeyError("lazy")


def test_what_hooks_raise_is_a_note_and_never_the_programs_trouble():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(8, 1)

        def forward(self, x):
            return Wrong(y=self.inner(x))

    model, seen = Model(), []
    one = follow(seen.append, model)
    for _ in range(2):
        model(torch.ones(4, 8))["y"].mean().backward()

    assert [note.slug for note in one.notes] == ["tracer-degraded"]
    assert "following a model failed (KeyError" in one.notes[0].text
    assert seen == ["forward", ""]


def test_an_output_that_holds_itself_or_a_million_things_costs_little():
    endless = [1.0]
    endless.append(endless)

    class Model(nn.Module):
        def forward(self, x):
            return {"endless": endless, "long": [0] * 1_000_000}

    assert followed(Model(), lambda model, _: model(torch.ones(1)), optimiser=False) == ["forward", ""]


def test_a_model_that_was_compiled_and_one_of_many_gpus_keep_the_names_of_their_modules():
    class DistributedDataParallel(nn.Module):
        """Holds the model as PyTorch's does."""

        def __init__(self, model):
            super().__init__()
            self.module = model

        def forward(self, x):
            return self.module(x)

    for model in (DistributedDataParallel(network()), DistributedDataParallel(torch.compile(network(), backend="eager"))):
        follow(print, model, modules=("2",))()
    assert followed(DistributedDataParallel(network()), modules=("2",))[:3] == ["forward", "forward/2", "forward"]


def test_a_module_that_runs_again_and_again_has_as_many_backward_passes():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.cell = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            x = self.first(x)
            for _ in range(3):
                x = self.cell(x)
            return x.tanh()

    seen = followed(Model(), modules=("cell",))
    assert seen[:7] == ["forward", "forward/cell", "forward", "forward/cell", "forward", "forward/cell", "forward"]
    assert seen[7:] == ["backward", *["backward/cell"] * 3, "backward", "optimiser", ""]


@pytest.mark.parametrize("change", ["relu_", "identity"])
def test_a_module_whose_output_is_its_input_keeps_no_more_than_its_own(change):
    class Change(nn.Module):
        def forward(self, x):
            return x.relu_() if change == "relu_" else x

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.change, self.last = nn.Linear(8, 8), Change(), nn.Linear(8, 1)

        def forward(self, x):
            return self.last(self.change(self.first(x)))

    seen = followed(Model(), modules=("first", "change"))
    assert [name for name in seen if name.startswith("backward")][-1] == "backward/first"


def test_a_list_of_modules_that_never_runs_itself_takes_no_time():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.head = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)]), nn.Linear(8, 1)

        def forward(self, x):
            for layer in self.layers:
                x = layer(x).tanh()
            return self.head(x)

    assert followed(Model(), modules=("layers", "layers.1")) == [
        "forward", "forward/layers/1", "forward", "backward", "backward/layers/1", "backward", "optimiser", "",
    ]  # fmt: skip


def test_an_input_that_lives_on_is_hooked_once():
    model = network()
    x = nn.Linear(8, 8)(torch.ones(4, 8))
    follow(print, nn.Sequential(model), modules=("0",))
    for _ in range(50):
        model(x)

    assert len(x._backward_hooks) == 1


class Answer(dict):
    """A mapping whose attributes are its keys, and which raises KeyError for others."""

    __getattr__ = dict.__getitem__


def test_mappings_with_attributes_and_models_that_are_drawn_are_no_trouble():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network()

        def forward(self, x):
            return Answer(loss=self.inner(x).mean())

    def steps(model, optimiser):
        torch.fx.symbolic_trace(model.inner)
        model(torch.ones(4, 8)).loss.backward()
        optimiser.step()

    assert followed(Model(), steps) == STEP


def test_a_layer_that_hooks_slow_down_is_named(tmp_path):
    with trace("slowed", out=tmp_path) as run:
        model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
        run.follow(model, modules=("layers.0",))
        with torch.no_grad():
            model(torch.ones(1, 4, 8))

    (note,) = [note for note in run.record.notes if note.slug == "phases-slowed"]
    assert note.text.startswith("layers.0: with a hook in it PyTorch leaves out the fast path")


def test_an_optimiser_that_is_compiled_is_missed_aloud(tmp_path):
    with trace("compiled step", out=tmp_path) as run:
        model = network()
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        run.follow(model, optimiser)
        optimiser.step = torch.compile(optimiser.step, backend="eager")
        step(model, optimiser)

    assert any("its optimiser: followed and never seen to run" in note.text for note in run.record.notes)


def test_passes_end_with_the_block_around_them(tmp_path):
    with trace("blocks", out=tmp_path) as run:
        model = network()
        run.follow(model)
        with run.span("step"):
            model(torch.ones(4, 8)).mean().backward()
        with run.span("rest"):
            time.sleep(0.3)

    seconds = {span.path: span.seconds for span in run.record.spans}
    assert seconds["step/backward"] < 0.25 and seconds["rest"] >= 0.3


def test_two_models_of_one_run_have_spans_of_their_own(tmp_path):
    with trace("gan", out=tmp_path) as run:
        models = {name: network() for name in ("generator", "critic")}
        optimisers = {name: torch.optim.SGD(model.parameters(), 0.1) for name, model in models.items()}
        for name, model in models.items():
            run.follow(model, optimisers[name], name=name)
        for _ in range(2):
            for name, model in models.items():
                step(model, optimisers[name])

    assert {span.path: span.count for span in run.record.spans} == {
        f"{name}/{phase}": 2 for name in models for phase in ("forward", "backward", "optimiser")
    }  # fmt: skip


def test_a_model_that_is_followed_twice_is_counted_once(tmp_path):
    with trace("twice", out=tmp_path) as run:
        model = network()
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(3):
            run.follow(model, optimiser, modules=("2", "2"))
        step(model, optimiser)

    assert {span.path: span.count for span in run.record.spans} == dict.fromkeys(
        ("forward", "forward/2", "backward", "backward/2", "optimiser"), 1
    )  # fmt: skip
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in model.modules())
    assert not optimiser._optimizer_step_pre_hooks


def test_a_model_that_never_ran_where_hooks_can_see_it_is_named_in_a_note(tmp_path):
    with trace("compiled", out=tmp_path) as run:
        model = network()
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        run.follow(model, optimiser, modules=("2",))
        fast = torch.compile(model, backend="eager")
        step(fast, optimiser)

    (note,) = [note for note in run.record.notes if note.slug == "phases-unseen"]
    assert "the model, 2: followed and never seen to run" in note.text
    assert "follow torch.compile(model) itself" in note.text


def test_passes_in_several_threads_are_named_in_a_note(tmp_path):
    with trace("threads", out=tmp_path) as run:
        model = network()
        run.follow(model)
        for _ in range(2):
            one = threading.Thread(target=model, args=(torch.ones(4, 8),))
            one.start()
            one.join()
        model(torch.ones(4, 8))

    assert [note.slug for note in run.record.notes if note.slug.startswith("phases")] == ["phases-in-threads"]


@pytest.mark.parametrize(
    ("model", "modules", "message"),
    [
        ("resnet", (), "must be a torch.nn.Module, not str"),
        (None, (), "must be a torch.nn.Module, not NoneType"),
        (nn.Linear(1, 1), "mid", r"modules takes a tuple of names: modules=\('mid',\)"),
    ],
)
def test_what_cannot_be_followed_is_one_line(model, modules, message):
    with pytest.raises(ValueError, match=message):
        follow(print, model, modules=modules)


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
        "check": 1, "check/inference": 1, "check/inference/2": 1,
    }  # fmt: skip
