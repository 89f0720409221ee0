"""The first rewrite that broke a program."""

import math
from dataclasses import dataclass

import pytest
import torch

from fxpasses import NoFixpoint, Pass, PassError, Pipeline, Registry, RewritePass, register_pass
from fxpasses.bisect import bisect
from fxpasses.patterns import op, var

aten = torch.ops.aten
known = Registry()


@register_pass("double-by-adding", into=known)
@dataclass(frozen=True)
class DoubleByAdding(RewritePass):
    """x * k -> x + x, which is right for k = 2 alone: the guard is missing."""

    pattern = op(aten.mul.Tensor, var("x"), var("k", where=lambda k: isinstance(k, int)))

    def rewrite(self, node, match, editor):
        with editor.at(node):
            editor.replace(node, editor.call(aten.add.Tensor, match["x"], match["x"]))
        return f"times {match['k']} became a sum"


@register_pass("crash", into=known)
@dataclass(frozen=True)
class Crash(Pass):
    """Raises where it finds a sine."""

    targets = (aten.sin.default,)

    def run(self, editor):
        raise KeyError("sine")


class Scales(torch.nn.Module):
    def __init__(self, wrong):
        super().__init__()
        self.wrong = wrong

    def forward(self, x):
        for place in range(30):
            x = x * (3 if place == self.wrong else 2)
        return x.sin()


@pytest.fixture(scope="module", params=[0, 17, 29])
def scales(request):
    return request.param, torch.export.export(Scales(request.param), (torch.randn(4),))


def test_the_wrong_rewrite_is_found_in_log_n_runs(scales):
    wrong, program = scales
    culprit = bisect(program, Pipeline.parse("double-by-adding", known))
    assert (culprit.number, culprit.total, culprit.pass_name) == (wrong + 1, 30, "double-by-adding")
    assert "times 3 became a sum" in str(culprit)
    assert culprit.runs <= math.ceil(math.log2(30)) + 4
    before, after = culprit.before.splitlines(), culprit.after.splitlines()
    assert [line for line in before if line not in after] != []


def test_a_check_of_ones_own_decides(scales):
    _, program = scales

    def few_sums(program):
        return sum(node.target is aten.add.Tensor for node in program.graph.nodes) <= 10

    culprit = bisect(program, Pipeline.parse("double-by-adding", known), check=few_sums)
    assert culprit.number == 11


def test_a_pass_that_raises_is_the_culprit(scales):
    _, program = scales
    culprit = bisect(program, Pipeline.parse("crash", known), inputs=(torch.randn(4),))
    assert (culprit.pass_name, culprit.number) == ("crash", 1)
    assert "KeyError" in culprit.after


def test_a_good_pipeline_has_no_culprit(scales):
    _, program = scales
    assert bisect(program, Pipeline.parse("", known)) is None


def test_a_program_that_was_bad_before_is_no_pass_fault(scales):
    _, program = scales
    with pytest.raises(PassError, match="before any rewrite"):
        bisect(program, Pipeline.parse("double-by-adding", known), check=lambda program: False)


@register_pass("multiply-by-two", into=known)
@dataclass(frozen=True)
class MultiplyByTwo(RewritePass):
    """x + x -> x * 2, which undoes the pass above."""

    pattern = op(aten.add.Tensor, var("x"), var("x"))

    def rewrite(self, node, match, editor):
        with editor.at(node):
            editor.replace(node, editor.call(aten.mul.Tensor, match["x"], 2))
        return "a sum became times 2"


def test_rewrites_that_undo_each_other_are_all_right():
    program = torch.export.export(Scales(None), (torch.randn(4),))
    with pytest.raises(NoFixpoint, match="still changes after 3 rounds"):
        bisect(program, Pipeline.parse("(double-by-adding,multiply-by-two)*3", known))


@register_pass("behind", into=known)
@dataclass(frozen=True)
class Behind(Pass):
    """Edits without the editor."""

    def run(self, editor):
        node = editor.find(aten.mul.Tensor)[0]
        node.args = (node.args[0], 7)


def test_the_culprit_carries_the_error(scales):
    culprit = bisect(scales[1], Pipeline.parse("behind", known))
    assert "behind the editor's back" in str(culprit.error)
