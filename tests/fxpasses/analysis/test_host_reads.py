"""Which operators make the host wait for the device."""

import pytest
import torch

from fxpasses.analysis import host_reads
from tests.fxpasses.programs import export, run


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
