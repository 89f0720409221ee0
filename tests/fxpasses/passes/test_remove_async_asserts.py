"""Checks on tensor values go, with the math that fed only them; everything else stays."""

import pytest
import torch

from tests.fxpasses.programs import (
    assert_equal_to_eager,
    aten,
    calls,
    export,
    passed,
    results,
    run,
    trace,
)

PASS = "remove-async-asserts"
ASSERTS = (
    aten._assert_async.default,
    aten._assert_async.msg,
    aten._functional_assert_async.msg,
)


def with_message(x):
    torch._assert_async(torch.isfinite(x).all(), "x must be finite")
    return x * 2


def without_message(x):
    aten._assert_async(torch.isfinite(x).all())
    return x * 2


def with_tokens(x):
    first = aten._functional_assert_async((x < 9).all(), "big", aten._make_dep_token())
    aten._functional_assert_async((x > -9).all(), "small", first)
    return x * 2


@pytest.mark.parametrize("function", [with_message, without_message])
def test_the_check_and_its_math_go(draw, functional, function):
    program = run(PASS, export(function, draw.floats(4), functional=functional)).program
    assert [node.op for node in program.graph.nodes] == ["placeholder", "call_function", "output"]
    assert_equal_to_eager(program, function, draw.floats(4))


def test_the_functional_form_goes_with_its_tokens(draw):
    result = run(PASS, trace(with_tokens, draw.floats(4)), inputs=(draw.floats(4),))
    assert calls(result.program, *ASSERTS, aten._make_dep_token.default) == 0
    assert [node.op for node in result.program.graph.nodes][1:] == ["call_function", "output"]
    assert len(passed(result)) == 2


def test_a_token_that_is_returned_becomes_the_token_before(draw):
    def function(x):
        token = aten._make_dep_token()
        return x * 2, aten._functional_assert_async((x < 9).all(), "big", token)

    program = run(PASS, trace(function, draw.floats(4)), verify="metadata").program
    assert results(program)[1].target is aten._make_dep_token.default
    assert calls(program, *ASSERTS) == 0


def test_the_remark_quotes_the_message(draw):
    (remark,) = passed(run(PASS, export(with_message, draw.floats(4))))
    assert remark.reason == "removed the check 'x must be finite'"
    (remark,) = passed(run(PASS, export(without_message, draw.floats(4))))
    assert remark.reason == "removed the check"


def test_a_check_that_fails_no_longer_does(draw):
    program = export(with_message, draw.floats(4))
    wrong = torch.tensor([1.0, float("nan"), 2.0, 3.0])
    with pytest.raises(RuntimeError, match="finite"):
        program.module()(wrong)
    got = run(PASS, program).program.module()(wrong)
    torch.testing.assert_close(got, wrong * 2, equal_nan=True)


def test_math_that_somebody_else_reads_stays(draw, functional):
    def function(x):
        finite = torch.isfinite(x)
        torch._assert_async(finite.all(), "finite")
        return finite

    program = run(PASS, export(function, draw.floats(4), functional=functional)).program
    assert_equal_to_eager(program, function, draw.floats(4))
    assert calls(program, aten.all.default) == 0


def test_a_draw_that_fed_a_check_stays(draw, functional):
    """Dropping it would shift every later random number."""

    def function(x):
        torch._assert_async((torch.rand_like(x) < 2).all(), "random")
        return x + torch.rand_like(x)

    program = run(PASS, export(function, draw.floats(4), functional=functional)).program
    assert calls(program, aten.rand_like.default) == 2


def test_a_write_that_fed_a_check_stays(draw):
    def function(x):
        torch._assert_async((x.add_(1) < 99).all(), "written")
        return x * 2

    program = run(PASS, export(function, draw.floats(4))).program
    assert_equal_to_eager(program, function, draw.floats(4))


def test_a_check_on_a_size_stays(draw, functional):
    def function(x):
        count = x.nonzero().shape[0]
        torch._check(count >= 1)
        torch._assert_async(x.any(), "any")
        return x.nonzero() * 2

    program = export(function, torch.ones(4), functional=functional)
    kept = calls(program, aten._assert_scalar.default)
    program = run(PASS, program).program
    assert calls(program, aten._assert_scalar.default) == kept > 0
    assert calls(program, *ASSERTS) == 0


def test_inside_a_branch(draw, functional):
    def function(p, x):
        return torch.cond(p, with_message, lambda x: x + 1, (x,))

    inputs = torch.tensor(True), draw.floats(4)
    result = run(PASS, export(function, *inputs, functional=functional))
    assert calls(result.program, *ASSERTS, aten.all.default) == 0
    assert [remark.region for remark in passed(result)] == ["true_graph_0"]
    assert_equal_to_eager(result.program, function, *inputs)


def test_a_policy_head(draw, functional):
    """The check of a distribution's parameters fires while a compiler tunes; the policy stays."""

    class Policy(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mean = torch.nn.Linear(6, 3)
            self.register_buffer("scale", torch.full((3,), 0.3))

        def forward(self, x):
            mean = self.mean(x)
            valid = torch.isfinite(mean).all(-1) & (self.scale > 0).all()
            torch._assert_async(valid.all(), "invalid parameters")
            return mean.tanh(), mean * self.scale

    policy = Policy().requires_grad_(False)
    program = run(PASS, export(policy, draw.floats(2, 6), functional=functional)).program
    assert calls(program, *ASSERTS, aten.bitwise_and.Tensor) == 0
    assert_equal_to_eager(program, policy, draw.floats(2, 6))
