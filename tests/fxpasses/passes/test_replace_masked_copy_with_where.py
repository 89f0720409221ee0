"""out[mask] = src[mask] becomes where, bit for bit, and only where that is right."""

import operator

import pytest
import torch
from torch.export import Dim

from fxpasses import PassFailed, RewriteRefused, VerificationFailed
from fxpasses.passes import ReplaceMaskedCopyWithWhere
from tests.fxpasses.programs import (
    assert_equal_to_eager,
    aten,
    calls,
    export,
    missed,
    passed,
    picks,
    run,
    trace,
    trace_fake,
    writes,
)

PASS = ReplaceMaskedCopyWithWhere()


def copy_picks(out, source, mask):
    out = out.clone()
    out[mask] = source[mask]
    return out


def rewrite(function, *inputs, functional=False, dynamic=None):
    """Export, run the pass, and compare with eager; every write must have become a where."""
    result = run(PASS, export(function, *inputs, functional=functional, dynamic=dynamic))
    assert writes(result.program) == picks(result.program) == 0, missed(result)
    assert_equal_to_eager(result.program, function, *inputs)
    return result.program


def refuse(function, *inputs, functional=False):
    """Export, run the pass, and give the Missed remarks; the writes must be as they were."""
    program = export(function, *inputs, functional=functional)
    result = run(PASS, program)
    assert writes(result.program) == writes(program)
    assert_equal_to_eager(result.program, function, *inputs)
    return missed(result)


def assert_needed(guard, function, *inputs, functional=False):
    """Without the guard, the rewrite gives something else."""
    with pytest.raises(VerificationFailed, match=r"differs|it returned"):
        run(PASS.without(guard), export(function, *inputs, functional=functional))


# What is rewritten.


def test_any_mask_after_one_export(draw, functional):
    inputs = draw.floats(3, 4), draw.floats(3, 4), draw.mask(3, 4)
    program = rewrite(copy_picks, *inputs, functional=functional)
    for mask in (inputs[2], ~inputs[2], torch.zeros(3, 4).bool(), torch.ones(3, 4).bool()):
        assert_equal_to_eager(program, copy_picks, *inputs[:2], mask)


def test_any_size_after_one_dynamic_export(draw, functional):
    rows, columns = Dim("rows", min=2), Dim("columns", min=2)
    shape = {0: rows, 1: columns}
    inputs = draw.floats(3, 4), draw.floats(3, 4), draw.mask(3, 4)
    program = rewrite(copy_picks, *inputs, functional=functional, dynamic=[shape] * 3)
    for size in ((2, 9), (5, 2)):
        again = draw.floats(*size), draw.floats(*size), draw.mask(*size)
        assert_equal_to_eager(program, copy_picks, *again)


@pytest.mark.parametrize(
    "shape", [(1,), (0, 3), (3, 0), (2, 3, 4), (7, 1)], ids=lambda shape: "x".join(map(str, shape))
)
def test_shapes(draw, functional, shape):
    rewrite(
        copy_picks,
        draw.floats(*shape),
        draw.floats(*shape),
        draw.mask(*shape),
        functional=functional,
    )


@pytest.mark.parametrize("rank", [1, 2])
def test_a_mask_over_the_first_dims(draw, functional, rank):
    shape = (4, 3, 2)
    inputs = draw.floats(*shape), draw.floats(*shape), draw.mask(*shape[:rank])
    rewrite(copy_picks, *inputs, functional=functional)


@pytest.mark.parametrize(
    "dtype",
    [torch.bool, torch.uint8, torch.int64, torch.bfloat16, torch.float64, torch.complex64],
    ids=str,
)
def test_dtypes(draw, dtype):
    rewrite(
        copy_picks,
        draw.floats(9).to(dtype),
        draw.floats(9).to(dtype),
        draw.mask(9),
        functional=True,
    )


def test_the_bits_of_a_float_survive(functional):
    source = torch.tensor([-0.0, float("nan"), -float("inf"), 1e-45])
    bits = torch.tensor([0x7FA00001, -4194303], dtype=torch.int32).view(torch.float32)

    def copied(out, source, mask):
        return copy_picks(out, source, mask).view(torch.int32)

    source, mask = torch.cat([source, bits]), torch.tensor([True] * 5 + [False])
    rewrite(copied, torch.full((6,), 7.0), source, mask, functional=functional)


