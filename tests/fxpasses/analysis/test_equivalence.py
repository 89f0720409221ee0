"""Equal value numbers mean equal bits, on every input; and the common cases are seen as equal."""

import random

import pytest
import torch
from torch.fx import Graph, Interpreter

from fxpasses.analysis import Numbering, equivalent
from tests.fxpasses.programs import Draw, assert_same, aten, copies, export, results, trace


def judge(function, *inputs):
    """Whether the two results of a function are equivalent."""
    graph_module = trace(function, *inputs)
    left, right = results(graph_module)
    return equivalent(left, right)


def chain(x, length):
    for step in range(length):
        x = x + step % 3
    return x


def written_twice(x):
    x = x.clone()
    x.add_(1)
    return x > 0, x > 0


def draw_once(x):
    drawn = torch.rand_like(x)
    return drawn > 0.5, drawn > 0.5


EQUAL = {
    "one node": lambda x: (x, x),
    "the same steps": lambda x: ((x * 2).cos() > 0, (x * 2).cos() > 0),
    "a product of whole numbers, swapped": lambda x: (x.int() * x.char(), x.char() * x.int()),
    "a sum of whole numbers, swapped": lambda x: (x.int() + x.char(), x.char() + x.int()),
    "and, swapped": lambda x: ((x > 0) & (x < 1), (x < 1) & (x > 0)),
    "equality, swapped": lambda x: (x == x.cos(), x.cos() == x),
    "an argument by name": lambda x: (x.sum(dim=0), torch.sum(x, 0)),
    "a default written out": lambda x: (
        aten.add.Tensor(x, x.cos()),
        aten.add.Tensor(x, x.cos(), alpha=1),
    ),
    "a clone": lambda x: (x > 0, x.clone() > 0),
    "a detached alias": lambda x: (x > 0, x.detach() > 0),
    "views that change nothing": lambda x: (
        x.view(2, 2) > 0,
        x.view(2, 2).reshape(2, 2).expand(2, 2)[0:].permute(0, 1) > 0,
    ),
    "a copy in the same order": lambda x: (x.view(2, 2), aten.view_copy(x.view(2, 2), [2, 2])),
    "the same view": lambda x: (x.view(-1) > 0, x.view(-1) > 0),
    "a list of operands": lambda x: (torch.cat([x, x.cos()]), torch.cat([x, x.cos()])),
    "results by position": lambda x: (x.sort()[0], x.sort()[0]),
    "counts along a dim": lambda x: ((x > 0).cumsum(0), (x > 0).cumsum(0)),
    "constants of one kind": lambda x: (x + torch.ones(4), x + torch.ones(4)),
    "both after a write": written_twice,
    "one draw": draw_once,
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal(draw, name):
    verdict = judge(EQUAL[name], draw.floats(4))
    assert verdict, verdict.reason
    left, right = EQUAL[name](draw.floats(4))
    assert_same(left, right)


def write_between(write):
    def function(x):
        x = x.clone()
        view = x.view(2, 2)
        before = x > 0
        write(x, view)
        return before, x > 0

    return function


def test_products_of_nans_take_the_payload_of_one_operand():
    """Why products of floats do not commute: eager gives other bits."""
    one, other = (torch.tensor([bits], dtype=torch.int32) for bits in (0x7FC00001, 0x7FC00002))
    swapped = [
        (a.view(torch.float32) * b.view(torch.float32)).view(torch.int32)
        for a, b in ((one, other), (other, one))
    ]
    assert not torch.equal(*swapped)


def setitem(x, view):
    x[0] = 9


DIFFERENT = {
    "other inputs": (lambda x: (x + 1, x.cos() + 1), "are different values"),
    "operators with one signature": (lambda x: (x.cos(), x.sin()), "are different values"),
    "comparisons": (lambda x: (x < 1, x > 1), "are different values"),
    "other constants": (lambda x: (x + 1, x + 2), "with different constants"),
    "1 and 1.0": (lambda x: (x + 1, x + 1.0), "with different constants"),
    "1 and True": (lambda x: (x == 1, x == True), "with different constants"),  # noqa: E712
    "0.0 and -0.0": (lambda x: (x.clamp(min=0.0), x.clamp(min=-0.0)), "different constants"),
    "difference, swapped": (lambda x: (x - x.cos(), x.cos() - x), "different"),
    "product of two layouts, swapped": (
        lambda x: (x.view(2, 2) * x.view(2, 2).t(), x.view(2, 2).t() * x.view(2, 2)),
        "are different values",
    ),
    "sum, scaled": (lambda x: (torch.add(x, x), torch.add(x, x, alpha=2)), "different constants"),
    "a part of the same size": (
        lambda x: (x[1:][:3] > 0, x[:3] > 0),
        "different values",
    ),
    "other dtype": (lambda x: (x.double(), x.half()), "with different constants"),
    "other dims": (lambda x: (x.view(2, 2).sum(0), x.view(2, 2).sum(1)), "different constants"),
    "other results": (lambda x: (x.sort()[0], x.sort()[1]), "with different constants"),
    "places of ties": (lambda x: (x.topk(2)[1], x.topk(2)[1]), "two runs of aten.topk.default"),
    "product of floats, swapped": (lambda x: (x * x.cos(), x.cos() * x), "different values"),
    "maximum of floats, swapped": (
        lambda x: (torch.maximum(x, x.cos()), torch.maximum(x.cos(), x)),
        "different values",
    ),
    "sum, scaled and swapped": (
        lambda x: (torch.add(x.int(), x.char(), alpha=2), torch.add(x.char(), x.int(), alpha=2)),
        "different constants",
    ),
    "running sums of floats": (lambda x: (x.cumsum(0), x.cumsum(0)), "two runs of aten.cumsum"),
    "a permuted copy that came back to its strides": (
        lambda x: (x.view(2, 2), aten.permute_copy(x.view(2, 2), [1, 0])),
        "are different values",
    ),
    "two draws": (lambda x: (torch.rand_like(x), torch.rand_like(x)), "are two runs of"),
    "two masks of two draws": (
        lambda x: (torch.rand_like(x) > 0.5, torch.rand_like(x) > 0.5),
        "are two runs of aten.rand_like.default, which may differ",
    ),
    "memory nobody wrote": (lambda x: (torch.empty(4), torch.empty(4)), "are two runs of"),
    "permuted memory nobody wrote": (
        lambda x: (torch.empty_permuted((4,), (0,)), torch.empty_permuted((4,), (0,))),
        "are two runs of",
    ),
    "sums in any order": (
        lambda x: (
            x.scatter_add(0, torch.tensor([0, 0, 1, 1]), x),
            x.scatter_add(0, torch.tensor([0, 0, 1, 1]), x),
        ),
        "two runs of aten.scatter_add.default",
    ),
    "around a write": (write_between(lambda x, view: x.add_(1)), "are different values"),
    "around a write to a view": (write_between(lambda x, view: view.mul_(2)), "different sides"),
    "around an element's write": (write_between(setitem), "on different sides of a write"),
    "around a write through out=": (
        write_between(lambda x, view: torch.add(x, 1, out=x)),
        "are different values",
    ),
    "places counted from the start of the memory": (
        lambda x: (
            x.view(2, 2)[1].as_strided((2,), (1,), 0),
            x.view(2, 2)[1].clone().as_strided((2,), (1,), 0),
        ),
        "two runs of aten.as_strided.default, which may differ",
    ),
    "strided sums": (lambda x: (x.view(2, 2).sum(), x.view(2, 2).t().sum()), "different"),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different(draw, name):
    function, reason = DIFFERENT[name]
    verdict = judge(function, draw.floats(4))
    assert not verdict
    assert reason in verdict.reason


def test_values_of_another_graph(draw):
    one, other = (trace(lambda x: (x + 1, x + 1), draw.floats(4)) for _ in range(2))
    verdict = equivalent(results(one)[0], results(other)[0])
    assert "different graphs" in verdict.reason


def test_an_unknown_operator_may_answer_anything(draw):
    @torch.library.custom_op("fxpasses_test::coin", mutates_args=())
    def coin(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    coin.register_fake(torch.empty_like)
    verdict = judge(lambda x: (coin(x), coin(x)), draw.floats(4))
    assert "two runs of fxpasses_test.coin.default" in verdict.reason


def test_a_node_made_later_is_read_as_one_value_only_where_nothing_writes(draw):
    for function, same in ((lambda x: (x * 2, x + 1), True), (lambda x: (x * 2, x.add_(1)), False)):
        module = trace(function, draw.floats(4))
        one, other = results(module)
        numbering = Numbering(module.graph)
        with module.graph.inserting_before(one):
            new = module.graph.call_function(aten.neg.default, (one.args[0],))
        assert (numbering.read(new, one) == numbering.read(new, other)) is same
        assert numbering.read(new, one) == numbering.read(new, one)


def test_sizes(draw):
    def function(x, y):
        grown = x.shape[0] * 2 + 1
        return y.new_ones(grown), y.new_ones(x.shape[0] * 2 + 1), y.new_ones(x.shape[0] * 2)

    dynamic = [{0: torch.export.Dim("n", min=2)}, None]
    left, right, other = results(export(function, draw.floats(4), draw.floats(3), dynamic=dynamic))
    assert equivalent(left, right)
    assert not equivalent(left, other)


# Long histories.


@pytest.mark.parametrize("length", [1200, 20_000])
def test_long_histories(length):
    graph = Graph()
    x = graph.placeholder("x")

    def history(first):
        value = graph.call_function(aten.add.Tensor, (x, first))
        for step in range(length - 1):
            value = graph.call_function(aten.add.Tensor, (value, step % 3))
        return graph.call_function(aten.gt.Scalar, (value, 0))

    one, again, other = history(1), history(1), history(2)
    graph.output((one, again, other))
    numbering = Numbering(graph)
    assert equivalent(one, again, numbering)
    assert "different constants" in equivalent(one, other, numbering).reason


def test_the_time_grows_with_the_history_and_not_faster():
    """Sharing makes a naive comparison exponential: each step reads the one before it twice."""
    graph = Graph()
    x = graph.placeholder("x")

    def history():
        value = x
        for _ in range(200):
            value = graph.call_function(aten.mul.Tensor, (value, value))
        return value

    one, again = history(), history()
    assert equivalent(one, again)


# Random programs: what has one number holds one value, at birth and at each read.


def random_program(seed, steps=25):
    """A function whose steps compute, alias, write and draw, in an order given by `seed`."""

    def function(x, y):
        choose = random.Random(seed)
        pool = [x.clone(), y.clone(), x > y]
        for _ in range(steps):
            a, b = choose.choice(pool), choose.choice(pool)
            pool.append(choose.choice(STEPS)(a, b))
        return pool

    return function


def in_place(change):
    def step(a, b):
        change(a, b)
        return a

    return step


STEPS = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: b * a,
    lambda a, b: a == b,
    lambda a, b: torch.logical_and(a, b),
    lambda a, b: a > 0,
    lambda a, b: a.clone(),
    lambda a, b: a.detach(),
    lambda a, b: a.view(-1).view(a.shape),
    lambda a, b: a.flip(0),
    lambda a, b: a.expand(a.shape).contiguous(),
    lambda a, b: torch.where(a > 0, a, b),
    lambda a, b: a.to(torch.float64),
    lambda a, b: torch.rand_like(a, dtype=torch.float32) > 0.5,
    lambda a, b: torch.dropout(a.float(), 0.5, train=False),
    lambda a, b: torch.zeros_like(a),
    in_place(lambda a, b: a.logical_not_()),
    in_place(lambda a, b: a.copy_(b)),
    in_place(lambda a, b: a[1:].zero_()),
    in_place(lambda a, b: a.view(-1)[:2].copy_(b.view(-1)[:2])),
    in_place(lambda a, b: torch.add(a.double(), 1, out=a) if a.dtype == torch.double else a),
]


class Recorder(Interpreter):
    """Notes what each node gives, and what it finds in its operands, as copies."""

    def __init__(self, module):
        super().__init__(module)
        self.values, self.reads = {}, {}

    def run_node(self, node):
        for operand in node.all_input_nodes:
            self.reads[operand, node] = copies([self.env[operand]])[0]
        value = super().run_node(node)
        self.values[node] = copies([value])[0]
        return value


def assert_one_value_each(numbered):
    seen = {}
    for number, value in numbered:
        assert_same(seen.setdefault(number, value), value)


@pytest.mark.parametrize("seed", range(60))
def test_equal_numbers_hold_equal_values(seed):
    function, draw = random_program(seed), Draw(seed)
    inputs = draw.integers(4, low=-2, high=3).float(), draw.integers(4, low=-2, high=3).float()
    module = trace(function, *inputs)
    numbering, recorder = Numbering(module.graph), Recorder(module)
    recorder.run(*copies(inputs))
    tensors = {n: v for n, v in recorder.values.items() if isinstance(v, torch.Tensor)}
    assert_one_value_each((numbering.number(node), value) for node, value in tensors.items())
    reads = {(o, r): v for (o, r), v in recorder.reads.items() if o in tensors}
    assert_one_value_each((numbering.read(*pair), value) for pair, value in reads.items())


def test_the_random_programs_do_share_numbers():
    """A generator whose values are all different would prove nothing."""
    shared = 0
    for seed in range(10):
        graph = trace(random_program(seed), torch.ones(4), torch.zeros(4)).graph
        numbering = Numbering(graph)
        shared += len(graph.nodes) - len({numbering.number(node) for node in graph.nodes})
    assert shared > 20
