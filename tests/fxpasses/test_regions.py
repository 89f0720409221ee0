"""Every graph of a program is a region, and each distinct one is one region."""

from dataclasses import dataclass

import pytest
import torch
from torch.fx import Graph, GraphModule

from fxpasses import Pass
from fxpasses.passes import ReplaceMaskedCopyWithWhere
from fxpasses.program import fork, module_of
from fxpasses.regions import attribute, placeholders, regions
from tests.fxpasses.programs import aten, export, named, run, trace, writes

cond = torch.ops.higher_order.cond


def paths(program):
    return [region.path for region in regions(module_of(program))]


def twice(x):
    return x * 2


def nested(p, x):
    def outer(x):
        return torch.cond(x.sum() > 0, twice, torch.sin, (x,))

    return torch.cond(p, outer, torch.cos, (x,))


def test_a_program_without_control_flow_is_one_region(draw):
    program = export(twice, draw.floats(4))
    (region,) = regions(program.graph_module)
    assert (region.path, region.callers) == ("", [])
    assert region.operators() == {aten.mul.Tensor}


def test_branches_in_branches_come_outermost_first(draw, functional):
    program = export(nested, torch.tensor(True), draw.floats(4), functional=functional)
    assert paths(program) == [
        "",
        "true_graph_0",
        "false_graph_0",
        "true_graph_0.true_graph_0",
        "true_graph_0.false_graph_0",
    ]


def test_a_region_knows_its_caller(draw):
    top, branch, *_ = regions(export(nested, torch.tensor(True), draw.floats(4)).graph_module)
    ((caller, operator, operand),) = branch.callers
    assert (caller, operator.target, operand.target) == (top, cond, "true_graph_0")
    assert attribute(top.module, "true_graph_0") is branch.module
    assert len(placeholders(branch.graph)) == len(operator.args[3])


def test_a_loop_has_two_regions(draw):
    def function(x):
        turns = torch.zeros((), dtype=torch.int64)
        return torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (turns, x))[1]

    program = export(function, draw.floats(4))
    assert paths(program) == ["", "while_loop_cond_graph_0", "while_loop_body_graph_0"]


def copy_picks(out, source, mask):
    out = out.clone()
    out[mask] = source[mask]
    return out


@pytest.fixture
def shared(draw):
    """Two conds that run one graph, under two names."""
    inputs = draw.floats(4), draw.floats(4), draw.mask(4)
    branch = trace(copy_picks, *inputs)
    graph = Graph()
    p, *operands = (graph.placeholder(name) for name in ("p", "out", "source", "mask"))
    one, again = graph.get_attr("one"), graph.get_attr("again")
    first = graph.call_function(cond, (p, one, again, tuple(operands)))
    second = graph.call_function(cond, (p, again, one, tuple(operands)))
    graph.output((first, second))
    return GraphModule({"one": branch, "again": branch}, graph)


def test_a_graph_of_two_operators_is_one_region(shared):
    _top, branch = regions(shared)
    assert branch.path == "one"
    assert len(branch.callers) == 4


def test_a_shared_graph_is_rewritten_once_for_all(shared):
    result = run(ReplaceMaskedCopyWithWhere(), shared, verify="metadata")
    assert [(r.region, r.rewrites) for r in result.reports] == [("", 0), ("one", 1)]
    assert result.program.one is result.program.again
    assert writes(result.program.one) == 0
    assert writes(shared.one) == 1


def test_a_fork_shares_no_graph_and_every_weight(draw):
    program = export(nested, torch.tensor(True), draw.floats(4))
    forked = fork(program)
    assert paths(forked) == paths(program)
    graphs = {region.graph for region in regions(program.graph_module)}
    assert graphs.isdisjoint(region.graph for region in regions(forked.graph_module))
    assert forked.state_dict == program.state_dict


def test_a_name_that_is_not_there():
    assert attribute(torch.nn.Linear(1, 1), "weight.missing.part") is None


@named("test.drop-first")
@dataclass(frozen=True)
class DropFirst(Pass):
    """Takes the first cond out of the top graph, and 1 off what the branch adds."""

    def run(self, editor):
        conds = editor.find(cond)
        if len(conds) == 2:
            editor.replace(conds[0], conds[1])
        for node in editor.find(aten.add.Tensor):
            with editor.at(node):
                editor.replace(node, editor.call(node.target, node.args[0], node.args[1] - 1))


def test_a_shared_graph_is_found_again_when_its_first_caller_goes(draw):
    x = draw.floats(4)
    graph = Graph()
    p, operand = graph.placeholder("p"), graph.placeholder("x")
    one, again = graph.get_attr("one"), graph.get_attr("again")
    conds = [graph.call_function(cond, (p, n, n, (operand,))) for n in (one, again)]
    graph.output(tuple(conds))
    branch = trace(lambda x: x + 5, x)
    program = GraphModule({"one": branch, "again": branch}, graph)
    result = run(DropFirst(), program, verify="off")
    assert [(report.region, report.changed) for report in result.reports] == [
        ("", True),
        ("again", True),
    ]
    (sum_,) = result.program.again.graph.find_nodes(op="call_function", target=aten.add.Tensor)
    assert sum_.args[1] == 4
