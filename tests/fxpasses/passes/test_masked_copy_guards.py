"""Each guard of replace-masked-copy-with-where refuses a program that is wrong without it."""

import pytest
import torch

from fxpasses import RewriteRefused
from fxpasses.passes import ReplaceMaskedCopyWithWhere
from tests.fxpasses.passes.judge import Judge, copy_picks
from tests.fxpasses.programs import (
    TWO_DEVICES,
    aten,
    export,
    missed,
    run,
    trace_fake,
    writes,
)

PASS = ReplaceMaskedCopyWithWhere()
JUDGE = Judge(PASS)
rewrite, refuse, assert_needed = JUDGE.rewrite, JUDGE.refuse, JUDGE.assert_needed


# Guards. Each has a program that it alone refuses, and that is wrong without it.


def accumulate(out, source, mask):
    return aten.index_put(out, [mask], source[mask], True)


def test_guard_accumulate(draw):
    inputs = draw.floats(6), draw.floats(6), draw.mask(6)
    assert refuse(accumulate, *inputs)["accumulate"] == "it adds to the destination"
    assert_needed("accumulate", accumulate, *inputs)


def every_pick_to_every_place(out, source, mask):
    first = torch.zeros_like(mask.nonzero())
    return aten.index_put(out, [mask, first], source[mask])


def test_guard_single_mask(draw, functional):
    inputs = draw.floats(6, 1), draw.floats(6, 1), torch.ones(6, dtype=torch.bool)
    reasons = refuse(every_pick_to_every_place, *inputs, functional=functional)
    assert "indexed by 2 tensors, not by one mask alone" in reasons["single_mask"]
    assert_needed("single_mask", every_pick_to_every_place, *inputs, functional=functional)


def test_a_mask_over_later_dims_is_kept(draw, functional):
    def columns(out, source, mask):
        out = out.clone()
        out[:, mask] = source[:, mask]
        return out

    reasons = refuse(
        columns, draw.floats(3, 5), draw.floats(3, 5), draw.mask(5), functional=functional
    )
    assert "indexed by 1 tensors" in reasons["single_mask"]


def the_diagonal_to_each_row(out, source, mask):
    diagonal = source[mask, mask]
    torch._check(diagonal.shape[0] == 5)
    return aten.index_put(out, [mask], diagonal)


def test_guard_picked_values(draw):
    inputs = draw.floats(5, 5), draw.floats(5, 5), torch.ones(5, dtype=torch.bool)
    reasons = refuse(the_diagonal_to_each_row, *inputs)
    assert "indexed by 2 tensors" in reasons["picked_values"]
    assert_needed("picked_values", the_diagonal_to_each_row, *inputs)


@pytest.mark.parametrize("change", [torch.neg, lambda v: v.flip(0), lambda v: v.cumsum(0)])
def test_changed_picks_are_kept(draw, change):
    def copied(out, source, mask):
        out = out.clone()
        out[mask] = change(source[mask])
        return out

    reasons = refuse(copied, draw.floats(6), draw.floats(6), draw.mask(6), functional=True)
    assert "the values are no picks of a mask" in reasons["picked_values"]


def other_picks(out, source, mask, other):
    out = out.clone()
    out[mask] = source[other]
    return out


def test_guard_same_mask(draw, functional):
    mask = draw.mask(8)
    inputs = draw.floats(8), draw.floats(8), mask, draw.shuffled(mask)
    reasons = refuse(other_picks, *inputs, functional=functional)
    assert "need not equal mask" in reasons["same_mask"]
    assert_needed("same_mask", other_picks, *inputs, functional=functional)


def negate(mask):
    mask.logical_not_()
    mask.logical_not_()
    mask[0].logical_not_()
    mask[1].logical_not_()


def set_element(mask):
    mask[0], mask[1] = mask[1].clone(), mask[0].clone()


def through_a_view(mask):
    mask.view(2, -1).copy_(mask.view(2, -1).flip(0))