def test_position_ids(draw, functional):
    """A vision encoder numbers the patches that hold part of the image."""

    def number(patches):
        kept = patches.flatten(1)
        steps = torch.arange(kept.shape[1]) * 3 // kept.shape[1]
        ids = torch.full_like(kept, 7, dtype=torch.int64)
        ids[kept] = (steps + 100).expand_as(kept)[kept]
        return ids

    rewrite(number, draw.mask(2, 4, 5), functional=functional)


def test_a_flag_is_copied_to_flags(draw, functional):
    rewrite(copy_picks, draw.mask(12), ~draw.mask(12), draw.mask(12), functional=functional)


def test_one_half_of_a_tensor_shifts_into_the_other(draw, functional):
    def shift(x, mask):
        x = x.clone()
        x[1:][mask] = x[:-1][mask]
        return x

    rewrite(shift, draw.floats(7), draw.mask(6), functional=functional)


def test_the_input_itself_is_written(draw, functional):
    def write(out, source, mask):
        out[mask] = source[mask]
        return source + 1

    rewrite(write, draw.floats(6), draw.floats(6), draw.mask(6), functional=functional)


def test_a_buffer_is_written(draw, functional):
    class Store(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.full((5,), 7.0))

        def forward(self, source, mask):
            self.kept[mask] = source[mask]
            return self.kept * 2

    program = rewrite(Store(), draw.floats(5), draw.mask(5), functional=functional)
    eager, ours = Store(), program.module()
    for _ in range(3):
        inputs = draw.floats(5), draw.mask(5)
        assert torch.equal(eager(*inputs), ours(*inputs))


def test_two_writes_share_their_picks(draw, functional):
    def twice(a, b, source, mask):
        a, b, picked = a.clone(), b.clone(), source[mask]
        a[mask], b[mask] = picked, picked
        return a, b

    inputs = draw.floats(6), draw.floats(6), draw.floats(6), draw.mask(6)
    rewrite(twice, *inputs, functional=functional)


def test_one_write_feeds_the_next(draw, functional):
    def chain(a, b, source, first, second):
        a, b = a.clone(), b.clone()
        b[second] = a.index_put_((first,), source[first])[second]
        return a, b

    inputs = draw.floats(6), draw.floats(6), draw.floats(6), draw.mask(6), draw.mask(6).flip(0)
    rewrite(chain, *inputs, functional=functional)


def test_a_strided_destination_keeps_its_strides_in_place(draw):
    def write(out, source, mask):
        out = out.clone()
        out.t()[::2][mask] = source[mask]
        return out

    rewrite(write, draw.floats(3, 8), draw.floats(4, 3), draw.mask(4, 3))


def test_other_picks_of_the_same_mask_stay_and_still_lower(draw, functional):
    """Both picks have one size, which only the erased one introduced."""

    def pick_two(out, source, other, mask):
        return copy_picks(out, source, mask), other[mask] * 2

    inputs = draw.floats(6), draw.floats(6), draw.floats(6), draw.mask(6)
    program = run(PASS, export(pick_two, *inputs, functional=functional)).program
    assert (writes(program), picks(program)) == (0, 1)
    assert_equal_to_eager(program.run_decompositions(), pick_two, *inputs)


def test_the_remark_names_the_write_and_the_line(draw):
    class Module(torch.nn.Module):
        def forward(self, out, source, mask):
            return copy_picks(out, source, mask)

    program = export(Module(), draw.floats(4), draw.floats(4), draw.mask(4))
    (remark,) = passed(run(PASS, program))
    assert str(remark).startswith("passed replace-masked-copy-with-where: rewrote index_put_: ")
    assert remark.source.startswith("test_replace_masked_copy_with_where.py:")


# The same mask, written twice.


def by_age(offset):
    """Copy what is older than nothing after 1,200 steps; put it where `offset` more are."""

    def age(t):
        for step in range(1200):
            t = t + step % 4
        return t

    def copied(out, source, t):
        out = out.clone()
        out[age(t) + offset > 0] = source[age(t) + 0 > 0]
        return out

    return copied


