"""What the tests of the engine share: exporting a function, random inputs, the eager oracle.

A function that changes its inputs is exported as it is written (`functional=False`: in-place
operators stay) or functionalised. The oracle is the function itself, run on copies.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._pytree import tree_leaves

from fxpasses import Pass, Pipeline, PipelineResult, Registry, Remark, register_pass

aten = torch.ops.aten

# What versions of torch say of operands on two devices.
TWO_DEVICES = "to be on the same device|two different devices"


class Function(torch.nn.Module):
    """A function as a module, to be exported."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


@dataclass
class Draw:
    """Random tensors; the same ones for the same seed."""

    seed: int
    generator: torch.Generator = field(init=False)

    def __post_init__(self):
        self.generator = torch.Generator().manual_seed(self.seed)

    def floats(self, *shape, dtype=torch.float32):
        return torch.randn(shape, generator=self.generator).to(dtype)

    def integers(self, *shape, low=-100, high=100, dtype=torch.int64):
        return torch.randint(low, high, shape, generator=self.generator).to(dtype)

    def mask(self, *shape):
        """A mask that picks some and leaves some, where it has two elements or more."""
        mask = torch.rand(shape, generator=self.generator) > 0.5
        if mask.numel() > 1:
            mask.view(-1)[0], mask.view(-1)[-1] = True, False
        return mask

    def shuffled(self, mask):
        """Another mask that picks as many elements, other ones, of a 1-D mask."""
        return mask.roll(1)


def export(function, *inputs, functional=False, dynamic=None) -> ExportedProgram:
    module = function if isinstance(function, torch.nn.Module) else Function(function)
    shapes = dynamic and (tuple(dynamic) if module is function else (tuple(dynamic),))
    program = torch.export.export(module, inputs, dynamic_shapes=shapes)
    return program.run_decompositions({}) if functional else program


def trace(function, *inputs) -> GraphModule:
    """The ATen graph of a function, in-place operators kept; quicker than export, no checks."""
    return make_fx(function, tracing_mode="fake", _error_on_data_dependent_ops=False)(*inputs)


def trace_fake(function, inputs: Callable[[], tuple[Any, ...]]) -> GraphModule:
    """The ATen graph of a function on what `inputs` makes, on devices that need not be there."""
    with FakeTensorMode(shape_env=ShapeEnv()):
        return make_fx(function)(*inputs())


def results(program: ExportedProgram | GraphModule) -> list[Node]:
    """The nodes that a program returns."""
    graph = program.graph
    return [leaf for leaf in tree_leaves(graph.output_node().args) if isinstance(leaf, Node)]


def calls(program, *targets) -> int:
    """How many nodes, in all graphs of the program, call one of `targets`."""
    modules = program.graph_module.modules() if isinstance(program, ExportedProgram) else [program]
    nodes = (n for m in modules if isinstance(m, GraphModule) for n in m.graph.nodes)
    return sum(node.op == "call_function" and node.target in targets for node in nodes)


def writes(program) -> int:
    """How many writes through an index or a mask are left."""
    indexed = aten.index_put.default, aten.index_put_.default
    return calls(program, *indexed, aten.masked_scatter.default, aten.masked_scatter_.default)


def picks(program) -> int:
    """How many reads through an index or a mask are left."""
    return calls(program, aten.index.Tensor, aten.masked_select.default)


def missed(result: PipelineResult) -> dict[str, str]:
    """The reasons of the Missed remarks, by guard; the last one where a guard refused twice."""
    return {remark.guard: remark.reason for remark in result.remarks if remark.kind == "missed"}


def passed(result: PipelineResult) -> list[Remark]:
    return [remark for remark in result.remarks if remark.kind == "passed"]


def assert_equal_to_eager(program, function, *inputs) -> None:
    """Same outputs, and same changes to the inputs, bit for bit and stride for stride."""
    module = function if isinstance(function, torch.nn.Module) else Function(function)
    ours, theirs = (copies(inputs), copies(inputs))
    got, expected = program.module()(*ours), copy.deepcopy(module)(*theirs)
    for left, right in zip(leaves((got, ours)), leaves((expected, theirs)), strict=True):
        assert_same(left, right)


def copies(values):
    return tuple(v.clone() if isinstance(v, torch.Tensor) else v for v in values)


def leaves(value):
    return [leaf for leaf in tree_leaves(value) if leaf is not None]


def assert_same(left, right) -> None:
    if not isinstance(left, torch.Tensor):
        assert left == right
        return
    assert (left.dtype, left.shape) == (right.dtype, right.shape)
    assert observed_strides(left) == observed_strides(right)
    torch.testing.assert_close(left, right, rtol=0, atol=0, equal_nan=True)
    if left.is_floating_point():
        assert torch.equal(left.signbit() & ~left.isnan(), right.signbit() & ~right.isnan())


def observed_strides(value):
    return [s for size, s in zip(value.shape, value.stride(), strict=True) if size > 1]


def run(passes, program, verify="numeric", **options) -> PipelineResult:
    """Run a pipeline's text, one pass, or several."""
    if isinstance(passes, Pass):
        passes = [passes]
    pipeline = Pipeline.parse(passes) if isinstance(passes, str) else Pipeline(passes)
    return pipeline.run(program, verify=verify, **options)


def named(name: str, **constraints):
    """Register a pass under `name` where no other test sees it."""
    return register_pass(name, into=Registry(), **constraints)
