"""The engine: a run with nothing to do, dense rewriting, and equivalence of long histories."""

from dataclasses import dataclass

import pytest
import torch

from benchmarks import graphs
from fxpasses import YES, Pass, Pipeline, Registry, RewritePass, guard, no, register_pass
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


@register_pass("bench.edit", into=Registry())
@dataclass(frozen=True)
class Edit(Pass):
    """The same without a pattern and a guard: what the editor takes for itself."""

    def run(self, editor):
        for node in editor.find(aten.pow.Tensor_Scalar):
            base = node.args[0]
            with editor.at(node):
                editor.replace(node, editor.call(aten.mul.Tensor, base, base))


@pytest.mark.parametrize("size", SIZES)
def test_nothing_to_do(measure, size):
    module, pipeline = graphs.plain(size), Pipeline.parse("default")
    result = measure("nothing to do", "fxpasses: default pipeline", size, pipeline.run, module)
    assert not result.changed


@pytest.mark.parametrize("size", SIZES)
def test_squares(measure, size):
    result = run(measure, "rewrite x ** 2", graphs.squares(size), Pipeline([Square()]), size)
    assert rewrites(result) == size // 4


@pytest.mark.parametrize("size", SIZES)
def test_fills(measure, size):
    pipeline = Pipeline.parse("default")
    result = run(measure, "rewrite masked fills", graphs.fills(size), pipeline, size)
    assert rewrites(result) == size // 4


@pytest.mark.parametrize("size", SIZES)
def test_editor(measure, size):
    module, pipeline = graphs.squares(size), Pipeline([Edit()])
    result = run(measure, "edit x ** 2, unchecked", module, pipeline, size, verify="off")
    assert products(result) == size // 4


def rewrites(result):
    return sum(report.rewrites for report in result.reports)


def products(result):
    return len(result.program.graph.find_nodes(op="call_function", target=aten.mul.Tensor))


def run(measure, work, module, pipeline, size, verify="metadata"):
    """Time a pipeline, and note how much of the time its passes took themselves."""
    own = []

    def clocked(module):
        result = pipeline.run(module, verify=verify)
        own.append(sum(report.seconds for report in result.reports))
        return result

    result = measure(work, "fxpasses", size, clocked, module)
    measure.note(f"{min(own) / size * 1e6:.0f} us on the clock in the pass")
    return result


@pytest.mark.parametrize("size", [1_000, 10_000, 100_000])
def test_histories(measure, size):
    left, right = graphs.histories(size).graph.output_node().args[0]
    assert measure("compare two masks", "fxpasses: equivalent", 2 * size, equivalent, left, right)
