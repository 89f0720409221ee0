"""A rewrite is a pattern, guards in order, and a replacement."""

from dataclasses import dataclass

import pytest
import torch

from fxpasses import YES, InvalidPass, RewritePass, Verdict, guard, no
from fxpasses.patterns import op, var
from tests.fxpasses.programs import assert_equal_to_eager, aten, export, missed, named, passed, run


@named("test.square")
@dataclass(frozen=True)
class Square(RewritePass):
    """x ** 2 -> x * x."""

    pattern = op(aten.pow.Tensor_Scalar, var("base"), var("exponent"))

    @guard
    def squares(self, node, match, editor):
        return YES if match["exponent"] == 2 else no(f"the exponent is {match['exponent']}")

    @guard
    def small(self, node, match, editor):
        return YES if node.meta["val"].numel() < 9 else no("it is large")

    def rewrite(self, node, match, editor):
        with editor.at(node):
            editor.replace(node, editor.call(aten.mul.Tensor, match["base"], match["base"]))
        return "x ** 2 became x * x"


@named("test.cautious")
@dataclass(frozen=True)
class Cautious(Square):
    """Square, with a guard more and another one stricter."""

    @guard
    def last(self, node, match, editor):
        return no("never")

    @guard
    def squares(self, node, match, editor):
        return YES


def power(x):
    return x**2 + x**3


def test_what_matches_and_passes_every_guard_is_rewritten(draw):
    program = export(power, draw.floats(4))
    result = run(Square(), program)
    (rewritten,) = passed(result)
    assert (rewritten.node, rewritten.reason) == ("pow_1", "x ** 2 became x * x")
    assert missed(result) == {"squares": "the exponent is 3"}
    assert_equal_to_eager(result.program, power, draw.floats(4))
    (report,) = result.reports
    assert (report.tried, report.matched, report.rewrites) == (2, 2, 1)


def test_the_first_refusal_counts(draw):
    result = run(Square(), export(lambda x: x**3, draw.floats(9)))
    assert missed(result) == {"squares": "the exponent is 3"}
    assert missed(run(Square(), export(lambda x: x**2, draw.floats(9)))) == {"small": "it is large"}


def test_guards_are_in_the_order_of_writing_bases_first():
    assert Square.guards() == ["squares", "small"]
    assert Cautious.guards() == ["squares", "small", "last"]
    assert Cautious.targets == (aten.pow.Tensor_Scalar,)


def test_a_guard_can_be_switched_off(draw):
    program = export(lambda x: x**2, draw.floats(9))
    assert not run(Square(), program).changed
    assert run(Square().without("small"), program).changed
    assert run(Cautious().without("small", "last"), program).changed
    assert run(Cautious().without("small").without("last"), program).changed


def test_switching_off_leaves_the_pass_itself_alone():
    pass_ = Square()
    assert pass_.without("small").skipped == {"small"}
    assert pass_.skipped == Square.skipped == frozenset()


def test_an_unknown_guard_is_named():
    with pytest.raises(InvalidPass, match=r"no guard 'smal'; it has: squares, small"):
        Square().without("smal")


@pytest.mark.parametrize("answer", [True, "because", None])
def test_a_guard_answers_with_a_verdict(draw, answer):
    @named("test.vague")
    @dataclass(frozen=True)
    class Vague(Square):
        """A guard that answers like a predicate."""

        @guard
        def squares(self, node, match, editor):
            return answer

    with pytest.raises(InvalidPass, match=r"test\.vague\.squares returned .*: return YES or no"):
        run(Vague(), export(power, draw.floats(4)))


def test_a_pass_without_pattern_or_rewrite_is_named(draw):
    @named("test.bare")
    @dataclass(frozen=True)
    class Bare(RewritePass):
        """Nothing but targets."""

        targets = (aten.pow.Tensor_Scalar,)

    @named("test.half")
    @dataclass(frozen=True)
    class Half(RewritePass):
        """Nothing but a pattern."""

        pattern = Square.pattern

    program = export(power, draw.floats(4))
    with pytest.raises(InvalidPass, match="Bare has no pattern and no match"):
        run(Bare(), program)
    with pytest.raises(InvalidPass, match="Half does not define rewrite"):
        run(Half(), program)


def test_a_node_that_an_earlier_rewrite_erased_is_not_tried(draw):
    """(x ** 2) ** 2: the outer rewrite does not resurrect the inner node, nor the reverse."""

    def function(x):
        return (x**2) ** 2

    result = run(Square(), export(function, draw.floats(4)), verify="metadata")
    assert len(passed(result)) == 2
    assert_equal_to_eager(result.program, lambda x: (x * x) * (x * x), draw.floats(4))


def test_a_limit_stops_after_so_many(draw):
    program = export(lambda x: x**2 + (x + 1) ** 2 + (x + 2) ** 2, draw.floats(4))
    assert [len(passed(run(Square(), program, limit=n))) for n in (0, 1, 2, 3, 9)] == [
        0,
        1,
        2,
        3,
        3,
    ]


def test_verdicts():
    assert YES
    assert not no("it differs")
    assert no("it differs").reason == "it differs"
    assert Verdict() == YES
    with pytest.raises(ValueError, match="needs a reason"):
        no("")


@named("test.swap")
@dataclass(frozen=True)
class Swap(RewritePass):
    """x + y -> y + x, which eager computes to the same bits."""

    pattern = op(aten.add.Tensor, var("x"), var("y"))

    def rewrite(self, node, match, editor):
        with editor.at(node):
            editor.replace(node, editor.call(aten.add.Tensor, match["y"], match["x"]))
        return "the operands changed places"


def test_a_rewrite_that_reads_both_sides_of_a_cond_keeps_the_order(draw):
    """One operand comes before an operator that is left alone, the other from a cond after it."""

    def around(x):
        before = x.sin() + x
        spectrum = torch.linalg.svdvals(before)
        chosen = torch.cond(spectrum.sum() > 0, lambda t: t + t * 2, lambda t: t - 1, (before,))
        return before + chosen, spectrum

    program = export(around, draw.floats(3, 4))
    result = run(Swap(), program)
    assert len(passed(result)) == 3
    order = list(result.program.graph.nodes)
    assert all(order.index(r) < order.index(n) for n in order for r in n.all_input_nodes)
    branches = [n for n in order if n.op == "get_attr"]
    assert [n.next.op for n in branches] == ["get_attr", "call_function"]  # beside their cond
    assert_equal_to_eager(result.program, around, draw.floats(3, 4))
