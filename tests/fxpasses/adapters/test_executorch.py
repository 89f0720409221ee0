"""A pipeline among ExecuTorch's transform passes, in ExecuTorch itself."""

from dataclasses import dataclass

import pytest
import torch
from executorch.exir import EdgeProgramManager, to_edge, to_edge_transform_and_lower
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.runtime import Runtime
from torch._export.verifier import SpecViolationError

from fxpasses import Pipeline, RewritePass, UnknownPass, dialect, editor
from fxpasses.adapters.executorch import transform_pass
from fxpasses.patterns import op, var
from tests.fxpasses.programs import export, named

aten, edge = torch.ops.aten, exir_ops.edge.aten
pytestmark = pytest.mark.filterwarnings("ignore")  # ExecuTorch's own


def fill_rows(x, rows):
    x = x.clone()
    x[rows] = 0.5
    return x * 2


def relu_in_branch(x):
    return torch.cond(x.sum() > 0, lambda x: x.relu(), lambda x: x.sin(), (x,))


@named("t.relu-to-half")
@dataclass(frozen=True)
class ReluToHalf(RewritePass):
    """Multiplies where the model clamps: easy to see, in the graph and in the results."""

    pattern = op(aten.relu.default, var("x"))

    def rewrite(self, node, match, editor):
        half = editor.constant(torch.tensor(0.5))
        with editor.at(node):
            editor.replace(node, editor.call(aten.mul.Tensor, match["x"], half))
        return "relu became a half"


@named("t.sin-to-cos")
@dataclass(frozen=True)
class SinToCos(RewritePass):
    """Changes one operator."""

    pattern = op(aten.sin.default, var("x"))

    def rewrite(self, node, match, editor):
        with editor.at(node):
            editor.replace(node, editor.call(aten.cos.default, match["x"]))
        return "sin became cos"


def lowered(function, *inputs, passes="default") -> EdgeProgramManager:
    passes = passes if isinstance(passes, str) else Pipeline([passes])
    transforms = [transform_pass(passes)]
    return to_edge_transform_and_lower(export(function, *inputs), transform_passes=transforms)


def targets(manager: EdgeProgramManager) -> list:
    modules = manager.exported_program().graph_module.modules()
    return [node.target for module in modules for node in module.graph.nodes]


def executed(manager: EdgeProgramManager, *inputs):
    program = Runtime.get().load_program(manager.to_executorch().buffer)
    return program.load_method("forward").execute(inputs)


def test_the_rewritten_program_passes_the_verifier_and_runs(draw):
    inputs = draw.floats(4, 3), draw.mask(4)
    manager = lowered(fill_rows, *inputs)
    assert edge.where.self in targets(manager)
    assert edge.index_put.default not in targets(manager)
    assert torch.equal(executed(manager, *inputs)[0], fill_rows(*inputs))


def test_the_verifier_refuses_aten_operators(draw, monkeypatch):
    monkeypatch.setattr(editor, "dialect_of", lambda program: dialect.to_aten)
    with pytest.raises(SpecViolationError, match="not an Edge operator"):
        lowered(fill_rows, draw.floats(4, 3), draw.mask(4))


def test_a_new_node_keeps_its_place_in_the_source(draw):
    manager = lowered(fill_rows, draw.floats(4, 3), draw.mask(4))
    where = next(n for n in manager.exported_program().graph.nodes if n.target is edge.where.self)
    assert "in forward" in where.meta["stack_trace"]
    assert where.meta["debug_handle"] > 0


def test_a_new_constant_becomes_part_of_the_program(draw):
    x = draw.floats(4, 3)
    manager = lowered(lambda x: x.relu() + x, x, passes=ReluToHalf())
    assert torch.equal(executed(manager, x)[0], x * 1.5)


def test_branches_are_rewritten(draw):
    # The branch alone calls edge operators of its own; the pass must find and spell them there.
    manager = lowered(relu_in_branch, draw.floats(4), passes=SinToCos())
    assert edge.cos.default in targets(manager)
    assert edge.sin.default not in targets(manager)


def test_nothing_to_do_leaves_the_program_object():
    manager = to_edge(export(lambda x: x + 1, torch.zeros(2)))
    after = manager.transform([transform_pass("default")])
    assert after.exported_program() is manager.exported_program()


def test_unknown_passes_fail_at_once():
    with pytest.raises(UnknownPass):
        transform_pass("remove-async-assert")


def test_executorch_names_the_pipeline_when_it_fails(draw):
    @named("t.broken")
    @dataclass(frozen=True)
    class Broken(SinToCos):
        def rewrite(self, node, match, editor):
            raise RuntimeError("on purpose")

    with pytest.raises(Exception, match=r"t\.broken"):
        lowered(torch.sin, draw.floats(2), passes=Broken())


@pytest.mark.parametrize(
    ("target", "spelled"),
    [
        (aten.add.Tensor, edge.add.Tensor),
        (aten.unsqueeze.default, edge.unsqueeze_copy.default),
        (aten.slice.Tensor, edge.slice_copy.Tensor),
        (aten.copy_.default, edge.copy_.default),
        (aten.sym_size.int, aten.sym_size.int),
        (aten._assert_async.msg, aten._assert_async.msg),
        (edge.add.Tensor, edge.add.Tensor),
        (max, max),
    ],
    ids=str,
)
def test_spelling(target, spelled):
    assert dialect.to_edge(target) is spelled
