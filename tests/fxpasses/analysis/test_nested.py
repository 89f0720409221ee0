"""Values of nested graphs: what their inputs stand for, and what their callers get."""

from dataclasses import dataclass, field

import pytest
import torch
from torch._higher_order_ops import scan, while_loop
from torch._higher_order_ops.map import map as map_slices
from torch.fx import Graph, GraphModule

from fxpasses import InvalidProgram, Pipeline
from fxpasses.analysis import Numbering, equivalent
from fxpasses.analysis.nested import Numberings
from fxpasses.regions import placeholders, regions
from tests.fxpasses.programs import aten, calls, export, missed, results, run, trace

higher_order = torch.ops.higher_order


@dataclass
class Outer:
    """A graph that calls others."""

    inner: dict[str, GraphModule]
    graph: Graph = field(default_factory=Graph)

    def inputs(self, *names):
        return [self.input(name) for name in names]

    def input(self, name, value=None):
        node = self.graph.placeholder(name)
        node.meta["val"] = torch.ones(4) if value is None else value
        return node

    def call(self, target, *args):
        return self.graph.call_function(target, args)

    def cond(self, p, true, false, *operands):
        branches = self.graph.get_attr(true), self.graph.get_attr(false)
        return self.call(higher_order.cond, p, *branches, operands)

    def module(self, *returned):
        self.graph.output(returned)
        return GraphModule(self.inner, self.graph)


X = torch.ones(4)


def two(function=lambda a, b: (a > 0, b > 0)):
    return trace(function, X, X.clone())


def inner_results(module, name):
    return results(getattr(module, name))


# What an input of a branch stands for.


def test_inputs_of_a_branch_that_stand_for_one_value():
    outer = Outer({"branch": two()})
    p, x = outer.inputs("p", "x")
    one, again = outer.call(aten.neg.default, x), outer.call(aten.neg.default, x)
    module = outer.module(outer.cond(p, "branch", "branch", one, again))
    left, right = inner_results(module, "branch")
    assert equivalent(left, right, module)
    assert not equivalent(left, right)


def test_inputs_of_a_branch_that_stand_for_two_values():
    outer = Outer({"branch": two()})
    p, x, y = outer.inputs("p", "x", "y")
    module = outer.module(outer.cond(p, "branch", "branch", x, y))
    verdict = equivalent(*inner_results(module, "branch"), module)
    assert "are different values" in verdict.reason


def test_each_caller_must_agree():
    for second, same in ((("x", "x"), True), (("x", "y"), False)):
        outer = Outer({"shared": two(), "other": two()})
        p, x, y = outer.inputs("p", "x", "y")
        named = {"x": x, "y": y}
        first = outer.cond(p, "shared", "other", y, y)
        then = outer.cond(p, "other", "shared", *(named[name] for name in second))
        module = outer.module(first, then)
        assert bool(equivalent(*inner_results(module, "shared"), module)) is same


def test_a_caller_that_is_not_understood_refuses():
    outer = Outer({"branch": two()})
    (x,) = outer.inputs("x")
    odd = outer.call(higher_order.associative_scan, outer.graph.get_attr("branch"), [x], [x])
    module = outer.module(odd)
    assert not equivalent(*inner_results(module, "branch"), module)


def test_an_input_holds_the_value_at_the_time_of_the_call():
    """Equal when made, and written before the call."""
    outer = Outer({"branch": two()})
    p, x = outer.inputs("p", "x")
    one, again = outer.call(aten.clone.default, x), outer.call(aten.clone.default, x)
    outer.call(aten.add_.Tensor, again, 1)
    module = outer.module(outer.cond(p, "branch", "branch", one, again))
    assert equivalent(one, again, module)
    assert not equivalent(*inner_results(module, "branch"), module)


