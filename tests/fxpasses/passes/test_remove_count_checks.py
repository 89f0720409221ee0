"""Picks that are only counted go with checks that hold for any mask, and with no others."""

import operator

import pytest
import torch
from torch.export import Dim

from fxpasses.passes import RemoveCountChecks
from tests.fxpasses.programs import assert_equal_to_eager, aten, calls, export, missed, passed, run

PASS = RemoveCountChecks()
PICKED = {
    "index": lambda x: x[x > 0],
    "masked_select": lambda x: x.masked_select(x > 0),
    "nonzero": lambda x: (x > 0).nonzero(),
}
PICKS = (aten.index.Tensor, aten.masked_select.default, aten.nonzero.default)
CHECKS = (aten._assert_scalar.default, aten.sym_constrain_range_for_size.default)


def counting(how, check=None):
    def function(x):
        picked = PICKED[how](x)
        if check:
            torch._check(check(picked.shape[0]))
        return x + 1

    return function


@pytest.mark.parametrize("how", PICKED)
def test_dead_picks_go(draw, functional, how):
    x = draw.floats(3, 4)
    function = counting(how, lambda n: n >= 0)
    result = run(PASS, export(function, x, functional=functional))
    assert calls(result.program, *PICKS, *CHECKS, aten.gt.Scalar, operator.ge) == 0
    assert_equal_to_eager(result.program, function, x)
    (remark,) = passed(result)
    assert "hold for any mask" in remark.reason


@pytest.mark.parametrize("how", PICKED)
@pytest.mark.parametrize(("most", "goes"), [(12, True), (13, True), (11, False)])
def test_what_the_largest_count_is(draw, how, most, goes):
    """Three rows of four elements: twelve places, and no fewer."""
    x = -draw.floats(3, 4).abs()
    result = run(PASS, export(counting(how, lambda n: n <= most), x))
    assert (calls(result.program, *PICKS) == 0) is goes
    if not goes:
        with pytest.raises(RuntimeError, match="Runtime assertion failed"):
            result.program.module()(-x)


def test_guard_count_checks(draw):
    function = counting("index", lambda n: n >= 1)
    x = draw.floats(6).abs()
    program = export(function, x)
    result = run(PASS, program)
    assert "does not hold for every mask" in missed(result)["count_checks"]
    assert not result.changed
    loose = run(PASS.without("count_checks"), program).program.module()
    torch.testing.assert_close(loose(-x), 1 - x)  # the user's check is lost
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        result.program.module()(-x)


def test_a_check_of_another_size_keeps_the_picks(draw):
    def function(x, other):
        picked = x[x > 0]
        torch._check(other.shape[0] >= picked.shape[0] + 1)
        return x + 1, other + 1

    dynamic = [None, {0: Dim("other", min=2, max=100)}]
    result = run(PASS, export(function, draw.floats(6), draw.floats(7), dynamic=dynamic))
    assert "count" in missed(result)["count_checks"]
    assert not result.changed


@pytest.mark.parametrize("read", [torch.sum, lambda p: p + 1])
def test_picks_that_are_read_are_no_kind_of_ours(draw, read):
    result = run(PASS, export(lambda x: read(x[x > 0]), draw.floats(6)))
    assert (result.changed, result.remarks) == (False, [])


def test_a_count_that_is_returned_keeps_the_picks(draw):
    result = run(PASS, export(lambda x: x[x > 0].shape[0], draw.floats(6)))
    assert not result.changed
    assert missed(result)["count_checks"] == "output (output) reads the count"


def test_an_index_by_two_tensors_is_no_kind_of_ours(draw):
    def function(x, mask, column):
        x[mask, column]
        return x + 1

    program = export(function, draw.floats(4, 4), draw.mask(4), torch.tensor([1]))
    assert not run(PASS, program).changed


def test_every_guard_has_a_test_here():
    tested = {name.removeprefix("test_guard_") for name in globals() if "test_guard_" in name}
    assert tested == set(PASS.guards())
