"""What running a node does besides computing its value."""

import operator

import pytest
import torch
from torch.fx import Graph, GraphModule

from fxpasses import Pipeline
from fxpasses.analysis import Memory, Numbering, effects, equivalent
from tests.fxpasses.programs import aten, calls, export, run, trace


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
        aten._linalg_check_errors.default,
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


# What is read.


@pytest.mark.parametrize(
    ("target", "operands", "read"),
    [
        (aten.add.Tensor, (0, 1), (0, 1)),
        (aten.clone.default, (0,), (0,)),
        (aten.view.default, (0, [4]), ()),
        (aten.sym_size.int, (0, 0), ()),
        (aten.zeros_like.default, (0,), ()),
        (aten.add_.Tensor, (0, 1), (0, 1)),
        (aten.copy_.default, (0, 1), (1,)),
        (aten.zero_.default, (0,), ()),
        (operator.getitem, (0, 1), ()),
        (operator.add, (0, 1), (0, 1)),
    ],
)
def test_reads(target, operands, read):
    found, nodes = effects_of(target, *operands)
    assert found.reads == tuple(nodes[place] for place in read)


def test_what_is_written_out_is_not_read():
    found, nodes = effects_of(aten.add.out, 0, 1)
    assert found.reads == (nodes[0], nodes[1])
    graph = Graph()
    x, y, out = (graph.placeholder(name) for name in "xyo")
    found = effects(graph.call_function(aten.add.out, (x, y), {"out": out}))
    assert (found.reads, found.writes) == ((x, y), (out,))


def test_each_tensor_of_a_list_is_read():
    graph = Graph()
    x, i, j = (graph.placeholder(name) for name in "xij")
    assert effects(graph.call_function(aten.index.Tensor, (x, [i, None, j]))).reads == (x, i, j)


def test_inputs_read_nothing():
    found = effects(Graph().placeholder("x"))
    assert (found.reads, found.host_read) == ((), "")


def test_host_reads(draw):
    module = trace(lambda x: (x[x > 0], x * 2), draw.floats(4))
    (index,) = module.graph.find_nodes(op="call_function", target=aten.index.Tensor)
    (product,) = module.graph.find_nodes(op="call_function", target=aten.mul.Tensor)
    assert effects(index).pure
    assert effects(index).host_read == "the count of mask gt"
    assert effects(product).host_read == ""


# Collectives.

needs_collectives = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="this torch has no collectives"
)


def collective(name):
    import torch.distributed._functional_collectives

    return getattr(torch.ops._c10d_functional, name).default


@needs_collectives
def test_collectives_keep_their_order():
    found, _ = effects_of(collective("all_reduce"), 0, "sum", "default")
    assert found.ordered
    assert found.writes == ()
    assert not found.pure
    assert not found.unknown


@needs_collectives
def test_collectives_in_place_write():
    found, nodes = effects_of(collective("all_reduce_"), 0, "sum", "default")
    assert found.ordered
    assert found.writes == (nodes[0],)


@needs_collectives
def test_a_result_arrives_when_it_is_waited_for():
    found, nodes = effects_of(collective("wait_tensor"), 0)
    assert found.ordered
    assert found.writes == (nodes[0],)


@needs_collectives
def test_two_collectives_are_two_values_and_stay():
    graph = Graph()
    x = graph.placeholder("x")
    sums = [graph.call_function(collective("all_reduce"), (x, "sum", "g")) for _ in range(2)]
    waits = [graph.call_function(collective("wait_tensor"), (each,)) for each in sums]
    graph.output(tuple(waits))
    assert not equivalent(*sums)
    assert not equivalent(*waits)
    assert Memory(graph).may_alias(sums[0], waits[0])


def test_a_print_keeps_its_order():
    found, _ = effects_of(aten._print.default, "hello")
    assert found.ordered
    assert not found.raises


# Checks of metadata.


