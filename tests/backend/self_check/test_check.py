"""A lowered program that differs from eager is refused, and the fault is told."""

import logging
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch

import backend
from backend import SelfCheck
from backend.compile import method
from backend.self_check import prove
from fxpasses import RewritePass, register_pass, registry

aten = torch.ops.aten


class Rolls(torch.nn.Module):
    """An indexed write into a buffer, then the buffer and its mirror image: Inductor reads rows
    that it has already overwritten."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.arange(24.0).reshape(6, 4))

    def forward(self, places, values):
        self.rows[places] = values
        self.rows.add_(self.rows.flip(0))
        return self.rows * 1


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count.add_(1)
        return self.count + x


class Scaled(torch.nn.Module):
    def forward(self, x):
        return x * 3, x + 1


def lowered(module, *inputs, **options):
    return backend.lower(torch.export.export(module, inputs), device="cpu", **options)


def refusal(module, *inputs, **options):
    with pytest.raises(backend.SelfCheckFailed) as caught:
        lowered(module, *inputs, **options)
    return str(caught.value)


@pytest.mark.compile
def test_a_miscompiled_write_is_refused_and_the_compiler_is_blamed():
    message = refusal(Rolls(), torch.tensor([0, 3]), torch.randn(2, 4))
    assert message.startswith('method "forward", call 1 (example inputs): output 0 differs in ')
    assert "the compiler is at fault" in message
    assert "\n" not in message


@pytest.mark.compile
def test_a_frozen_counter_is_refused_at_its_second_call(monkeypatch):
    monkeypatch.setattr(method, "may_fold", lambda program: True)
    assert "call 2 (perturbed inputs): output 0" in refusal(Counter(), torch.zeros(1))


@dataclass(frozen=True)
class ScaleWrongly(RewritePass):
    """Multiplies by 2 where the program says 3, and believes in it."""

    targets = (aten.mul.Tensor, aten.mul.Scalar)

    def match(self, node, editor):
        return True

    def rewrite(self, node, match, editor):
        with editor.at(node):
            editor.replace(node, editor.call(node.target, node.args[0], 2))
        return "scaled by 2"


@pytest.fixture
def wrong_pass(monkeypatch):
    """A registered pass that changes results."""
    monkeypatch.setattr(registry, "_passes", dict(registry._passes))
    register_pass("scale-wrongly")(ScaleWrongly)
    return "scale-wrongly"


@pytest.mark.compile
def test_a_wrong_pass_is_named(wrong_pass):
    message = refusal(Scaled(), torch.randn(3), passes=wrong_pass)
    assert "pass scale-wrongly changes the result: fxpasses bisect finds the rewrite" in message


class Stand:
    """A method that computes with Python, in place of a compiled one.

    Args:
        function: what a call gives.
        plan: of the program that it stands for.
        state: gives the buffers that it wrote.
    """

    name, pipeline = "forward", ""

    def __init__(self, program, function, state=dict):
        self.function, self.state_dict, self.calls = function, state, 0
        names = program.graph_signature.buffers_to_mutate.values()
        payload = SimpleNamespace(device="cpu", mutated_buffers=tuple(names), inputs=())
        unread = (None,) * len(program.graph_signature.user_inputs)
        self.plan = SimpleNamespace(payload=payload, inputs=unread)

    def __call__(self, *args):
        self.calls += 1
        return self.function(*args)


def check(module, function, *inputs, state=dict, **options):
    program = torch.export.export(module, inputs)
    method = Stand(program, function, state)
    prove({"forward": program}, {"forward": method}, SelfCheck(**options))
    return method


def test_a_method_that_agrees_is_called_as_often_as_asked():
    assert check(Scaled(), Scaled(), torch.randn(3), calls=6).calls == 6


def test_the_default_is_four_calls_on_different_inputs():
    seen = []

    def spy(x):
        seen.append(x)
        return Scaled()(x)

    check(Scaled(), spy, torch.randn(3))
    assert len({tuple(x.tolist()) for x in seen}) == 4


def test_a_difference_on_perturbed_inputs_alone_is_found():
    example = torch.ones(3)

    def frozen(x):
        return Scaled()(example)

    with pytest.raises(backend.SelfCheckFailed, match=r"call 2 \(perturbed inputs\): output 0"):
        check(Scaled(), frozen, example)


def test_a_wrong_buffer_behind_a_right_output_is_found():
    right = Counter()

    with pytest.raises(backend.SelfCheckFailed, match=r'call 1 .*buffer "count" differs in 1 of 1'):
        check(Counter(), right, torch.zeros(1), state=lambda: {"count": torch.zeros(1)})


def test_a_call_that_writes_into_its_input_does_not_reach_the_next_one():
    def greedy(x):
        result = Scaled()(x)
        x.zero_()
        return result

    example = torch.ones(3)
    check(Scaled(), greedy, example)
    assert torch.equal(example, torch.ones(3))


class Positive(torch.nn.Module):
    """Refuses what is not as in the example, after it has counted the call."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count.add_(1)
        torch.ops.aten._assert_async.msg((x == 1).all(), "only ones")
        return x + self.count


def test_inputs_that_eager_refuses_are_passed_over_and_do_not_count(caplog):
    def right(x):
        return x + 1

    with caplog.at_level(logging.INFO, "backend"):
        method = check(Positive(), right, torch.ones(2), state=lambda: {"count": torch.ones(1)})
    assert method.calls == 1
    assert caplog.text.count("eager does not take the perturbed inputs: only ones") == 3


def test_a_program_without_example_inputs_is_let_through_and_that_is_logged(caplog):
    program = torch.export.export(Scaled(), (torch.randn(3),))
    program.example_inputs = None
    with caplog.at_level(logging.INFO, "backend"):
        prove({"forward": program}, {}, SelfCheck())
    assert "'forward' is not checked" in caplog.text


class Noise(torch.nn.Module):
    def forward(self, x):
        return x + 1, torch.rand(3)


def test_random_outputs_are_not_compared_and_others_are():
    check(Noise(), lambda x: (x + 1, torch.rand(3)), torch.randn(2))
    with pytest.raises(backend.SelfCheckFailed, match="output 0 differs"):
        check(Noise(), lambda x: (x + 2, torch.rand(3)), torch.randn(2))
