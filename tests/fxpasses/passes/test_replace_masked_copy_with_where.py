"""out[mask] = src[mask] becomes where, bit for bit, in every region."""

import pytest
import torch
from torch.export import Dim

from fxpasses.passes import ReplaceMaskedCopyWithWhere
from tests.fxpasses.passes.judge import Judge, copy_picks
from tests.fxpasses.programs import (
    assert_equal_to_eager,
    aten,
    export,
    missed,
    passed,
    picks,
    run,
    trace,
    writes,
)

PASS = ReplaceMaskedCopyWithWhere()
JUDGE = Judge(PASS)
rewrite, refuse = JUDGE.rewrite, JUDGE.refuse


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
