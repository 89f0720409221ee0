"""Groups of passes that repeat until nothing changes."""

from dataclasses import dataclass

import pytest
import torch

from fxpasses import (
    InvalidPipeline,
    NoFixpoint,
    Pass,
    Pipeline,
    Registry,
    RewritePass,
    register_pass,
)
from fxpasses.fixpoint import Fixpoint
from fxpasses.patterns import op, var
from tests.fxpasses.programs import export, named, run

aten = torch.ops.aten
known = Registry()


@register_pass("swap-to-sub", into=known)
@dataclass(frozen=True)
class SwapToSub(RewritePass):
    """x + 1 -> x - -1, one node a round."""

    pattern = op(aten.add.Tensor, var("x"), 1)

    def rewrite(self, node, match, editor):
        with editor.at(node):
            editor.replace(node, editor.call(aten.sub.Tensor, match["x"], -1))
        return "plus became minus"


@register_pass("swap-to-add", into=known)
@dataclass(frozen=True)
class SwapToAdd(RewritePass):
    """The way back."""

    pattern = op(aten.sub.Tensor, var("x"), -1)

    def rewrite(self, node, match, editor):
        with editor.at(node):
            editor.replace(node, editor.call(aten.add.Tensor, match["x"], 1))
        return "minus became plus"


@register_pass("drop-outer-negation", into=known)
@dataclass(frozen=True)
class DropOuterNegation(RewritePass):
    """-(-x) -> x, the outermost pair only, so that several rounds are needed."""

    inner = op(aten.neg.default, var("x"))
    pattern = op(aten.neg.default, inner, where=lambda node: not _in_negation(node))

    def rewrite(self, node, match, editor):
        editor.replace(node, match["x"])
        return "two negations became none"


def _in_negation(node):
    return any(user.target is aten.neg.default for user in node.users)


@pytest.fixture(scope="module")
def plus_one():
    class Module(torch.nn.Module):
        def forward(self, x):
            return x + 1

    return torch.export.export(Module(), (torch.randn(3),))


@pytest.fixture(scope="module")
def negations():
    class Module(torch.nn.Module):
        def forward(self, x):
            for _ in range(6):
                x = -x
            return x.sin()

    return torch.export.export(Module(), (torch.randn(3),))


def test_a_group_runs_until_it_settles(negations):
    result = Pipeline.parse("(drop-outer-negation)*", known).run(negations, verify="numeric")
    assert len(result.remarks) == 3
    assert [report.changed for report in result.reports] == [True, True, True, False]


def test_passes_that_undo_each_other_are_an_error(plus_one):
    with pytest.raises(NoFixpoint) as error:
        Pipeline.parse("(swap-to-sub,swap-to-add)*3", known).run(plus_one)
    assert "after 3 rounds" in str(error.value)
    assert "plus became minus" in str(error.value)
    assert "minus became plus" in str(error.value)


@pytest.mark.parametrize(
    "text",
    ["(swap-to-sub,swap-to-add)*", "(swap-to-sub)*4,swap-to-add", "swap-to-add,(swap-to-sub)*"],
)
def test_groups_parse_and_print(text):
    assert str(Pipeline.parse(text, known)) == text


@pytest.mark.parametrize(
    "text", ["(swap-to-sub)", "(swap-to-sub)*0", "(swap-to-sub)*x", "(swap-to-sub", "swap-to-sub)*"]
)
def test_half_a_group_is_refused_with_its_column(text):
    with pytest.raises(InvalidPipeline, match="at column"):
        Pipeline.parse(text, known)


def test_no_round_is_no_group():
    with pytest.raises(InvalidPipeline, match="one round or more, not 0"):
        Fixpoint((), 0)


@pytest.mark.parametrize("verify", ["off", "structure"])
def test_what_is_undone_settles_at_every_level(draw, verify):
    @named("test.undo")
    @dataclass(frozen=True)
    class Undo(Pass):
        """Inserts a node and takes it out again."""

        def run(self, editor):
            (node,) = editor.find(aten.relu.default)
            with editor.at(node):
                inserted = editor.call(aten.neg.default, node.args[0])
            editor.erase(inserted)

    result = run([Fixpoint((Undo(),))], export(lambda x: x.relu(), draw.floats(2)), verify=verify)
    assert not result.changed
