"""Copies become views inside a region; what leaves it stays in memory of its own."""

import pytest
import torch
from torch.export import Dim, export

from backend.compile.views import restore_views

aten = torch.ops.aten


class Inside(torch.nn.Module):
    def forward(self, x):
        part = aten.slice_copy.Tensor(aten.t_copy.default(x), 0, 0, 2)
        return part * 2


class Leaves(torch.nn.Module):
    def forward(self, x):
        view = aten.t_copy.default(x)
        return view, aten.split_copy.Tensor(x, 1, 1)[0], view + 1


class ReadsBeforeWrite(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(4))

    def forward(self, x):
        before = aten.view_copy.default(self.state, [2, 2])
        self.state.add_(x)
        return before


class NoView(torch.nn.Module):
    """The copy is contiguous and can be viewed as one row; the transposed view cannot."""

    def forward(self, x):
        return aten.view_copy.default(aten.t_copy.default(x), [-1]) * 2


class IntoBranch(torch.nn.Module):
    def forward(self, x):
        part = aten.t_copy.default(x)
        return torch.cond(x.sum() > 0, lambda p: p * 2, lambda p: p + 1, (part,))


def restored(module: torch.nn.Module, x: torch.Tensor, **options) -> torch.export.ExportedProgram:
    program = export(module, (x,), **options).run_decompositions({})
    restore_views(program.graph_module)
    program.graph_module.graph.lint()
    return program


def operators(program: torch.export.ExportedProgram) -> list[str]:
    return [str(node.target) for node in program.graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (Inside, (3, 5)),
        (Leaves, (3, 5)),
        (ReadsBeforeWrite, (4,)),
        (NoView, (3, 5)),
        (IntoBranch, (3, 5)),
    ],
)
def test_the_result_is_the_same_and_no_copying_operator_is_left(module, shape) -> None:
    program = restored(module(), torch.randn(shape))
    y = torch.randn(shape)
    result, expected = program.module()(y), module()(y)
    results = result if isinstance(result, tuple) else (result,)
    expecteds = expected if isinstance(expected, tuple) else (expected,)
    assert all(torch.equal(a, b) for a, b in zip(results, expecteds, strict=True))
    assert not [name for name in operators(program) if "_copy" in name]


def test_a_copy_that_only_the_region_reads_becomes_a_view() -> None:
    names = operators(restored(Inside(), torch.randn(3, 5)))
    assert names == ["aten.t.default", "aten.slice.Tensor", "aten.mul.Tensor"]


def test_what_is_returned_is_copied() -> None:
    program = restored(Leaves(), torch.randn(3, 5))
    x = torch.randn(3, 5)
    before = x.clone()
    view, part, _ = program.module()(x)
    view.fill_(7.0)
    part.fill_(7.0)
    assert torch.equal(x, before)


def test_what_another_region_takes_is_copied() -> None:
    assert operators(restored(IntoBranch(), torch.randn(3, 3))).count("aten.clone.default") == 1


def test_a_shape_that_no_view_has_is_viewed_in_a_copy() -> None:
    names = operators(restored(NoView(), torch.randn(3, 5)))
    clone, view = "aten.clone.default", "aten.view.default"
    assert names == ["aten.t.default", clone, view, "aten.mul.Tensor"]


@pytest.mark.parametrize("options", [{}, {"dynamic_shapes": ({0: Dim("rows")},)}])
@pytest.mark.parametrize("module", [Inside, Leaves, NoView])
def test_recorded_values_are_those_of_the_new_graph(module, options) -> None:
    program = restored(module(), torch.randn(3, 5), **options)
    recorded = {n.name: n.meta["val"] for n in program.graph.nodes if n.op == "call_function"}
    fresh = program.run_decompositions({})
    for node, old in zip(fresh.graph.nodes, program.graph.nodes, strict=True):
        if isinstance(recorded.get(old.name), torch.Tensor):
            assert recorded[old.name].stride() == node.meta["val"].stride()


def test_a_region_that_writes_is_left_alone() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    copy = graph.call_function(aten.t_copy.default, (x,))
    graph.call_function(aten.add_.Tensor, (x, 1))
    graph.output((copy,))
    module = torch.fx.GraphModule({}, graph)
    restore_views(module)
    assert copy.target is aten.t_copy.default
