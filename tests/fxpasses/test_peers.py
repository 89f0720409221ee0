"""What other rewriters of FX graphs get wrong; docs/peers.md shows each of them doing it.

The tests are about us alone: a peer that is mended in another version of torch breaks none.
"""

from dataclasses import dataclass

import pytest
import torch

from fxpasses import (
    Listener,
    MissingRequirement,
    OrderingCycle,
    Pass,
    Pipeline,
    Registry,
    RewritePass,
    VerificationFailed,
    register_pass,
)
from fxpasses.patterns import op, var
from tests.fxpasses.programs import assert_equal_to_eager, calls, export, named, passed, run

aten = torch.ops.aten


def passes(**constraints) -> Registry:
    """Passes a, b and c that do nothing, each with what it declares."""
    known = Registry()
    for name in "abc":
        cls = dataclass(frozen=True)(type(name.upper(), (Pass,), {"__module__": __name__}))
        register_pass(name, into=known, **constraints.get(name, {}))(cls)
    return known


def ordered(text, **constraints) -> str:
    return str(Pipeline.parse(text, passes(**constraints)))


@named("t.fused-multiply-add")
@dataclass(frozen=True)
class MultiplyAdd(RewritePass):
    """Write x * y + y as (x + 1) * y: not the same bits, and easy to count."""

    pattern = op(aten.add.Tensor, op(aten.mul.Tensor, var("x"), var("y")), var("y"))

    def rewrite(self, node, match, editor):
        with editor.at(node):
            one_more = editor.call(aten.add.Tensor, match["x"], 1)
            editor.replace(node, editor.call(aten.mul.Tensor, one_more, match["y"]))
        return "x * y + y became (x + 1) * y"


@named("t.square")
@dataclass(frozen=True)
class Square(RewritePass):
    """Write x ** 2 as x * x."""

    pattern = op(aten.pow.Tensor_Scalar, var("x"), 2)

    def rewrite(self, node, match, editor):
        with editor.at(node):
            editor.replace(node, editor.call(aten.mul.Tensor, match["x"], match["x"]))
        return "x ** 2 became x * x"


@named("t.concat")
@dataclass(frozen=True)
class Concat(RewritePass):
    """Another name for the same operator, whose operand is a list."""

    pattern = op(aten.cat.default, var("tensors"), var("dim"))

    def rewrite(self, node, match, editor):
        with editor.at(node):
            new = editor.call(aten.concat.default, match["tensors"], match["dim"])
        editor.replace(node, new)
        return "cat became concat"


def test_r1_declared_order_is_kept():
    assert ordered("b,a", a={"before": ["b"]}) == "a,b"


def test_r2_an_absent_requirement_is_an_error():
    with pytest.raises(MissingRequirement, match="a requires b"):
        ordered("a", a={"requires": ["b"]})


def test_r3_a_pass_may_be_listed_twice():
    assert ordered("a,b,a", a={"before": ["b"]}) == "a,b,a"


def test_r4_a_cycle_says_who_declared_it():
    with pytest.raises(OrderingCycle) as caught:
        ordered("a,b", a={"before": ["b"]}, b={"before": ["a"]})
    assert "a declares before=b" in str(caught.value)
    assert "b declares before=a" in str(caught.value)


def test_r5_what_no_constraint_moves_stays():
    assert ordered("b,a,c", a={"before": ["b"]}) == "a,b,c"


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x * y + y,
        lambda x, y: y + x * y,
        lambda x, y: y * x + y,
        lambda x, y: y + y * x,
    ],
    ids=["x*y+y", "y+x*y", "y*x+y", "y+y*x"],
)
def test_r6_operands_may_stand_either_way(function, draw):
    result = run(MultiplyAdd(), export(function, draw.floats(3), draw.floats(3)), "metadata")
    assert len(passed(result)) == 1


def test_r7_branches_are_rewritten(draw):
    def branches(x):
        return torch.cond(x.sum() > 0, lambda x: x**2, lambda x: x + 1, (x,))

    x = draw.floats(3)
    result = run(Square(), export(branches, x))
    assert [remark.region for remark in passed(result)] == ["true_graph_0"]
    assert calls(result.program, aten.pow.Tensor_Scalar) == 0
    for inputs in (x.abs(), -x.abs()):
        assert_equal_to_eager(result.program, branches, inputs)


def test_r8_new_nodes_carry_metadata(draw):
    result = run(Square(), export(lambda x: x**2 + 1, draw.floats(3, 2)))
    (new,) = (node for node in result.program.graph.nodes if node.target is aten.mul.Tensor)
    assert new.meta["val"].shape == (3, 2)
    assert "forward" in new.meta["stack_trace"]
    (source,) = new.meta["from_node"]
    assert (source.name, source.pass_name) == ("pow_1", "t.square")


def test_r9_stale_metadata_is_caught(draw):
    @named("t.stale")
    @dataclass(frozen=True)
    class Stale(Pass):
        """Inserts a node in the right way, and forgets who reads it."""

        def run(self, editor):
            (node,) = editor.find(aten.cos.default)
            with editor.at(node):
                new = editor.call(aten.unsqueeze.default, node.args[0], 0)
            node.args = (new,)

    program = export(lambda x: x.cos(), draw.floats(3, 4))
    with pytest.raises(VerificationFailed, match="records"):
        run(Stale(), program, "metadata")
    silent = run(Stale(), program, "structure").program  # all that torch itself checks
    silent.graph.lint()
    silent.validate()


def test_r10_matches_may_touch_through_a_list(draw):
    def chained(x, y, z):
        return torch.cat([torch.cat([x, y], 1), z], 1)

    inputs = [draw.floats(2, size) for size in (1, 2, 3)]
    result = run(Concat(), export(chained, *inputs))
    assert calls(result.program, aten.concat.default) == 2
    assert calls(result.program, aten.cat.default) == 0
    assert_equal_to_eager(result.program, chained, *inputs)


def test_r11_nothing_to_do_does_nothing(draw):
    class Visits(Listener):
        """Every time that a pass looks at a graph."""

        count = 0

        def before(self, pass_, region):
            self.count += 1

    program, visits = export(lambda x: x + 1, draw.floats(3)), Visits()
    result = run("default", program, "metadata", listeners=[visits])
    assert not result.changed
    assert result.program is program
    assert visits.count == 0


def test_r12_every_match_is_rewritten(draw):
    def powers(x):
        for _ in range(500):
            x = (x**2).sin().cos()
        return x

    x = draw.floats(3)
    result = run(Square(), export(powers, x))
    assert len(passed(result)) == 500
    assert calls(result.program, aten.pow.Tensor_Scalar) == 0
    assert_equal_to_eager(result.program, powers, x)