def checked_metadata(value, **wanted):
    graph = Graph()
    x = graph.placeholder("x")
    x.meta["val"] = value
    return effects(graph.call_function(aten._assert_tensor_metadata.default, (x,), wanted))


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        ({}, True),
        ({"dtype": torch.float32}, True),
        ({"dtype": torch.float64}, False),
        ({"device": torch.device("cpu"), "layout": torch.strided}, True),
        ({"device": torch.device("cuda")}, False),
        ({"size": [2, 3], "stride": [3, 1]}, True),
        ({"size": [2, 4]}, False),
        ({"size": [2, 3, 1]}, False),
        ({"stride": [1, 2]}, False),
    ],
)
def test_a_check_of_metadata_that_holds_does_nothing(wanted, holds):
    found = checked_metadata(torch.ones(2, 3), **wanted)
    assert (found.pure, found.raises) == (holds, not holds)


def test_a_check_of_a_size_that_may_differ_raises(draw):
    program = export(lambda x: x + 1, draw.floats(4), dynamic=[{0: torch.export.Dim("n", min=2)}])
    (x,) = program.graph.find_nodes(op="placeholder")
    size = program.graph.call_function(aten.sym_size.int, (x, 0))
    size.meta["val"] = x.meta["val"].shape[0]
    for wanted, holds in ((4, False), (size, True)):
        check = program.graph.call_function(
            aten._assert_tensor_metadata.default, (x, [wanted], [1])
        )
        assert effects(check).pure is holds


def test_math_that_fed_an_assert_goes_with_its_checks_of_metadata(draw):
    """`.to` exports with a check of the dtype that it converts from."""

    def function(x):
        torch._assert_async((x < 99).to(torch.float32).all(), "small")
        return x * 2

    program = export(function, draw.floats(4))
    assert calls(program, aten._assert_tensor_metadata.default) == 1
    result = run("remove-async-asserts", program)
    assert [n.op for n in result.program.graph.nodes].count("call_function") == 1


def test_a_check_of_metadata_that_may_fail_keeps_what_it_reads(draw):
    def function(x):
        ok = (x < 99).all()
        torch.ops.aten._assert_tensor_metadata(ok, None, None, torch.bool)
        torch._assert_async(ok, "small")
        return x * 2

    program = export(function, draw.floats(4))
    (check,) = program.graph.find_nodes(
        op="call_function", target=aten._assert_tensor_metadata.default
    )
    check.args = (check.args[0], None, None, torch.int8)
    result = Pipeline.parse("remove-async-asserts").run(program)
    assert calls(result.program, aten._assert_tensor_metadata.default, aten.all.default) == 2


# Control flow maps what it does to its operands.


def test_only_the_written_operand_is_written():
    inner = trace(lambda a, b: (a + 1, b.mul_(2)), torch.ones(4), torch.ones(4))
    graph = Graph()
    p, x, y = (graph.placeholder(name) for name in "pxy")
    branch = graph.get_attr("branch")
    call = graph.call_function(torch.ops.higher_order.cond, (p, branch, branch, (x, y)))
    graph.output(call)
    module = GraphModule({"branch": inner}, graph)
    memory = Memory(module.graph)
    assert effects(call).writes == (y,)
    assert effects(call).reads == (p, x, y)
    assert memory.written(x) == []
    assert not memory.may_alias(call, x)
    assert memory.may_alias(call, y)


def test_deep_nesting_takes_no_more_than_its_graphs():
    """Each level asked anew would double, and double again, the work of the levels below."""
    inner = trace(lambda a: (a.clone().add_(1),), torch.ones(4))
    for _ in range(25):
        graph = Graph()
        x = graph.placeholder("x")
        called = graph.call_function(
            torch.ops.higher_order.invoke_subgraph, (graph.get_attr("f"), "f", x)
        )
        graph.output((graph.call_function(operator.getitem, (called, 0)),))
        inner = GraphModule({"f": inner}, graph)
    (call,) = (n for n in inner.graph.nodes if n.target is torch.ops.higher_order.invoke_subgraph)
    assert effects(call).pure
    assert Numbering(inner.graph).number(call) is call
