"""Which buffers a program writes: a compiler must not fold them."""

import pytest
import torch

from fxpasses import InvalidProgram
from fxpasses.analysis import BufferWrite, writes_buffers
from tests.fxpasses.programs import Function, export, trace


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


def test_a_buffer_written_in_a_branch():
    inner = trace(lambda count, x: x + count.add_(1), torch.ones(1), torch.ones(2))
    program = trace(lambda p, x: x * 2, torch.tensor(True), torch.ones(2))
    program.register_buffer("count", torch.ones(1))
    program.branch = inner
    with program.graph.inserting_before(program.graph.output_node()):
        count, branch = program.graph.get_attr("count"), program.graph.get_attr("branch")
        p, x = program.graph.find_nodes(op="placeholder")
        operands = (p, branch, branch, (count, x))
        program.graph.call_function(torch.ops.higher_order.cond, operands)
    assert writes_buffers(program) == [BufferWrite("count", "cond", "", "")]


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
