"""The oracle sees every kind of difference that a pass can make."""

import contextlib

import torch
from hypothesis import HealthCheck, given, settings

from fxpasses import Pipeline
from fxpasses.testing.generators import fx_programs
from fxpasses.testing.oracle import NotExportable, difference, judge, outcome
from fxpasses.testing.plan import Plan, Statement
from fxpasses.testing.shrink import shrink
from fxpasses.testing.tensors import Buffer, Input

X, M = Input("x"), Input("m", torch.bool)
STATE = Buffer("state")


def line(text, target="", **operands):
    return Statement(text, operands, target)


def plan(*statements, results=("x",), inputs=(X, M), buffers=()):
    return Plan(inputs, buffers, statements, results)


def seen(left, right):
    """What tells two plans apart, by what their modules do."""
    return difference(*(outcome(lambda p=p: p.module("eager"), p) for p in (left, right)))


def test_equal_programs():
    doubled = plan(line("{x} + {x}", "y", x="x"), results=("y",))
    assert seen(doubled, plan(line("{x} * 2", "y", x="x"), results=("y",))) == ""


def test_values():
    one, two = (plan(line(f"{{x}} + {n}", "y", x="x"), results=("y",)) for n in (1, 2))
    assert seen(one, two).startswith("call 0: output 0 differs: torch.float32")


def test_the_sign_of_zero():
    zero, minus = (plan(line(f"{{x}} * 0 {s} 0.0", "y", x="m"), results=("y",)) for s in "+-")
    assert seen(zero, minus) == ""  # 0 - 0.0 is 0.0
    minus = plan(line("-({x} * 0.0)", "y", x="m"), results=("y",))
    assert "output 0 differs" in seen(zero, minus)


def test_strides():
    turned = "{x}.t().contiguous().t()"
    left, right = (plan(line(t, "y", x="x"), results=("y",)) for t in (turned, "{x}.clone()"))
    assert "strides (1, 3) became" in seen(left, right)


def test_an_output_that_shares_memory():
    left, right = (plan(line(t, "y", x="x"), results=("y",)) for t in ("{x}", "{x}.clone()"))
    assert seen(left, right).startswith("call 0: memory differs")


def test_a_write_to_an_input():
    assert "input 0 differs" in seen(
        plan(results=("m",)), plan(line("{x}.add_(1)", x="x"), results=("m",))
    )


def test_a_write_to_a_buffer_shows_after_the_call():
    kept = plan(line("{s} + 0", "y", s="self.state"), results=("y",), buffers=(STATE,))
    counted = plan(
        line("{s} + 0", "y", s="self.state"),
        line("{s}.add_(1)", s="self.state"),
        results=("y",),
        buffers=(STATE,),
    )
    assert seen(kept, counted).startswith("call 0: buffer state differs")


def test_one_that_raises():
    assert "one of the two raised" in seen(plan(), plan(line("{x}.view(5)", x="x")))


def test_the_smallest_plan_with_a_fault():
    large = plan(
        line("{x} + 1", "a", x="x"),
        line("{a} * 2", "b", a="a"),
        line("{b}[{m}]", "c", b="b", m="m"),
        results=("a", "b", "c"),
    )

    def fails(candidate):
        return any("[{m}]" in statement.text for statement in candidate.statements)

    found = shrink(large, fails)
    assert [statement.text for statement in found.statements] == ["{b}[{m}]"]
    assert len(found.results) == 1


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(fx_programs())
def test_the_strategy_draws_programs_that_run(drawn):
    with contextlib.suppress(NotExportable):
        judge(drawn, Pipeline.parse("default"))