def test_a_write_inside_is_seen_through_both_inputs_that_share_memory():
    def function(a, b):
        before = b > 0
        a.add_(1)
        return before, b > 0

    for second, same in (("x", False), ("y", True)):
        outer = Outer({"branch": two(function)})
        p, x, y = outer.inputs("p", "x", "y")
        view = outer.call(aten.view.default, {"x": x, "y": y}[second], [4])
        module = outer.module(outer.cond(p, "branch", "branch", x, view))
        assert bool(equivalent(*inner_results(module, "branch"), module)) is same


def test_across_the_border_of_a_branch(draw):
    def function(p, x):
        outside = x > 0
        inside = torch.cond(p, lambda x: (x > 0).clone(), lambda x: x < 0, (x,))
        return outside, inside

    program = export(function, torch.tensor(True), draw.floats(4))
    outside = results(program)[0]
    (inside,) = results(program.graph_module.true_graph_0)
    (other,) = results(program.graph_module.false_graph_0)
    assert equivalent(outside, inside, program)
    assert "different values" in equivalent(outside, other, program).reason
    assert "pass" not in equivalent(outside, inside).reason
    assert "equivalent(left, right, program)" in equivalent(outside, inside).reason


def test_nodes_of_another_program(draw):
    one, other = (trace(lambda x: (x + 1, x + 1), draw.floats(4)) for _ in range(2))
    with pytest.raises(InvalidProgram, match="is in no graph of the program"):
        equivalent(results(one)[0], results(other)[0], one)


# Loops: an input is carried from turn to turn.


def loop(body, *carried, additional=()):
    """A while_loop with a counter, and the results of its body."""
    names = [f"additional_{place}" for place in range(len(additional))]
    example = [torch.zeros((), dtype=torch.int64), *[X.clone() for _ in (*carried, *names)]]
    outer = Outer(
        {
            "condition": trace(lambda turn, *rest: turn < 3, *example),
            "body": trace(lambda turn, *rest: (turn + 1, *body(*rest)), *example),
        }
    )
    (x, y) = outer.inputs("x", "y")
    named = {"x": x, "y": y}
    turn = outer.input("turn", example[0])
    first = (turn, *(named[name] for name in carried))
    outside = tuple(named[name] for name in additional)
    graphs = outer.graph.get_attr("condition"), outer.graph.get_attr("body")
    module = outer.module(outer.call(higher_order.while_loop, *graphs, first, outside))
    return module, placeholders(module.body.graph)[1:]


@pytest.mark.parametrize(
    ("body", "carried", "additional", "same"),
    [
        (lambda a, b: (a + 1, b + 1), "xx", "", True),
        (lambda a, b: (a + 1, b + 1), "xy", "", False),
        (lambda a, b: (a + 1, b + 2), "xx", "", False),
        (lambda a, b: (b * 2, a * 2), "xx", "", True),
        (lambda a, b: (b.clone(), a.clone()), "xy", "", False),
        (lambda a, b: (torch.rand_like(a), torch.rand_like(b)), "xx", "", False),
        (lambda a, b: (a.clone(),), "x", "x", True),
        (lambda a, b: (a + 1,), "x", "x", False),
        (lambda a, b: (b.clone(),), "x", "x", True),
        (lambda a, b: (b.clone(),), "y", "x", False),
        (lambda a, b: (a + 1,), "x", "y", False),
    ],
)
def test_carried_inputs(body, carried, additional, same):
    module, (left, right) = loop(body, *carried, additional=additional)
    assert bool(equivalent(left, right, module)) is same


def test_inputs_that_part_after_several_turns():
    """a and b agree until the difference of c and d has travelled to them."""

    def body(a, b, c, d, e, f):
        return c.clone(), d.clone(), e.clone(), f.clone(), e + 1, f + 2

    module, (a, b, c, d, e, f) = loop(body, *"xxxxxx")
    for left, right in ((a, b), (c, d), (e, f)):
        assert not equivalent(left, right, module)


