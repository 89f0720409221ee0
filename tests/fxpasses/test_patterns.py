"""Patterns, matched against real exported graphs."""

import operator

import pytest
import torch

from fxpasses.operators import operator_of
from fxpasses.patterns import match_all, one_of, op, several, var
from tests.fxpasses.programs import trace

aten = torch.ops.aten


def graph_of(function, *shapes):
    """The graph of `function` on float inputs of these shapes."""
    inputs = tuple(torch.randn(shape) for shape in shapes)

    class Module(torch.nn.Module):
        def forward(self, *args):
            return function(*args)

    return torch.export.export(Module(), inputs).graph


def call(graph, target):
    """The last node of `graph` that calls `target`."""
    return [node for node in graph.nodes if operator_of(node) is target][-1]


def test_a_variable_binds_what_it_stands_for():
    graph = graph_of(lambda x, y: x * y + 3, (2,), (2,))
    found = op(aten.add.Tensor, var("product"), 3).match(call(graph, aten.add.Tensor))
    assert found == {"product": call(graph, aten.mul.Tensor)}


def test_a_repeated_variable_is_one_operand():
    pattern = op(aten.sub.Tensor, var("x"), var("x"))
    assert pattern.match(call(graph_of(lambda x, y: x - x, (2,), (2,)), aten.sub.Tensor))
    assert not pattern.match(call(graph_of(lambda x, y: x - y, (2,), (2,)), aten.sub.Tensor))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x * y + y,
        lambda x, y: y + x * y,
        lambda x, y: y * x + y,
        lambda x, y: y + y * x,
    ],
)
def test_commutative_operands_match_either_way(function):
    pattern = op(aten.add.Tensor, op(aten.mul.Tensor, var("x"), var("y")), var("y"))
    graph = graph_of(function, (2,), (2,))
    x, y = [node for node in graph.nodes if node.op == "placeholder"]
    assert pattern.match(call(graph, aten.add.Tensor)) == {"x": x, "y": y}


def test_subtraction_does_not_commute():
    pattern = op(aten.sub.Tensor, op(aten.mul.Tensor, var("x"), var("y")), var("z"))
    graph = graph_of(lambda x, y: y - x * y, (2,), (2,))
    assert pattern.match(call(graph, aten.sub.Tensor)) is None


def test_an_operand_that_is_left_out_has_its_default():
    pattern = op(aten.add.Tensor, var("x"), var("y"))
    graph = graph_of(lambda x, y: torch.add(x, y, alpha=2), (2,), (2,))
    node = call(graph, aten.add.Tensor)
    assert pattern.match(node) is None
    assert op(aten.add.Tensor, var("x"), var("y"), alpha=2).match(node)


@pytest.mark.parametrize("other", [2, 2.0, True])
@pytest.mark.parametrize("literal", [2, 2.0, True])
def test_a_literal_has_a_type(literal, other):
    graph = torch.fx.Graph()
    node = graph.call_function(aten.add.Tensor, (graph.placeholder("x"), other))
    found = op(aten.add.Tensor, var("x"), literal).match(node)
    assert (found is not None) == (type(literal) is type(other))


def test_alternatives_of_one_operator_and_of_patterns():
    either = op((aten.relu.default, aten.relu_.default), var("x"))
    graph = graph_of(lambda x: torch.relu(x.clone()) + torch.relu_(x.clone()), (2,))
    assert either.match(call(graph, aten.relu.default))
    assert either.match(call(graph, aten.relu_.default))
    sine_or_cosine = one_of(op(aten.sin.default, var("x")), op(aten.cos.default, var("x")))
    pattern = op(aten.neg.default, sine_or_cosine)
    assert pattern.match(call(graph_of(lambda x: -x.cos(), (2,)), aten.neg.default))
    assert not pattern.match(call(graph_of(lambda x: -x.tan(), (2,)), aten.neg.default))


def test_several_takes_any_number_of_elements():
    node = call(graph_of(lambda x, y: torch.cat([x, y, x, x]), (2,), (2,)), aten.cat.default)
    x, y = node.args[0][:2]
    assert op(aten.cat.default, [var("a"), several("rest"), var("a")]).match(node)["rest"] == (y, x)
    assert op(aten.cat.default, [several("all")]).match(node)["all"] == (x, y, x, x)
    assert op(aten.cat.default, [var("a"), var("b")]).match(node) is None


def test_several_asks_each_element():
    node = call(graph_of(lambda x: torch.cat([x.sin(), x.sin(), x]), (2,)), aten.cat.default)
    sines = several("sines", op(aten.sin.default, var("x")))
    assert op(aten.cat.default, [sines, var("last")]).match(node)
    assert op(aten.cat.default, [sines]).match(node) is None


def test_a_predicate_decides():
    wide = var("x", where=lambda node: node.meta["val"].shape[-1] > 4)
    for size, expected in ((2, False), (8, True)):
        node = call(graph_of(lambda x: x.exp(), (size,)), aten.exp.default)
        assert bool(op(aten.exp.default, wide).match(node)) is expected


