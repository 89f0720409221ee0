"""Which buffers a program writes: a compiler must not fold them."""

from dataclasses import replace

import pytest
import torch

from fxpasses import InvalidProgram
from fxpasses.analysis import BufferWrite, writes_buffers
from tests.fxpasses.programs import Function, aten, export, trace


class State(torch.nn.Module):
    """One-element, zero-dim and longer buffers, and a step that may write them."""

    def __init__(self, step):
        super().__init__()
        self.register_buffer("one", torch.ones(1))
        self.register_buffer("zero_dim", torch.ones(()))
        self.register_buffer("several", torch.ones(2, 2))
        self.register_buffer("passing", torch.ones(1), persistent=False)
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.step = step

    def forward(self, x):
        return self.step(self, x)


def written(step, functional=False, x=None):
    program = export(State(step), torch.ones(2) if x is None else x, functional=functional)
    return sorted({write.buffer for write in writes_buffers(program)})


def add(self, x):
    self.one.add_(1)
    return x + self.one


def assign(self, x):
    self.zero_dim = self.zero_dim * 2
    return x + self.zero_dim


def set_slice(self, x):
    self.several[1:] = self.several[:1] + x
    return self.several + 0


def set_element(self, x):
    self.one[0] = self.one[0] + 3
    return x * self.one


def through_views(self, x):
    self.several.view(-1)[1:3].t_().mul_(2)
    return x + self.several


def read_then_write(self, x):
    x = x + self.passing
    self.passing.copy_(x[:1])
    return x


def write_parameter(self, x):
    with torch.no_grad():
        self.weight.add_(1)
    return x * self.weight


@pytest.mark.parametrize(
    ("step", "names"),
    [
        (add, ["one"]),
        (assign, ["zero_dim"]),
        (set_slice, ["several"]),
        (set_element, ["one"]),
        (through_views, ["several"]),
        (read_then_write, ["passing"]),
        (write_parameter, ["weight"]),
    ],
)
def test_writes(functional, step, names):
    assert written(step, functional) == names


def read_only(self, x):
    return x * self.weight + self.one + self.several.sum()


def write_a_copy(self, x):
    local = self.one.clone()
    local.add_(x[:1])
    local[0] = 3
    return local


def write_the_input(self, x):
    x.add_(self.one)
    return x * 2


@pytest.mark.parametrize("step", [read_only, write_a_copy, write_the_input])
def test_a_program_that_writes_no_buffer(functional, step):
    assert written(step, functional) == []


def test_both_names_of_one_storage():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", torch.ones(1))
            self.register_buffer("b", self.a)
            self.register_buffer("c", torch.ones(1))

        def forward(self, x):
            self.a.add_(1)
            return x + self.b + self.c

    assert {write.buffer for write in writes_buffers(export(Tied(), torch.ones(2)))} == {"a", "b"}