def test_what_does_not_change_is_the_value_outside():
    module, (kept, changed, additional) = loop(
        lambda a, b, c: (a.clone(), b + 1), "x", "y", additional="y"
    )
    x, y, _ = placeholders(module.graph)
    assert equivalent(kept, x, module)
    assert equivalent(additional, y, module)
    assert not equivalent(changed, y, module)


def test_slices(draw):
    def function(x, y):
        first, again = x * 2, x * 2
        mapped = map_slices(lambda pair, z: (pair[0] > z, pair[1] > z), (first, again), y[0])
        scanned = scan(lambda c, row: (c + row[0], row[0] * row[1]), y[0].clone(), (first, again))
        return mapped, scanned, first

    program = export(function, draw.floats(3, 4), draw.floats(3, 4))
    graph, first = program.graph_module, results(program)[-1]
    mapped = placeholders(graph.body_graph_0.graph)
    assert equivalent(*mapped[:2], program)
    assert not equivalent(mapped[0], first, program)
    carried, *rows = placeholders(graph.scan_combine_graph_0.graph)
    assert equivalent(*rows, program)
    assert not equivalent(carried, rows[0], program)
    assert not equivalent(mapped[0], rows[0], program)  # any slice need not be any other


# What callers get.


def conds(function, draw):
    """The first two results of a function of a predicate and two tensors, and the program."""
    program = export(function, torch.tensor(True), draw.floats(4), draw.floats(4))
    return (*results(program)[:2], program)


def positive(x):
    return x > 0


def negative(x):
    return x < 0


def shuffled(x, y):
    return (x + y > 0) & (x > y)


CONDS = {
    "the same branches": (
        lambda p, x, y: [torch.cond(p, positive, negative, (x,)) for _ in range(2)],
        True,
    ),
    "equivalent predicates and operands": (
        lambda p, x, y: [
            torch.cond((x * 2).sum() > 0, positive, negative, (y + 1,)) for _ in range(2)
        ],
        True,
    ),
    "operands in another order": (
        lambda p, x, y: (
            torch.cond(p, shuffled, lambda x, y: x > y, (x, y)),
            torch.cond(p, lambda y, x: shuffled(x, y), lambda y, x: x > y, (y, x)),
        ),
        True,
    ),
    "branches swapped": (
        lambda p, x, y: (
            torch.cond(p, positive, negative, (x,)),
            torch.cond(p, negative, positive, (x,)),
        ),
        False,
    ),
    "another predicate": (
        lambda p, x, y: (
            torch.cond(p, positive, negative, (x,)),
            torch.cond(~p, positive, negative, (x,)),
        ),
        False,
    ),
    "other operands": (
        lambda p, x, y: (
            torch.cond(p, positive, negative, (x,)),
            torch.cond(p, positive, negative, (y,)),
        ),
        False,
    ),
    "draws": (
        lambda p, x, y: [
            torch.cond(p, lambda x: torch.rand_like(x) > 0.5, negative, (x,)) for _ in range(2)
        ],
        False,
    ),
    "sums in any order": (
        lambda p, x, y: [
            torch.cond(
                p,
                lambda x: x.index_add(0, torch.tensor([0, 0, 1, 1]), x) > 0,
                negative,
                (x,),
            )
            for _ in range(2)
        ],
        False,
    ),
}


@pytest.mark.parametrize("name", CONDS)
def test_conds(draw, name):
    function, same = CONDS[name]
    left, right, _ = conds(function, draw)
    verdict = equivalent(left, right)
    assert bool(verdict) is same, verdict.reason


def test_why_conds_differ(draw):
    left, right, _ = conds(CONDS["branches swapped"][0], draw)
    assert "the graphs of cond and cond_1 (cond) may give different results" in str(
        equivalent(left, right).reason
    )
    left, right, _ = conds(CONDS["other operands"][0], draw)
    assert "(placeholder)" in equivalent(left, right).reason


