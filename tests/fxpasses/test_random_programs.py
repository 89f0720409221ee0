"""Random programs with masks, aliases and in-place writes: the default pipeline changes no bit.

A function is a list of steps drawn from a seed. Each step writes through a mask or gets in the way
of such a write. Its graph, rewritten, must give what the graph gave, strides included, and what
eager gives, on inputs that it was not traced with.
"""

import random

import pytest
import torch
from torch.fx import GraphModule

from tests.fxpasses.programs import (
    Draw,
    assert_same,
    aten,
    copies,
    export,
    leaves,
    passed,
    run,
    trace,
    writes,
)

SHAPE = (3, 4)
TRACED, EXPORTED = 40, 8


class Pool:
    """The tensors that the next step may use."""

    def __init__(self, seed, functional, floats, masks, state):
        self.choose, self.functional = random.Random(seed), functional
        self.floats, self.masks, self.state = floats, masks, state

    def float(self):
        return self.choose.choice(self.floats)

    def mask(self):
        return self.choose.choice(self.masks)

    def destination(self):
        """A fresh copy in some layout, a tensor that others alias, or the function's last input."""
        tensor = self.float()
        return self.choose.choice([tensor.clone(), laid_out(tensor), tensor, self.state])

    def twins(self):
        """A mask to pick with and one to put with, which pick as many elements."""
        mask = self.mask()
        other = self.choose.choice(
            [
                lambda: mask,
                lambda: mask.clone(),
                lambda: mask.detach(),
                lambda: mask.flip(0),
                lambda: mask & mask,
                lambda: mask.logical_not().logical_not(),
            ]
        )
        return mask, other()


def laid_out(tensor):
    """A copy of a matrix, column by column."""
    return tensor.t().contiguous().t()


def copy_picks(pool):
    mask, other = pool.twins()
    out, source = pool.destination(), pool.float()
    picked = source[mask]
    pool.choose.choice([lambda: None] * 4 + [lambda: disturb(pool, source, mask, picked)])()
    out[other] = picked
    pool.floats.append(out)


def disturb(pool, source, mask, picked):
    """Write to what was picked, or to what it was picked from, before it is put."""
    pool.choose.choice(
        [
            lambda: source.add_(1),
            lambda: source[1:].mul_(2),
            lambda: mask.copy_(mask.flip(0)),
            lambda: picked.mul_(-1),
            lambda: picked.view(-1).mul_(-1),
        ]
    )()


def copy_without_writing(pool):
    mask, other = pool.twins()
    out, source = pool.float(), pool.float()
    accumulate = pool.choose.random() < 0.2
    pool.floats.append(aten.index_put(out, [other], source[mask], accumulate))


def copy_into_a_view(pool):
    out, source, mask = pool.float().clone(), pool.float(), pool.mask()
    view, mask, source = pool.choose.choice(
        [
            lambda: (out.t(), mask.t(), source.t()),
            lambda: (out[1:], mask[1:], source[1:]),
            lambda: (out[:, ::2], mask[:, ::2], source[:, 1::2]),
            lambda: (out[0], mask[1], source[2]),
            lambda: (out, mask[:, 0], source),
            lambda: (out[1:], mask[:-1], out[:-1]),
        ]
    )()
    view[mask] = source[mask]
    pool.floats.append(out)


def fill(pool):
    out, mask = pool.destination(), pool.mask()
    out[mask] = pool.choose.choice(
        [0.5, -0.0, float("nan"), pool.float()[0, :1], pool.float()[1, 1]]
    )
    pool.floats.append(out)


def fill_with_another_dtype(pool):
    x = pool.float().nan_to_num()
    out, value = pool.choose.choice(
        [
            (x, torch.tensor(0.1, dtype=torch.float64)),
            (x, torch.tensor([3])),
            (x.to(torch.int64) + 2**25, torch.tensor(0.5)),
        ]
    )
    pool.floats.append(aten.index_put(out, [pool.mask()], value).to(torch.float32))


def fill_windows(pool):
    """Windows side by side; overlapping ones too, where no functionalisation forbids them."""
    out, mask = pool.float().contiguous().clone(), pool.mask()
    out.view(-1).unfold(0, 4, 4)[mask] = 5.0
    if not pool.functional:
        out.view(-1).unfold(0, 4, 2)[mask[[0, 1, 2, 0, 1]]] = 6.0
    pool.floats.append(out)