@pytest.mark.parametrize("write", [negate, set_element, through_a_view])
def test_a_mask_written_between_pick_and_put(draw, write):
    def copied(out, source, mask):
        out, mask = out.clone(), mask.clone()
        picked = source[mask]
        write(mask)
        out[mask] = picked
        return out

    inputs = draw.floats(4), draw.floats(4), torch.tensor([True, False, True, True])
    assert "same_mask" in refuse(copied, *inputs)
    assert_needed("same_mask", copied, *inputs)
    assert "same_mask" in refuse(copied, *inputs, functional=True)


def test_tied_buffers_are_one_mask_that_is_written(draw):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            mask = torch.tensor([True, False, True, False])
            self.register_buffer("mask", mask)
            self.register_buffer("tied", mask)

        def forward(self, out, source):
            picked = source[self.mask]
            self.tied.logical_not_()
            out = out.clone()
            out[self.mask] = picked
            return out

    program = export(Tied(), draw.floats(4), draw.floats(4))
    assert "same_mask" in missed(run(PASS, program))


def raw_copy(out, source, mask):
    return aten.index_put(out, [mask], aten.index(source, [mask]))


def test_guard_same_kind(draw):
    """With a single pick, ATen's index_put takes values of another dtype and converts them."""
    inputs = draw.integers(6), draw.floats(6), torch.arange(6) == 2
    assert "the source is torch.float32" in refuse(raw_copy, *inputs)["same_kind"]
    assert_needed("same_kind", raw_copy, *inputs)


def test_picks_that_broadcast_are_kept(draw):
    inputs = draw.floats(4, 3), draw.floats(4, 1), draw.mask(4)
    reasons = refuse(copy_picks, *inputs, functional=True)
    assert reasons["same_kind"] == "the source has shape [4, 1], the destination [4, 3]"


def picks_written(out, source, mask):
    out, picked = out.clone(), source[mask]
    picked[:1].mul_(2)
    out[mask] = picked
    return out


def test_guard_unwritten_picks(draw):
    inputs = draw.floats(6), draw.floats(6), draw.mask(6)
    assert "may write the picks first" in refuse(picks_written, *inputs)["unwritten_picks"]
    assert_needed("unwritten_picks", picks_written, *inputs)


def source_written(out, source, mask):
    out, source = out.clone(), source.clone()
    picked = source[mask]
    source.add_(1)
    out[mask] = picked
    return out


def test_guard_unwritten_source(draw):
    inputs = draw.floats(6), draw.floats(6), draw.mask(6)
    reason = refuse(source_written, *inputs)["unwritten_source"]
    assert "may write the source after the pick" in reason
    assert_needed("unwritten_source", source_written, *inputs)
    rewrite(source_written, *inputs, functional=True)


@pytest.mark.parametrize(
    "hide",
    [
        lambda x: x.detach(),
        lambda x: x.view(2, -1).flatten(),
        lambda x: torch.native_dropout(x, 0.5, False)[0],
        lambda x: torch.empty(0).set_(x),
        lambda x: torch.dropout(x, 0.5, False),
        lambda x: x.contiguous(),
    ],
    ids=["detach", "view", "native_dropout", "set_", "dropout", "contiguous"],
)
def test_a_source_written_under_another_name(draw, hide):
    def copied(out, source, mask):
        out, source = out.clone(), source.clone()
        picked = hide(source)[mask]
        source.add_(1)
        out[mask] = picked
        return out

    assert "unwritten_source" in refuse(copied, draw.floats(6), draw.floats(6), draw.mask(6))


def test_a_source_that_an_earlier_rewrite_made_is_watched(draw):
    """The pick reads the result of a write that is rewritten first, and then written again."""

    def copied(out, x, source, first, second):
        out, x = out.clone(), x.clone()
        picked = x.index_put_((first,), source[first])[second]
        x.add_(1)
        out[second] = picked
        return out

    inputs = draw.floats(6), draw.floats(6), draw.floats(6), draw.mask(6), draw.mask(6).flip(0)
    result = run(PASS, export(copied, *inputs))
    assert "unwritten_source" in missed(result)
    assert writes(result.program) == 1


