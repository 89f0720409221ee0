"""What becomes of a mask's picks, and of the checks on their count, once the write is gone."""

import operator

import pytest
import torch
from torch.export import Dim

from fxpasses.passes import ReplaceMaskedCopyWithWhere
from tests.fxpasses.passes.judge import Judge
from tests.fxpasses.programs import (
    assert_equal_to_eager,
    aten,
    calls,
    export,
    missed,
    picks,
    run,
    writes,
)

PASS = ReplaceMaskedCopyWithWhere()
JUDGE = Judge(PASS)
rewrite = JUDGE.rewrite


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