def copy_in_a_branch(pool):
    mask, other = pool.twins()

    def branch(out, source, mask, other):
        out = out.clone()
        out[other] = source[mask]
        return out

    def elsewhere(out, source, mask, other):
        return out * 2 + source

    operands = (pool.float().clone(), pool.float().clone(), mask.clone(), other.clone())
    predicate = pool.float().sum() > 0
    if torch.compiler.is_exporting():
        pool.floats.append(torch.cond(predicate, branch, elsewhere, operands))
    else:
        pool.floats.append((branch if predicate else elsewhere)(*operands))


def compute(pool):
    a, b = pool.float(), pool.float()
    pool.floats.append(pool.choose.choice([lambda: a + b, lambda: a * 2, lambda: a.detach()])())


def compare(pool):
    a, b, m = pool.float(), pool.float(), pool.mask()
    pool.masks.append(
        pool.choose.choice(
            [
                lambda: a > b,
                lambda: m & (a < 1),
                lambda: ~m,
                lambda: torch.rand_like(a) > 0.5,
                lambda: laid_out(m),
                lambda: (a - b).isnan() | m,
            ]
        )()
    )


def write(pool):
    a, b = pool.float(), pool.float()
    pool.choose.choice([lambda: a.add_(1), lambda: a[0].copy_(b[1]), lambda: a.t()[1:].zero_()])()


def write_a_mask(pool):
    mask = pool.mask()
    pool.choose.choice([lambda: mask.logical_not_(), lambda: mask[0].fill_(True)])()


def check(pool):
    torch._assert_async((pool.float().abs() >= 0).all() | True, "always")


STEPS = (
    [copy_picks] * 6
    + [copy_without_writing, copy_into_a_view, fill] * 2
    + [fill_with_another_dtype, fill_windows, compute, compare, compare]
    + [write, write_a_mask, check]
)
NESTED = [*STEPS, copy_in_a_branch, copy_in_a_branch, copy_in_a_branch]


def function_of(seed, functional=False, steps=STEPS):
    """The function of a seed."""

    def function(x, y, mask, state):
        pool = Pool(seed, functional, [x, y, x - y], [mask.clone(), x > y], state)
        for step in pool.choose.choices(steps, k=5):
            step(pool)
        return [tensor + 0 for tensor in pool.floats]

    return function


def inputs_of(draw):
    """Inputs with ties, NaN and both zeros."""
    x = draw.integers(*SHAPE, low=-2, high=3).float()
    y = draw.integers(*SHAPE, low=-2, high=3).float()
    x[0, 0], x[2, 1], y[1, 1] = float("nan"), -0.0, 0.0
    return x, y, draw.mask(*SHAPE), torch.full(SHAPE, 7.0)


def outcome(function, inputs):
    """What a call gives and leaves behind."""
    torch.manual_seed(0)
    given = copies(inputs)
    return leaves([function(*given), given])


def callable_of(program):
    return program if isinstance(program, GraphModule) else program.module()


def check_rewritten(program, function, draw):
    """Run the default pipeline, compare, and give the number of rewrites and of writes left."""
    result = run("default", program, verify="metadata")
    before, after = (
        p if isinstance(p, GraphModule) else p.module() for p in (program, result.program)
    )
    for _ in range(3):
        inputs = inputs_of(draw)
        ours = outcome(after, inputs)
        for left, right in zip(outcome(before, inputs), ours, strict=True):
            assert_same(left, right)
        for left, right in zip(outcome(function, inputs), ours, strict=True):
            torch.testing.assert_close(left, right, rtol=0, atol=0, equal_nan=True)
    return len(passed(result)), writes(result.program)


@pytest.fixture(scope="module")
def counts():
    return []


@pytest.mark.parametrize("seed", range(TRACED))
def test_traced(seed, functional, counts):
    draw, function = Draw(seed), function_of(seed, functional)
    traced = torch.func.functionalize(function) if functional else function
    counts.append(check_rewritten(trace(traced, *inputs_of(draw)), function, draw))


@pytest.mark.parametrize("seed", range(EXPORTED))
def test_exported(seed, functional):
    draw, function = Draw(seed), function_of(seed, functional, NESTED)
    program = export(function, *inputs_of(draw), functional=functional)
    check_rewritten(program, function, draw)


def test_many_programs_were_rewritten_and_many_writes_refused(counts):
    """A generator that triggers nothing proves nothing."""
    if len(counts) < 2 * TRACED:
        pytest.skip("counts the whole run")
    assert sum(rewrites > 0 for rewrites, _ in counts) > TRACED
    assert sum(kept > 0 for _, kept in counts) > TRACED / 2
