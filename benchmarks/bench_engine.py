"""The engine: a run with nothing to do, dense rewriting, and equivalence of long histories."""

from dataclasses import dataclass

import pytest
import torch

from benchmarks import graphs
from fxpasses import YES, Pipeline, Registry, RewritePass, guard, no, register_pass
from fxpasses.analysis import equivalent
from fxpasses.patterns import op, var

aten = torch.ops.aten
SIZES = (1_000, 10_000, 50_000, 100_000)


@register_pass("bench.square", into=Registry())
@dataclass(frozen=True)
class Square(RewritePass):
    """Write x ** 2 as x * x."""

    pattern = op(aten.pow.Tensor_Scalar, var("base"), var("exponent"))

    @guard
    def squares(self, node, match, editor):
        return YES if match["exponent"] == 2 else no(f"the exponent is {match['exponent']}")

    def rewrite(self, node, match, editor):
        with editor.at(node):
            editor.replace(node, editor.call(aten.mul.Tensor, match["base"], match["base"]))
        return "x ** 2 became x * x"


@pytest.mark.parametrize("size", SIZES)
def test_nothing_to_do(measure, size):
    module, pipeline = graphs.plain(size), Pipeline.parse("default")
    result = measure("nothing to do", "fxpasses: default pipeline", size, pipeline.run, module)
    assert not result.changed


@pytest.mark.parametrize("size", SIZES)
def test_squares(measure, size):
    rewrite(measure, "rewrite x ** 2", graphs.squares(size), Pipeline([Square()]), size)


@pytest.mark.parametrize("size", SIZES)
def test_fills(measure, size):
    rewrite(measure, "rewrite masked fills", graphs.fills(size), Pipeline.parse("default"), size)


def rewrite(measure, work, module, pipeline, size):
    """Rewrite one node in four, and note how much of the time the passes took themselves."""
    own = []

    def run(module):
        reports = pipeline.run(module).reports
        own.append(sum(report.seconds for report in reports))
        return sum(report.rewrites for report in reports)

    assert measure(work, "fxpasses: checked", size, run, module) == size // 4
    measure.note(f"{min(own) / size * 1e6:.0f} us on the clock in the pass")


@pytest.mark.parametrize("size", [1_000, 10_000, 100_000])
def test_histories(measure, size):
    left, right = graphs.histories(size).graph.output_node().args[0]
    assert measure("compare two masks", "fxpasses: equivalent", 2 * size, equivalent, left, right)
