"""What running a node does besides computing its value."""

import operator

import pytest
import torch
from torch.fx import Graph, GraphModule

from fxpasses.analysis import effects
from tests.fxpasses.programs import aten, export, trace


def effects_of(target, *operands, **kwargs):
    graph = Graph()
    nodes = [graph.placeholder(f"x{i}") for i in range(3)]
    args = [nodes[value] if isinstance(value, int) else value for value in operands]
    return effects(graph.call_function(target, tuple(args), kwargs)), nodes


@pytest.mark.parametrize(
    ("target", "operands"),
    [
        (aten.add.Tensor, (0, 1)),
        (aten.view.default, (0, [4])),
        (aten.index.Tensor, (0, [1])),
        (aten.clone.default, (0,)),
        (operator.getitem, (0, 1)),
        (operator.mul, (0, 1)),
        (torch.sym_max, (0, 1)),
    ],
)
def test_pure(target, operands):
    assert effects_of(target, *operands)[0].pure


@pytest.mark.parametrize(
    "target", [aten.rand.default, aten.bernoulli.default, aten.empty_like.default]
)
def test_random(target):
    found, _ = effects_of(target, 0)
    assert found.random
    assert not found.pure


@pytest.mark.parametrize(
    "target",
    [
        aten._assert_async.msg,
        aten._assert_scalar.default,
        aten._functional_assert_async.msg,
        aten._assert_tensor_metadata.default,
        aten.sym_constrain_range.default,
    ],
)
def test_checks(target):
    found, _ = effects_of(target, 0)
    assert found.raises
    assert not found.pure


def test_writes_name_the_operand():
    found, nodes = effects_of(aten.add_.Tensor, 0, 1)
    assert found.writes == (nodes[0],)
    found, nodes = effects_of(aten.add.out, 0, 1)
    assert found.writes == ()
    graph = Graph()
    x, out = graph.placeholder("x"), graph.placeholder("out")
    assert effects(graph.call_function(aten.add.out, (x, x), {"out": out})).writes == (out,)


def test_writes_to_each_tensor_of_a_list():
    graph = Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    assert effects(graph.call_function(aten._foreach_add_.Scalar, ([a, b], 1))).writes == (a, b)


@pytest.mark.parametrize(
    "target", [print, torch.add, operator.setitem, operator.iadd, operator.delitem, operator.ior]
)
def test_a_python_function_may_do_anything(target):
    assert effects_of(target, 0, 1)[0].unknown


def test_a_call_of_a_module_or_method_may_do_anything():
    graph = Graph()
    x = graph.placeholder("x")
    assert effects(graph.call_method("add_", (x, 1))).unknown
    assert effects(graph.call_module("linear", (x,))).unknown


def test_inputs_and_outputs_do_nothing():
    graph = Graph()
    x = graph.placeholder("x")
    assert effects(x).pure
    assert effects(graph.output(x)).pure


def test_custom_operators_are_taken_at_their_worst():
    @torch.library.custom_op("fxpasses_test::stamp", mutates_args={"x"})
    def stamp(x: torch.Tensor, y: torch.Tensor) -> None:
        x.add_(y)

    found, nodes = effects_of(stamp._opoverload, 0, 1)
    assert found.unknown
    assert found.writes == (nodes[0],)


def conditional(branch, draw):
    program = export(
        lambda p, x: torch.cond(p, branch, lambda x: x + 1, (x,)),
        torch.tensor(True),
        draw.floats(4),
    )
    (cond,) = program.graph.find_nodes(op="call_function", target=torch.ops.higher_order.cond)
    return effects(cond)


def test_control_flow_does_what_its_graphs_do(draw):
    assert conditional(lambda x: x * 2, draw).pure
    assert conditional(lambda x: torch.rand_like(x), draw).random

    def checked(x):
        torch._assert_async((x < 99).all(), "small")
        return x * 2

    assert conditional(checked, draw).raises

    def local(x):
        x = x.clone()
        x[0] = 3
        return x

    assert conditional(local, draw).writes == ()


def test_a_write_inside_reaches_the_operand_behind_the_input(draw):
    inner = trace(lambda x: x.add_(1), draw.floats(4))
    outer = Graph()
    x, p = outer.placeholder("x"), outer.placeholder("p")
    branch = outer.get_attr("branch")
    call = outer.call_function(torch.ops.higher_order.cond, (p, branch, branch, (x,)))
    outer.output(call)
    module = GraphModule({"branch": inner}, outer)
    assert module.graph is outer
    assert effects(call).writes == (x,)


def test_a_write_inside_to_a_tensor_of_the_graph_may_be_seen_by_anybody(draw):
    inner = trace(lambda x: x * 2, draw.floats(4))
    inner.register_buffer("state", torch.zeros(4))
    with inner.graph.inserting_before(inner.graph.output_node()):
        state = inner.graph.get_attr("state")
        inner.graph.call_function(aten.add_.Tensor, (state, 1))
    outer = Graph()
    x = outer.placeholder("x")
    call = outer.call_function(
        torch.ops.higher_order.invoke_subgraph, (outer.get_attr("f"), "f", x)
    )
    module = GraphModule({"f": inner}, outer)
    assert module.graph is outer
    assert effects(call).unknown


def test_an_operator_whose_graph_is_missing_may_do_anything():
    found, _ = effects_of(torch.ops.higher_order.cond, 0, 1, 1, (2,))
    assert found.unknown
