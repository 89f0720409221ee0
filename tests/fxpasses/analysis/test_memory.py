"""Which nodes share memory, and the last write before a read."""

import operator

import pytest
import torch
from torch.fx import Graph

from fxpasses.analysis import Memory
from tests.fxpasses.programs import aten, results, trace


def memory_of(function, *inputs):
    """The memory of a traced function, its inputs, and the nodes it returns."""
    graph = trace(function, *inputs).graph
    owner = graph.owning_module
    return Memory(graph), list(graph.find_nodes(op="placeholder")), results(owner)


ALIASES = {
    "view": (aten.view.default, [-1]),
    "slice": (aten.slice.Tensor, 0, 1),
    "select": (aten.select.int, 0, 0),
    "transpose": (aten.t.default,),
    "chunk": (aten.chunk.default, 2),
    "unbind": (aten.unbind.int,),
    "expand": (aten.expand.default, [2, 4]),
    "detach": (aten.detach.default,),
    "as_strided": (aten.as_strided.default, [2], [2]),
    "view of dtype": (aten.view.dtype, torch.int32),
    "contiguous": (aten.contiguous.default,),
    "to": (aten.to.dtype, torch.float32),
    "eval dropout": (aten.dropout.default, 0.5, False),
    "eval native_dropout": (aten.native_dropout.default, 0.5, False),
    "reshape": (aten.reshape.default, [2, 2]),
    "in place": (aten.mul_.Tensor, 2),
}


@pytest.mark.parametrize("name", ALIASES)
def test_aliases(name):
    target, *rest = ALIASES[name]
    graph = Graph()
    x = graph.placeholder("x")
    alias = graph.call_function(target, (x, *rest))
    part = graph.call_function(operator.getitem, (alias, 0))
    write = graph.call_function(aten.add_.Tensor, (x, 1))
    memory = Memory(graph)
    reader = graph.output((alias, part))
    assert memory.may_alias(x, part)
    assert Memory(graph).last_write(part, reader) is write


def test_set_makes_an_alias_of_its_source():
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    graph.call_function(aten.set_.source_Tensor, (x, y))
    assert Memory(graph).may_alias(x, y)


FRESH = {
    "clone": lambda x: x.clone(),
    "sum of two": lambda x: x + 1,
    "index": lambda x: x[torch.tensor([0, 1])],
    "cat": lambda x: torch.cat([x, x]),
    "where": lambda x: torch.where(x > 0, x, 1.0),
}


@pytest.mark.parametrize("name", FRESH)
def test_fresh_results(draw, name):
    def function(x):
        fresh = FRESH[name](x)
        x.add_(1)
        return fresh * 2, fresh

    memory, (x,), (reader, fresh) = memory_of(function, draw.floats(4))
    assert not memory.may_alias(x, fresh)
    assert memory.last_write(fresh, reader) is None


def test_the_last_write_before_the_reader(draw):
    def function(x):
        first = x.mul_(2)
        second = x[1:].add_(1)
        return x * 3, first, second

    memory, (x,), (reader, first, second) = memory_of(function, draw.floats(4))
    assert memory.last_write(x, reader) is second
    assert memory.last_write(x, second).target is aten.mul_.Tensor
    assert memory.last_write(first, second) is None
    assert memory.written(x) == [first, second]


def test_a_graph_that_writes_nothing(draw):
    memory, (x,), (reader,) = memory_of(lambda x: (x.view(-1) * 2,), draw.floats(4))
    assert memory.writers == memory.written(x) == []
    assert memory.last_write(x, reader) is None
    assert not memory.may_alias(x, reader)


def test_inputs_that_share_storage_when_traced(draw):
    x, other = draw.floats(4), draw.floats(4)
    memory, (a, b, c), _ = memory_of(lambda a, b, c: (a.add_(1), b * 2, c), x, x[1:], other)
    assert memory.may_alias(a, b)
    assert not memory.may_alias(a, c)


def test_an_attribute_read_twice_is_one_tensor(draw):
    graph_module = trace(lambda x: x.add_(1), draw.floats(4))
    graph_module.register_buffer("state", torch.zeros(4))
    with graph_module.graph.inserting_before():
        one, again = (graph_module.graph.get_attr("state") for _ in range(2))
    memory = Memory(graph_module.graph)
    assert memory.may_alias(one, again)


def test_what_stands_for_a_node_has_its_memory_and_its_time(draw):
    def function(x):
        written = x[1:].mul_(2)
        x.add_(1)
        return x * 3, written

    memory, (x,), (reader, written) = memory_of(function, draw.floats(4))
    with x.graph.inserting_before(written):
        new = x.graph.call_function(aten.copy_.default, (x, x))
    assert memory.last_write(new, reader) is new
    memory.stands_for(new, written)
    assert memory.last_write(new, reader).target is aten.add_.Tensor
    assert memory.may_alias(new, x)
