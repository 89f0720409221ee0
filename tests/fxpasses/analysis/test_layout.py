"""The layout that is foretold is the layout that eager gives."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fxpasses.analysis import lays_out_like
from fxpasses.analysis.layout import layout_of
from fxpasses.verdict import YES
from tests.fxpasses.programs import aten, export, results, run

LAST = torch.channels_last


@st.composite
def laid_out(draw, shape):
    """A tensor of some shape that broadcasts to `shape`, in any layout."""
    kept = shape[draw(st.integers(0, len(shape))) if draw(st.booleans()) else 0 :]
    sizes = [1 if draw(st.integers(0, 5)) == 0 else size for size in kept]
    kind = draw(st.sampled_from(["permuted", "sliced", "expanded", "strided"]))
    if kind == "strided":  # strides of any kind: overlapping, zero, odd ones for size 1
        strides = [draw(st.integers(0, 7)) for _ in sizes]
        return torch.zeros(400).as_strided(sizes, strides)
    order = draw(st.permutations(range(len(sizes))))
    grown = [sizes[dim] * 2 if kind == "sliced" else sizes[dim] for dim in order]
    back = [order.index(dim) for dim in range(len(sizes))]
    tensor = torch.zeros(grown).permute(back)
    if kind == "sliced":
        tensor = tensor[tuple(slice(None, None, 2) for _ in sizes)]
    if kind == "expanded" and sizes:
        dim = draw(st.integers(0, len(sizes) - 1))
        tensor = tensor.narrow(dim, 0, min(1, sizes[dim])).expand(sizes)
    return tensor


@st.composite
def operands(draw, count=3):
    shape = draw(st.lists(st.integers(0, 4), max_size=5))
    return [draw(laid_out(shape)) for _ in range(count)]


@settings(max_examples=600)
@given(operands())
def test_where(tensors):
    mask, source, out = tensors
    found = torch.where(mask > 0, source, out)
    sizes, strides = layout_of([(mask > 0), source, out])
    assert (tuple(sizes), tuple(strides)) == (tuple(found.shape), found.stride())


@settings(max_examples=300)
@given(operands(2))
def test_sums(tensors):
    found = tensors[0] + tensors[1]
    sizes, strides = layout_of(tensors)
    assert (tuple(sizes), tuple(strides)) == (tuple(found.shape), found.stride())


CONTIGUOUS, CHANNELS = torch.zeros(2, 3, 4, 5), torch.zeros(2, 3, 4, 5).to(memory_format=LAST)


@pytest.mark.parametrize(
    ("tensors", "replaced", "same"),
    [
        ((CONTIGUOUS, CONTIGUOUS, CONTIGUOUS), CONTIGUOUS, True),
        ((CHANNELS, CHANNELS, CHANNELS), CHANNELS, True),
        ((CHANNELS, CONTIGUOUS, CONTIGUOUS), CONTIGUOUS, False),
        ((CONTIGUOUS, CHANNELS, CHANNELS), CHANNELS, False),
        ((torch.zeros(4, 5), CHANNELS, CHANNELS), CHANNELS, True),
        ((torch.zeros(()), CHANNELS), CHANNELS, True),
        ((torch.zeros(3).expand(4, 3),), torch.zeros(4, 3), True),
        ((torch.zeros(3).expand(4, 3),), torch.zeros(3).expand(4, 3), False),
        ((torch.zeros(9).as_strided((4, 3), (1, 2)),), torch.zeros(3, 4).t(), True),
        ((torch.zeros(0, 4),), torch.zeros(0, 4), True),
        ((torch.zeros(1, 4).as_strided((1, 4), (9, 1)),), torch.zeros(1, 4), True),
        ((torch.zeros(4),), torch.zeros(4, 1), False),
    ],
)
def test_lays_out_like(tensors, replaced, same):
    assert bool(lays_out_like(tensors, replaced)) is same


def test_reasons():
    reason = lays_out_like([CHANNELS], CONTIGUOUS).reason
    assert "would have strides (60, 1, 15, 3), " in reason
    assert "has (60, 20, 5, 1)" in reason
    assert "would have shape [4], " in lays_out_like([torch.zeros(4)], torch.zeros(5)).reason


# Symbolic sizes.


def symbolic(function, *inputs):
    """The results of a function whose sizes are all symbolic."""
    dims = [dict.fromkeys(range(x.dim()), torch.export.Dim.DYNAMIC) for x in inputs]
    return results(export(function, *inputs, dynamic=dims))


def test_symbolic_sizes():
    def function(x, y):
        return x.cos(), y.t().cos(), x + y, torch.where(y > 0, y.t().t(), x)

    plain, turned, total, chosen = symbolic(function, torch.ones(3, 4), torch.ones(3, 4))
    assert lays_out_like([plain], total) == YES
    assert lays_out_like([plain, total], chosen) == YES
    assert "depends on whether Eq(" in lays_out_like([turned], plain).reason


def test_symbolic_channels_last():
    def function(x):
        last = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
        return x.cos(), last.cos()

    plain, last = symbolic(function, torch.ones(2, 3, 4, 5))
    assert lays_out_like([last, last], last)
    assert lays_out_like([plain, plain], plain)
    assert "would have strides" in lays_out_like([plain], last).reason


def test_a_layout_that_depends_on_a_size():
    """Which dim lies further in, of one with stride n and one with stride 5?"""

    def function(x, y):
        return x.as_strided((2, 2), (y.shape[0], 5)).view(2, 2), x.cos()

    program = export(
        function, torch.ones(60), torch.ones(7), dynamic=[None, {0: torch.export.Dim.DYNAMIC}]
    )
    alias, other = results(program)
    assert "depends on whether" in lays_out_like([alias], other).reason


def test_where_would_be_channels_last_by_its_source(draw):
    """What the guard `layout` of the passes decides is what the analysis says."""

    def function(out, source, mask):
        out = out.clone()
        return aten.index_put(out, [mask], source[mask])

    for source, same in ((CONTIGUOUS, True), (CHANNELS, False)):
        mask = draw.mask(2, 3, 4, 5)
        mask = mask.to(memory_format=LAST) if source is CHANNELS else mask
        program = export(function, draw.floats(2, 3, 4, 5), source, mask)
        (put,) = program.graph.find_nodes(op="call_function", target=aten.index_put.default)
        out, (given_mask,), picks = put.args
        assert bool(lays_out_like([given_mask, picks.args[0], out], put)) is same
        assert run("default", program).changed is same