def test_a_tensor_that_is_no_buffer():
    class Captured(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.count = torch.ones(1)

        def forward(self, x):
            self.count.add_(1)
            return x + self.count

    program = export(Captured(), torch.ones(2))
    assert [write.buffer for write in writes_buffers(program)] == ["count"]


def test_the_write_is_placed():
    (write,) = writes_buffers(export(State(add), torch.ones(2)))
    assert (write.buffer, write.node, write.region) == ("one", "add_", "")
    assert write.source.startswith("test_buffers.py:")
    (write,) = writes_buffers(export(State(add), torch.ones(2), functional=True))
    assert (write.buffer, write.node) == ("one", "add")


def test_a_custom_operator_with_a_mutable_argument():
    @torch.library.custom_op("fxpasses_test::count_up", mutates_args={"counter"})
    def count_up(counter: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        counter.add_(1)
        return x + counter

    count_up.register_fake(lambda counter, x: torch.empty_like(x))
    assert written(lambda self, x: count_up(self.one, x)) == ["one"]


def calling(inner, target, *operands):
    """A module with buffers `count` and `other`, which calls `inner` on its operands."""
    program = trace(lambda p, x: x * 2, torch.tensor(True), torch.ones(2))
    program.register_buffer("count", torch.ones(1))
    program.register_buffer("other", torch.ones(1))
    program.branch = inner
    graph = program.graph
    with graph.inserting_before(graph.output_node()):
        nodes = {name: graph.get_attr(name) for name in ("count", "other", "branch")}
        nodes |= {node.target: node for node in graph.find_nodes(op="placeholder")}
        p, x = graph.find_nodes(op="placeholder")
        nodes |= {
            "p": p,
            "x": x,
            "view": graph.call_function(aten.view.default, (nodes["count"], [1])),
        }
        graph.call_function(
            target, torch.fx.node.map_aggregate(operands, lambda n: nodes.get(n, n))
        )
    return program


def add_to_the_first():
    return trace(lambda count, x: x + count.add_(1), torch.ones(1), torch.ones(2))


@pytest.mark.parametrize(
    ("operands", "buffer"),
    [
        (("count", "x"), ["count"]),
        (("view", "x"), ["count"]),
        (("other", "count"), ["other"]),
        (("x", "count"), []),
    ],
)
def test_a_buffer_written_in_a_branch(operands, buffer):
    cond = torch.ops.higher_order.cond
    program = calling(add_to_the_first(), cond, "p", "branch", "branch", operands)
    found = [BufferWrite(name, "add_", "branch", "") for name in buffer]
    assert [replace(write, source="") for write in writes_buffers(program)] == found


def test_a_buffer_written_two_graphs_deep():
    invoke = torch.ops.higher_order.invoke_subgraph
    inner = calling(add_to_the_first(), invoke, "branch", "f", "p", "x")
    program = calling(inner, torch.ops.higher_order.cond, "p", "branch", "branch", ("count", "x"))
    (write,) = writes_buffers(program)
    assert (write.buffer, write.node, write.region) == ("count", "add_", "branch.branch")


def test_a_graph_called_in_a_way_that_is_not_known_may_write_all_it_is_given():
    program = calling(
        add_to_the_first(), torch.ops.higher_order.associative_scan, "branch", ["count"], ["other"]
    )
    found = {(write.buffer, write.node, write.region) for write in writes_buffers(program)}
    assert found == {("count", "associative_scan", ""), ("other", "associative_scan", "")}


def test_an_operator_without_graphs_may_write_all_it_is_given():
    operator = torch.ops.higher_order.triton_kernel_wrapper_mutation
    assert {w.buffer for w in writes_buffers(calling(add_to_the_first(), operator, "count"))} == {
        "count"
    }
    operator = torch.ops.higher_order.auto_functionalized
    assert writes_buffers(calling(add_to_the_first(), operator, "count")) == []


def test_a_buffer_of_the_branch_itself():
    inner = trace(lambda x: x * 2, torch.ones(2))
    inner.register_buffer("state", torch.zeros(2))
    with inner.graph.inserting_before(inner.graph.output_node()):
        inner.graph.call_function(aten.add_.Tensor, (inner.graph.get_attr("state"), 1))
    program = calling(inner, torch.ops.higher_order.cond, "p", "branch", "branch", ("x",))
    (write,) = writes_buffers(program)
    assert (write.buffer, write.node, write.region) == ("branch.state", "add__tensor", "branch")


def test_a_branch_that_writes_its_own_copy():
    def step(self, x):
        def branch(one, x):
            local = one.clone()
            local.add_(1)
            return x + local

        return torch.cond(x.sum() > 0, branch, lambda one, x: x - one, (self.one, x))

    assert written(step) == []


def test_a_graph_module_with_attributes():
    module = export(State(add), torch.ones(2)).module()
    assert {write.buffer for write in writes_buffers(module)} == {"one"}


def test_only_a_program_is_taken():
    with pytest.raises(InvalidProgram, match=r"got Function; torch.export.export"):
        writes_buffers(Function(lambda x: x))