def test_results_of_one_computation_match_together():
    def function(x):
        low, high = x.split(2)
        return low.sin(), high.cos()

    graph = graph_of(function, (4,))
    parts = op(aten.split.Tensor, var("x"), 2, name="parts")
    first = op(operator.getitem, parts, 0, name="a")
    second = op(operator.getitem, parts, 1, name="b")
    sine = call(graph, aten.sin.default)
    found = match_all([op(aten.sin.default, first), second, op(aten.cos.default, second)], sine)
    assert found["a"] is not found["b"]
    assert found["parts"] is call(graph, aten.split.Tensor)
    assert match_all([op(aten.sin.default, first), op(aten.sin.default, second)], sine) is None


def test_edge_dialect_operators_are_looked_through():
    class Edge:
        """Shaped like ExecuTorch's wrapper around an ATen operator."""

        _op = aten.add.Tensor
        __name__ = __module__ = "edge"

        def __call__(self, x, y):
            return x + y

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(Edge(), (x, 1))
    assert op(aten.add.Tensor, var("x"), 1).match(node)


def test_nested_commutative_operators_do_not_blow_up():
    """A refusal below 30 levels of swaps is found by the shape alone."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    node, pattern = graph.call_function(aten.sin.default, (x,)), op(aten.cos.default, var("x"))
    for _ in range(30):
        node = graph.call_function(aten.add.Tensor, (node, node))
        pattern = op(aten.add.Tensor, pattern, pattern)
    assert pattern.match(node) is None


def node_of(function, target, *inputs):
    return trace(function, *inputs).graph.find_nodes(op="call_function", target=target)[0]


def test_a_scaled_sum_does_not_commute(draw):
    a, b = draw.floats(3), draw.floats(3)
    node = node_of(lambda a, b: torch.add(a, a * b, alpha=2), aten.add.Tensor, a, b)
    product = op(aten.mul.Tensor, var("x"), var("y"))
    assert op(aten.add.Tensor, product, var("z"), alpha=2).match(node) is None
    assert op(aten.add.Tensor, var("z"), product, alpha=2).match(node) is not None


def test_operands_given_by_name_commute_too(draw):
    a, b = draw.floats(3), draw.floats(3)
    node = node_of(lambda a, b: a + b.relu(), aten.add.Tensor, a, b)
    relu = op(aten.relu.default, var("x"))
    assert op(aten.add.Tensor, relu, other=var("y")).match(node) is not None
    assert op(aten.add.Tensor, other=var("y"), self=relu).match(node) is not None


def test_an_operand_may_be_called_target(draw):
    a, b = draw.floats(3), draw.floats(3)
    node = node_of(lambda a, b: aten.mse_loss(a, b), aten.mse_loss.default, a, b)
    assert op(aten.mse_loss.default, var("x"), target=var("y")).match(node) is not None


def test_zero_has_a_sign(draw):
    node = node_of(lambda a: a + -0.0, aten.add.Tensor, draw.floats(3))
    assert op(aten.add.Tensor, var("x"), 0.0).match(node) is None
    assert op(aten.add.Tensor, var("x"), -0.0).match(node) is not None


def test_a_tuple_is_as_good_as_a_list(draw):
    a, b = draw.floats(3), draw.floats(3)
    node = node_of(lambda a, b: torch.cat([a, b]), aten.cat.default, a, b)
    assert op(aten.cat.default, (var("x"), var("y"))).match(node) is not None


def test_one_node_is_no_two_results(draw):
    node = node_of(lambda a: a.relu(), aten.relu.default, draw.floats(3))
    twice = [op(aten.relu.default, var("x"), name=name) for name in ("first", "second")]
    assert match_all(twice, node) is None


@pytest.mark.parametrize("last", [True, False])
def test_many_products_are_matched_in_few_steps(draw, last):
    """Each product could be turned round; what it binds matters to nobody else, so none is."""
    count, asked = 40, []

    def sums(*inputs):
        total = inputs[0] * inputs[1]
        for left, right in zip(inputs[2::2], inputs[3::2], strict=True):
            total = total + left * right
        return total * inputs[0]

    def ask(value):
        asked.append(value)
        return True

    graph = trace(sums, *(draw.floats(2) for _ in range(2 * count))).graph
    (*_, root) = graph.find_nodes(op="call_function", target=aten.mul.Tensor)
    pattern = op(aten.mul.Tensor, var("x0", where=ask), var("y0", where=ask))
    for place in range(1, count):
        product = op(aten.mul.Tensor, var(f"x{place}", where=ask), var(f"y{place}", where=ask))
        pattern = op(aten.add.Tensor, pattern, product)
    pattern = op(aten.mul.Tensor, pattern, var("x0" if last else "x7"))
    assert (pattern.match(root) is not None) is last
    assert len(asked) < 40 * count
