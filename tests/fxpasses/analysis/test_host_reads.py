"""Which operators make the host wait for the device."""

from contextlib import suppress
from types import SimpleNamespace

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.fx import Graph, GraphModule
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from fxpasses.analysis import effects, host_reads
from tests.fxpasses.analysis.waiting import NO_WAITS, WAITS, label, tensors
from tests.fxpasses.programs import export, run, trace, trace_fake


def reads(function, *inputs, functional=False):
    program = export(function, *inputs, functional=functional)
    return [(read.operator, read.reads) for read in host_reads(program)]


def test_a_masked_copy_reads_the_count_twice_and_the_rewrite_never(draw, functional):
    def function(out, source, mask):
        out = out.clone()
        out[mask] = source[mask]
        return out

    inputs = draw.floats(5), draw.floats(5), draw.mask(5)
    program = export(function, *inputs, functional=functional)
    assert [read.reads for read in host_reads(program)] == ["the count of mask inputs_2"] * 2
    assert host_reads(run("default", program).program) == []


@pytest.mark.parametrize(
    ("function", "operator", "what"),
    [
        (lambda x: x[x > 0], "aten.index.Tensor", "the count of mask gt"),
        (lambda x: x.nonzero(), "aten.nonzero.default", "the count of inputs_0"),
        (lambda x: torch.argwhere(x), "aten.argwhere.default", "the count of inputs_0"),
        (lambda x: x.masked_select(x > 0), "aten.masked_select.default", "the count of the mask"),
        (lambda x: x.sum().item() * x, "aten.item.default", "the value of sum_1"),
        (lambda x: torch.unique(x)[0:], "aten._unique2.default", "the count of distinct values"),
    ],
)
def test_reads(draw, function, operator, what):
    found = reads(function, draw.floats(5))
    assert operator in [name for name, _ in found]
    assert any(what in read for _, read in found)


def test_the_read_of_an_item_after_decomposition(draw):
    found = reads(lambda x: x * x.sum().item(), draw.floats(5), functional=True)
    assert [name for name, _ in found] in (
        ["aten.item.default"],
        ["aten._local_scalar_dense.default"],
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[torch.tensor([0, 1])],
        lambda x: torch.where(x > 0, x, 1.0),
        lambda x: x.masked_fill(x > 0, 1.0),
        lambda x: x.repeat_interleave(torch.ones(5, dtype=torch.int64), output_size=5),
        lambda x: x.topk(2)[0] @ x.topk(2)[0],
    ],
)
def test_no_reads(draw, function):
    assert reads(function, draw.floats(5)) == []


def test_repeats_without_a_size(draw):
    found = reads(lambda x, n: x.repeat_interleave(n), draw.floats(3), torch.tensor([1, 2, 3]))
    assert [read for _, read in found] == ["the sum of the repeats"]


def test_predicates_and_regions(draw):
    def function(p, x):
        return torch.cond(p, lambda x: x * x.sum().item(), lambda x: x + 1, (x,))

    program = export(function, torch.tensor(True), draw.floats(4))
    found = {(read.region, read.reads.split()[1]) for read in host_reads(program)}
    assert found == {("", "predicate"), ("true_graph_0", "value")}


def test_a_loop_reads_its_condition(draw):
    def function(x):
        turns = torch.zeros((), dtype=torch.int64)
        body = lambda turn, x: (turn + 1, x * 2)  # noqa: E731
        return torch.while_loop(lambda turn, x: turn < 3, body, (turns, x))[1]

    assert reads(function, draw.floats(4)) == [
        ("while_loop", "the loop's condition, on every turn")
    ]


def test_the_read_is_placed(draw):
    class Pick(torch.nn.Module):
        def forward(self, x):
            return x[x > 0]

    (read,) = host_reads(export(Pick(), draw.floats(4)))
    assert (read.node, read.region) == ("index", "")
    assert read.source.startswith("test_host_reads.py:")


# On the GPU: the table that tests/gpu compares with what a GPU does.


def host_read_of(each):
    """What the analysis says of an operator on tensors of a GPU, which need not be there."""
    operator, operands, kwargs = each
    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        given = tensors("cuda")
        graph = Graph()
        nodes = SimpleNamespace()
        for name, value in vars(given).items():
            node = graph.placeholder(name)
            node.meta["val"] = value
            setattr(nodes, name, node)
        call = graph.call_function(operator, operands(nodes), kwargs)
        with suppress(RuntimeError, NotImplementedError, DataDependentOutputException), mode:
            call.meta["val"] = operator(*operands(given), **kwargs)
    return effects(call).host_read


@pytest.mark.parametrize("each", WAITS, ids=label)
def test_operators_that_wait(each):
    assert host_read_of(each)


@pytest.mark.parametrize("each", NO_WAITS, ids=label)
def test_operators_that_do_not_wait(each):
    assert host_read_of(each) == ""


@pytest.mark.parametrize("each", [*WAITS, *NO_WAITS], ids=label)
def test_the_operands_fit(each):
    operator, operands, kwargs = each
    here = {name: "cpu" if name == "device" else value for name, value in kwargs.items()}
    operator(*operands(tensors("cpu")), **here)


def test_the_table_is_long_enough():
    assert len({label(each) for each in NO_WAITS}) > 100


def moved(function, *names, device="cuda"):
    """The reads of a function of tensors on a GPU, or on the CPU as the program was traced."""
    module = trace_fake(function, lambda: [getattr(tensors(device), name) for name in names])
    return [read.reads for read in host_reads(module)]


def fill(x, rows, h):
    return torch.ops.aten.index_put(x, [rows], h)  # x[rows] = 0.5 has its number on the host


def test_a_fill_by_a_number_waits_only_where_the_number_is_on_the_device():
    """Traced on the CPU, the number is taken as moved to the device with all the rest."""
    assert moved(fill, "x", "rows", "h") == []
    assert moved(fill, "x", "rows", "h", device="cpu") == ["the count of mask rows_1"]


def test_what_is_copied():
    assert moved(lambda x: x.cpu(), "x") == ["the elements of x_1, to copy them to the host"]
    copied = moved(lambda h: torch.ops.aten._to_copy(h, device="cuda"), "h")
    assert copied == ["nothing, but copies h_1 to the device"]
    assert moved(lambda x: x.cpu(), "x", device="cpu") == []


def branch_on(device):
    graph = Graph()
    p, x = graph.placeholder("p"), graph.placeholder("x")
    with FakeTensorMode():
        p.meta["val"] = torch.ones((), dtype=torch.bool, device=device)
        x.meta["val"] = torch.ones(3, device="cuda")
    branch = graph.get_attr("branch")
    call = graph.call_function(torch.ops.higher_order.cond, (p, branch, branch, (x,)))
    graph.output(call)
    return host_reads(GraphModule({"branch": trace(lambda x: x * 2, torch.ones(3))}, graph))


def test_a_predicate_on_the_host_is_no_read():
    assert [read.reads for read in branch_on("cuda")] == ["the predicate p"]
    assert branch_on("cpu") == []


def test_a_predicate_that_is_a_number_is_no_read(draw):
    def function(x):
        return torch.cond(x.shape[0] > 4, lambda x: x * 2, lambda x: x + 1, (x,))

    program = export(function, draw.floats(5), dynamic=[{0: torch.export.Dim("n", min=2)}])
    assert torch.ops.higher_order.cond in {node.target for node in program.graph.nodes}
    assert host_reads(program) == []