def test_two_long_histories_that_are_equal(draw):
    rewrite(by_age(0), draw.floats(4), draw.floats(4), torch.tensor([-5, 1, -9, 3]) - 1800)


def test_two_long_histories_that_differ_at_the_end(draw):
    inputs = draw.floats(4), draw.floats(4), torch.tensor([-5, 1, -9, 3]) - 1800
    result = run(PASS, trace(by_age(1), *inputs), inputs=inputs)
    assert "need not equal" in missed(result)["same_mask"]
    assert not result.changed


def test_one_draw_used_twice(draw, functional):
    def copied(out, source):
        drawn = torch.rand_like(source) > 0.5
        out = out.clone()
        out[drawn] = source[drawn]
        return out

    program = export(copied, draw.floats(9), draw.floats(9), functional=functional)
    assert writes(run(PASS, program).program) == 0


def test_two_draws(draw, functional):
    def copied(out, source):
        out = out.clone()
        out[torch.rand_like(source) > 0.5] = source[torch.rand_like(source) > 0.5]
        return out

    program = export(copied, draw.floats(9), draw.floats(9), functional=functional)
    result = run(PASS, program, verify="metadata")
    assert not result.changed
    assert "need not equal" in missed(result)["same_mask"]


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
    return aten.index_put(out, [mask], source[mask])


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
    with pytest.raises(PassFailed, match="to be on the same device"):
        run(PASS.without("same_device"), program, verify="metadata")


def on_a_gpu_but_for_the_mask():
    mask = torch.ones(5, dtype=torch.bool)
    return torch.ones(5, device="cuda"), torch.ones(5, device="cuda"), mask


def test_guard_layout(draw):
    shape = (2, 3, 4, 5)
    mask = draw.mask(*shape).to(memory_format=torch.channels_last)
    inputs = draw.floats(*shape), draw.floats(*shape), mask
    reason = refuse(copy_picks, *inputs, functional=True)["layout"]
    assert reason == ("where would have strides (60, 1, 15, 3), index_put has (60, 20, 5, 1)")
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


# Regions.


def in_a_branch(p, out, source, mask):
    return torch.cond(p, copy_picks, lambda out, source, mask: out - source, (out, source, mask))


def in_a_nested_branch(p, out, source, mask):
    def outer(out, source, mask):
        return torch.cond(
            out.sum() > source.sum(), copy_picks, lambda o, s, m: o * 2, (out, source, mask)
        )

    return torch.cond(p, outer, lambda o, s, m: o - s, (out, source, mask))


def in_a_loop(p, out, source, mask):
    def body(turn, out):
        return turn + 1, copy_picks(out, source, mask)

    turns = torch.zeros((), dtype=torch.int64)
    return torch.while_loop(lambda turn, out: turn < 2, body, (turns, out))[1]


def in_a_map(p, out, source, mask):
    from functorch.experimental.control_flow import map as map_rows

    return map_rows(
        lambda row, out, mask: copy_picks(out, row, mask), torch.stack([source, -source]), out, mask
    )


def in_a_scan(p, out, source, mask):
    from torch._higher_order_ops.scan import scan

    def step(carry, row):
        carry = copy_picks(carry, row, mask)
        return carry, carry.sum()

    return scan(step, out, torch.stack([source, -source]), dim=0)


@pytest.mark.parametrize(
    "function", [in_a_branch, in_a_nested_branch, in_a_loop, in_a_map, in_a_scan]
)
def test_control_flow(draw, functional, function):
    inputs = torch.tensor(True), draw.floats(6), draw.floats(6), draw.mask(6)
    program = rewrite(function, *inputs, functional=functional)
    assert_equal_to_eager(program, function, ~inputs[0], *inputs[1:])


def test_inputs_that_were_traced_as_one_tensor(draw):
    def copied(source, alias, out, mask):
        picked, out = source[mask], out.clone()
        alias.add_(1)
        out[mask] = picked
        return out

    source = draw.floats(6)
    program = trace(copied, source, source.view(2, 3), draw.floats(6), draw.mask(6))
    assert "unwritten_source" in missed(run(PASS, program, verify="metadata"))


# The picks and the checks on their count.


def keeping(check):
    def copied(out, source, mask):
        out, picked = out.clone(), source[mask]
        check(picked)
        out[mask] = picked
        return out

    return copied


