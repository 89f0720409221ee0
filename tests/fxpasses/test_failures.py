"""What a failed check tells: the rewrites that the pass made, and the region before and after."""

from dataclasses import dataclass

import pytest
import torch

from fxpasses import Pipeline, Registry, RewritePass, VerificationFailed, register_pass
from fxpasses.patterns import op, var

aten = torch.ops.aten
known = Registry()


@register_pass("negate", into=known)
@dataclass(frozen=True)
class Negate(RewritePass):
    """sin(x) -> -x, which is wrong."""

    pattern = op(aten.sin.default, var("x"))

    def rewrite(self, node, match, editor):
        with editor.at(node):
            editor.replace(node, editor.call(aten.neg.default, match["x"]))
        return "a sine became a negation"


@register_pass("double-negation", into=known)
@dataclass(frozen=True)
class DoubleNegation(RewritePass):
    """cos(x) -> cos(-x), which is right, so that there is a pass before the wrong one."""

    pattern = op(aten.cos.default, var("x", where=lambda x: x.target is not aten.neg.default))

    def rewrite(self, node, match, editor):
        with editor.at(node):
            minus = editor.call(aten.neg.default, match["x"])
            editor.replace(node, editor.call(aten.cos.default, minus))
        return "a cosine is even"


def failure_of(function, in_place=False):
    class Module(torch.nn.Module):
        def forward(self, x):
            return function(x)

    program = torch.export.export(Module(), (torch.randn(3),))
    with pytest.raises(VerificationFailed) as error:
        Pipeline.parse("double-negation,negate", known).run(program, verify="numeric")
    return error.value


def test_a_single_rewrite_is_named():
    error = failure_of(lambda x: x.cos() + x.sin())
    assert "rewrote sin: a sine became a negation" in str(error)
    assert error.pass_name == "negate"


def test_among_several_rewrites_bisection_is_named():
    error = failure_of(lambda x: x.sin() * x.sin())
    assert "one of 2 rewrites; `fxpasses bisect` finds which" in str(error)
    assert len(error.rewrites) == 2


def test_the_diff_shows_the_failing_pass_alone():
    lines = failure_of(lambda x: x.cos() + x.sin()).diff.splitlines()
    removed = [line for line in lines if line.startswith("-%")]
    added = [line for line in lines if line.startswith("+%")]
    assert any("aten.sin.default" in line for line in removed)
    assert any("aten.neg.default" in line for line in added)
    assert not any("aten.cos.default" in line for line in [*removed, *added])