def test_a_mask_that_an_earlier_rewrite_made_is_watched(draw):
    def copied(out, source, m, flags, first):
        out, m = out.clone(), m.clone()
        m = m.index_put_((first,), flags[first])
        picked = source[m]
        m.copy_(m.flip(0))
        out[m] = picked
        return out

    inputs = draw.floats(6), draw.floats(6), draw.mask(6), draw.mask(6), draw.mask(6)
    result = run(PASS, export(copied, *inputs))
    assert "same_mask" in missed(result)
    assert writes(result.program) == 1


def test_guard_same_device():
    """ATen's index_put moves a mask to the destination's device; where does not."""
    program = trace_fake(raw_copy, on_a_gpu_but_for_the_mask)
    reason = missed(run(PASS, program, verify="metadata"))["same_device"]
    assert reason == "the mask is on cpu, the destination on cuda:0"
    with pytest.raises(RewriteRefused, match=TWO_DEVICES):
        run(PASS.without("same_device"), program, verify="metadata")


def on_a_gpu_but_for_the_mask():
    mask = torch.ones(5, dtype=torch.bool)
    return torch.ones(5, device="cuda"), torch.ones(5, device="cuda"), mask


def test_guard_layout(draw):
    shape = (2, 3, 4, 5)
    mask = draw.mask(*shape).to(memory_format=torch.channels_last)
    inputs = draw.floats(*shape), draw.floats(*shape), mask
    reason = refuse(copy_picks, *inputs, functional=True)["layout"]
    assert reason == (
        "the replacement would have strides (60, 1, 15, 3), index_put has (60, 20, 5, 1)"
    )
    assert_needed("layout", copy_picks, *inputs, functional=True)
    rewrite(copy_picks, *inputs)


def test_a_channels_last_source_keeps_the_write_where_it_would_decide_the_layout(draw):
    shape = (2, 3, 4, 5)
    source = draw.floats(*shape).to(memory_format=torch.channels_last)
    inputs = draw.floats(*shape), source, draw.mask(2)
    assert "layout" in refuse(copy_picks, *inputs, functional=True)


def windows_written(out, source, mask):
    out = out.clone()
    out.unfold(0, 2, 1)[mask] = source[mask]
    return out


def test_guard_distinct_places(draw):
    mask = torch.tensor([[False, True], [False, False], [True, False]])
    inputs = draw.floats(4), draw.floats(3, 2), mask
    reason = refuse(windows_written, *inputs)["distinct_places"]
    assert reason == "elements of unfold may share memory"
    assert_needed("distinct_places", windows_written, *inputs)


def test_a_mask_written_through_itself_is_kept(draw):
    """Eager refuses to fill a mask through itself, which is what it does with one pick."""

    def itself(mask, other):
        mask[mask] = mask[mask]
        return other

    inputs = draw.mask(6), draw.floats(2)
    reason = missed(run(PASS, export(itself, *inputs, functional=False)))["distinct_places"]
    assert reason.endswith("may share memory")


def test_an_expanded_destination_is_kept(draw):
    def copied(out, source, mask):
        out = out.clone().expand(3, 4)
        out[mask] = source[mask]
        return out

    program = export(copied, draw.floats(1, 4), draw.floats(3, 4), draw.mask(3, 4))
    assert "distinct_places" in missed(run(PASS, program, verify="metadata"))
    with pytest.raises(RewriteRefused, match="single memory location"):
        run(PASS.without("distinct_places"), program)


def test_every_guard_has_a_test_here():
    tested = {name.removeprefix("test_guard_") for name in globals() if "test_guard_" in name}
    assert tested == set(PASS.guards())