@pytest.mark.parametrize(
    ("holds", "fails", "reason"),
    [
        (lambda p: p.shape[0] >= 1, [], "does not hold for every mask"),
        (lambda p: p.shape[0] < 6, range(6), "does not hold for every mask"),
        (lambda p: p.shape[0] * 2 <= 8, range(6), "does not hold for every mask"),
        (lambda p: p.shape[0] != 6, range(6), "reads the count"),
    ],
    ids=["at least one", "not all", "twice the count", "not six"],
)
def test_a_check_that_can_fail_stays_with_the_index(draw, functional, holds, fails, reason):
    function = keeping(lambda picked: torch._check(holds(picked)))
    inputs = draw.floats(6), draw.floats(6), draw.mask(6)
    result = run(PASS, export(function, *inputs, functional=functional))
    assert (writes(result.program), picks(result.program)) == (0, 1)
    assert reason in missed(result)["count_checks"]
    wrong = torch.zeros(6, dtype=torch.bool).index_fill(0, torch.tensor([*fails]).long(), True)
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        result.program.module()(*inputs[:2], wrong)


@pytest.mark.parametrize(
    "holds", [lambda p: p.shape[0] >= 0, lambda p: p.shape[0] <= 6, lambda p: p.shape[0] < 7]
)
def test_a_check_that_always_holds_goes_with_the_index(draw, holds):
    function = keeping(lambda picked: torch._check(holds(picked)))
    program = rewrite(function, draw.floats(6), draw.floats(6), draw.mask(6), functional=True)
    assert calls(program, aten._assert_scalar.default, operator.ge, operator.le) == 0


def test_a_check_of_another_size_by_the_count_stays(draw, functional):
    def function(out, source, mask, other):
        out, picked = out.clone(), source[mask]
        torch._check(other.shape[0] >= picked.shape[0] + 1)
        out[mask] = picked
        return out, other + 1

    inputs = draw.floats(6), draw.floats(6), draw.mask(6), draw.floats(5)
    dynamic = [None, None, None, {0: Dim("other", min=2, max=100)}]
    program = export(function, *inputs, functional=functional, dynamic=dynamic)
    result = run(PASS, program)
    assert (writes(result.program), picks(result.program)) == (0, 1)
    assert "count_checks" in missed(result)


@pytest.mark.parametrize(
    "read", [lambda p: p.sum(), lambda p: p.shape[0], lambda p: p[:1] * 2], ids=str
)
def test_picks_with_another_reader_stay_and_the_write_goes(draw, read):
    def function(out, source, mask):
        out, picked = out.clone(), source[mask]
        out[mask] = picked
        return out, read(picked)

    inputs = draw.floats(6), draw.floats(6), torch.ones(6, dtype=torch.bool)
    program = run(PASS, export(function, *inputs, functional=True)).program
    assert (writes(program), picks(program)) == (0, 1)
    assert_equal_to_eager(program, function, *inputs)


# Writes that look like it and are something else.


def test_the_picks_of_another_mask_in_another_order(draw, functional):
    def function(out, source, mask, other):
        a, b, c = out.clone(), out.clone(), out.clone()
        a[mask] = source[other]
        b[mask] = source[mask].flip(0)
        c[mask] = source[mask] + 1
        return a, b, c

    mask = draw.mask(8)
    inputs = draw.floats(8), draw.floats(8), mask, draw.shuffled(mask)
    assert set(refuse(function, *inputs, functional=functional)) == {"same_mask", "picked_values"}


def test_a_mask_beside_an_integer(draw, functional):
    def function(x, mask, column):
        a, b = x.clone(), x.clone()
        a[mask, column] = -3.0
        b[mask, column] = x[mask, column]
        return a, b, aten.index_put(x, [mask], x[mask], True)

    inputs = draw.floats(5, 4), draw.mask(5), torch.tensor([2])
    assert set(refuse(function, *inputs, functional=functional)) == {"accumulate", "single_mask"}


def test_a_function_is_left_alone_that_writes_through_integers(draw):
    def function(out, source, index):
        out = out.clone()
        out[index] = source[index]
        return out

    program = export(function, draw.floats(5), draw.floats(5), torch.tensor([1, 3]))
    result = run(PASS, program)
    assert (result.program, result.remarks) == (program, [])
