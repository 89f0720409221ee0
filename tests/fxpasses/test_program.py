"""Programs under work: forks, and nested graphs that nothing runs any more."""

from dataclasses import dataclass

import pytest
import torch

from fxpasses import Pass, Pipeline, Registry, register_pass
from fxpasses.program import fork, module_of
from fxpasses.regions import regions
from tests.fxpasses.programs import trace

known = Registry()


@register_pass("take-the-operand", into=known)
@dataclass(frozen=True)
class TakeTheOperand(Pass):
    """Replaces what a cond returns by what it was given."""

    def run(self, editor):
        for node in editor.find(torch.ops.higher_order.cond):
            for result in list(node.users):
                editor.replace(result, node.args[3][0])


class Branches(torch.nn.Module):
    def forward(self, flag, x):
        return torch.cond(flag, lambda x: x.sin(), lambda x: x.cos(), (x,)) + 1


@pytest.fixture(scope="module")
def program():
    return torch.export.export(Branches(), (torch.tensor(True), torch.randn(3)))


def test_graphs_that_nothing_runs_are_dropped(program):
    result = Pipeline.parse("take-the-operand", known).run(program)
    assert [name for name, _ in result.program.graph_module.named_children()] == []
    x = torch.randn(3)
    assert torch.equal(result.program.module()(torch.tensor(True), x), x + 1)


def test_a_fork_shares_weights_and_no_graph(program):
    copied = fork(program)
    mine, theirs = (regions(module_of(each)) for each in (copied, program))
    assert [region.path for region in mine] == [region.path for region in theirs]
    assert all(left.graph is not right.graph for left, right in zip(mine, theirs, strict=True))
    assert copied.state_dict == program.state_dict


def test_a_graph_shared_by_two_operators_stays_shared(program):
    module = fork(program).graph_module
    module.false_graph_0 = module.true_graph_0
    copied = module_of(fork(module))
    assert copied.false_graph_0 is copied.true_graph_0
    assert len(regions(copied)) == 2


def test_a_fork_keeps_the_name_of_an_input_that_shadows_a_builtin():
    program = torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
    copied = fork(program)
    copied.validate()
    assert "input" in [node.name for node in copied.graph.nodes]


def test_a_graph_under_a_plain_module_is_forked_too(draw):
    x = draw.floats(2)
    holder = torch.nn.Module()
    holder.branch = trace(lambda x: x * 2, x)
    graph = torch.fx.Graph()
    given = graph.placeholder("x")
    branch = graph.get_attr("holder.branch")
    graph.output(graph.call_function(torch.ops.higher_order.cond, (True, branch, branch, (given,))))
    module = torch.fx.GraphModule({"holder.branch": holder.branch}, graph)
    forked = fork(module)
    assert forked.holder.branch.graph is not module.holder.branch.graph
    assert [r.path for r in regions(forked)] == ["", "holder.branch"]