def test_one_graph_called_twice():
    """Structure alone is not a value: what is drawn or summed inside is another in each call."""
    for function, same in (
        (lambda a: (a * 2,), True),
        (lambda a: (a.index_add(0, torch.tensor([0, 0, 1, 1]), a),), False),
        (lambda a: (torch.rand_like(a),), False),
    ):
        outer = Outer({"f": trace(function, X)})
        (x, y) = outer.inputs("x", "y")
        first, again, other = (
            outer.call(higher_order.invoke_subgraph, outer.graph.get_attr("f"), name, operand)
            for name, operand in (("f0", x), ("f0", x), ("f0", y))
        )
        outer.module(first, again, other)
        assert bool(equivalent(first, again)) is same
        assert not equivalent(first, other)


def test_one_operator_inside_on_two_operands_in_one_graph():
    """The same inner node is another value in each call."""
    outer = Outer({"f": trace(lambda a, b: (a > 0, b > 0), X, X.clone())})
    x, y = outer.inputs("x", "y")
    called = [
        outer.call(higher_order.invoke_subgraph, outer.graph.get_attr("f"), "f", *operands)
        for operands in ((x, y), (y, x))
    ]
    outer.module(*called)
    assert not equivalent(*called)


def test_loops(draw):
    def turns(x, step):
        start = torch.zeros((), dtype=torch.int64), x
        return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + step), start)[1]

    def function(x, y):
        return turns(x, 1), turns(x, 1), turns(x, 2), turns(y, 1)

    first, again, other, another = results(export(function, draw.floats(4), draw.floats(4)))
    assert equivalent(first, again)
    assert not equivalent(first, other)
    assert not equivalent(first, another)


def test_sizes_of_a_graph_with_several_callers():
    """Its symbols name the sizes of the call that it was traced for."""
    inner = trace(lambda a: (a.new_ones(a.shape[0]),), X)
    module = regions(GraphModule({}, inner.graph))[0]
    assert Numberings().of(module)


# The passes profit.


def test_a_copy_in_a_branch_by_two_inputs_that_hold_one_mask(draw):
    def function(p, x, out, source):
        def copy(out, source, mask, again):
            out = out.clone()
            out[mask] = source[again]
            return out

        keep = lambda out, *rest: out.clone()  # noqa: E731
        return torch.cond(p, copy, keep, (out, source, x > 0, x > 0))

    inputs = torch.tensor(True), draw.floats(5), draw.floats(5), draw.floats(5)
    program = export(function, *inputs)
    result = run("replace-masked-copy-with-where", program)
    assert calls(result.program, aten.index.Tensor, aten.index_put_.default) == 0, missed(result)


def test_a_copy_in_a_branch_by_two_masks(draw):
    def function(p, x, out, source):
        def copy(out, source, mask, other):
            out = out.clone()
            out[mask] = source[other]
            return out

        keep = lambda out, *rest: out.clone()  # noqa: E731
        return torch.cond(p, copy, keep, (out, source, x > 0, (x > 0).roll(1)))

    inputs = torch.tensor(True), draw.floats(5), draw.floats(5), draw.floats(5)
    result = Pipeline.parse("replace-masked-copy-with-where").run(export(function, *inputs))
    assert not result.changed
    assert "same_mask" in missed(result)


def test_a_graph_without_callers_keeps_its_inputs_apart():
    numbering = Numbering(two().graph)
    one, other = placeholders(two().graph)
    assert numbering.number(one) != numbering.number(other)


# Long histories, inside and out.


def test_long_histories_in_a_branch():
    def history(a, b):
        for _ in range(3000):
            a, b = torch.logical_not(a), torch.logical_not(b)
        return a, b

    mask = X > 0
    outer = Outer({"branch": trace(history, mask, mask.clone())})
    p, x = outer.inputs("p", "x")
    module = outer.module(outer.cond(p, "branch", "branch", x, x))
    assert equivalent(*inner_results(module, "branch"), module)
