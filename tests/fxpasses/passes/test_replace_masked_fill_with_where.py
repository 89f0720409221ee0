"""x[mask] = v becomes where, bit for bit, and only where that is right."""

import pytest
import torch
from torch.export import Dim

from fxpasses import RewriteRefused, VerificationFailed
from fxpasses.passes import ReplaceMaskedFillWithWhere
from tests.fxpasses.passes.judge import Judge
from tests.fxpasses.programs import (
    TWO_DEVICES,
    assert_equal_to_eager,
    aten,
    export,
    missed,
    run,
    trace_fake,
)

PASS = ReplaceMaskedFillWithWhere()
JUDGE = Judge(PASS)
rewrite, refuse, assert_needed = JUDGE.rewrite, JUDGE.refuse, JUDGE.assert_needed


def fill(x, mask, value):
    x = x.clone()
    x[mask] = value
    return x


def raw_fill(x, mask, value):
    return aten.index_put(x, [mask], value)


@pytest.mark.parametrize("value", [0.5, -0.0, float("nan")], ids=str)
def test_a_number(draw, functional, value):
    def function(x, mask):
        return fill(x, mask, value)

    inputs = draw.floats(3, 5), draw.mask(3, 5)
    program = rewrite(function, *inputs, functional=functional)
    for mask in (torch.zeros(3, 5).bool(), torch.ones(3, 5).bool()):
        assert_equal_to_eager(program, function, inputs[0], mask)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)], ids=str)
def test_a_tensor_of_one_value(draw, shape):
    inputs = draw.floats(3, 5), draw.mask(3, 5), draw.floats(*shape)
    rewrite(fill, *inputs, functional=True)


def test_a_value_and_a_mask_that_picks_none(draw, functional):
    rewrite(fill, draw.floats(5), torch.zeros(5).bool(), draw.floats(1), functional=functional)


def test_a_mask_over_the_first_dims(draw, functional):
    inputs = draw.floats(2, 3, 4), draw.mask(2, 3), draw.floats(1)
    rewrite(fill, *inputs, functional=functional)


def test_any_size_after_one_dynamic_export(draw, functional):
    inputs = draw.floats(4, 3), draw.mask(4), draw.floats(1)
    dynamic = [{0: Dim("rows", min=2)}, {0: Dim("rows", min=2)}, None]
    program = rewrite(fill, *inputs, functional=functional, dynamic=dynamic)
    assert_equal_to_eager(program, fill, draw.floats(9, 3), draw.mask(9), draw.floats(1))


@pytest.mark.parametrize(
    ("x", "value"),
    [
        (torch.arange(5) + 2**53, 2**53 + 1),
        (torch.arange(5, dtype=torch.int32), 3),
        (torch.tensor([True, False, True, True, False]), True),
        (torch.arange(5, dtype=torch.float64), 0.1),
        (torch.arange(5).to(torch.complex64), 1j),
    ],
    ids=lambda value: str(getattr(value, "dtype", "")),
)
def test_dtypes(draw, x, value):
    rewrite(lambda x, mask: fill(x, mask, value), x, draw.mask(5), functional=True)


def test_several_values_in_one_function(draw, functional):
    def function(x, value):
        low, high, whole = x.clone(), x.clone(), (x * 10).to(torch.int32)
        low[x < 0] = 0.25
        high[x > 1] = value
        whole[x < 0] = 7
        return low, high, whole

    rewrite(function, draw.floats(3, 5), torch.tensor(-4.25), functional=functional)


def test_the_input_itself_is_written(draw, functional):
    def function(x, mask):
        x[mask] = 7.0
        return x + 1

    rewrite(function, draw.floats(5), draw.mask(5), functional=functional)


def test_a_mask_computed_from_what_is_written(draw, functional):
    def clamp(x):
        x = x.clone()
        x[x < 0] = 0.0
        x[x > 0.5] = 0.5
        return x

    rewrite(clamp, draw.floats(3, 5), functional=functional)


def test_inside_a_branch(draw, functional):
    def function(p, x, mask, value):
        return torch.cond(p, fill, lambda x, mask, value: x + value, (x, mask, value))

    inputs = torch.tensor(True), draw.floats(5), draw.mask(5), draw.floats(1)
    rewrite(function, *inputs, functional=functional)


# Guards. Each has a program that it alone refuses, and that is wrong without it.


def add_to_picks(x, mask, value):
    return aten.index_put(x, [mask], value, True)


def test_guard_accumulate(draw):
    inputs = draw.floats(5), draw.mask(5), torch.tensor(3.0)
    assert refuse(add_to_picks, *inputs)["accumulate"] == "it adds to the destination"
    assert_needed("accumulate", add_to_picks, *inputs)


def fill_column(x, mask, column):
    return aten.index_put(x, [mask, column], torch.tensor(5.0))


def test_guard_single_mask(draw, functional):
    inputs = draw.floats(5, 4), draw.mask(5), torch.tensor([2])
    reasons = refuse(fill_column, *inputs, functional=functional)
    assert "indexed by 2 tensors, not by one mask alone" in reasons["single_mask"]
    assert_needed("single_mask", fill_column, *inputs, functional=functional)


def fill_windows(x, mask):
    x = x.clone()
    x.unfold(0, 2, 1)[mask] = 9.0
    return x


def test_guard_distinct_places(draw):
    inputs = draw.floats(4), torch.tensor([[False, True], [False, False], [True, False]])
    assert "may share memory" in refuse(fill_windows, *inputs)["distinct_places"]
    assert_needed("distinct_places", fill_windows, *inputs)


def test_an_expanded_destination_is_kept(draw):
    def function(x, mask):
        x = x.clone().expand(3, 4)
        x[mask] = 7.0
        return x

    program = export(function, draw.floats(1, 4), draw.mask(3, 4))
    assert "distinct_places" in missed(run(PASS, program, verify="metadata"))
    with pytest.raises(RewriteRefused, match="single memory location"):
        run(PASS.without("distinct_places"), program)


@pytest.mark.parametrize(
    ("x", "value"),
    [
        (torch.arange(5) + 2**25, torch.tensor(3.0)),
        (torch.arange(5.0), torch.tensor([0.1], dtype=torch.float64)),
        (torch.arange(5, dtype=torch.int8), torch.tensor([3])),
    ],
    ids=["int64 by float32", "float32 by float64", "int8 by int64"],
)
def test_guard_same_kind(draw, x, value):
    """ATen's index_put takes one value of another dtype and converts it; where promotes."""
    reason = refuse(raw_fill, x, draw.mask(5), value)["same_kind"]
    assert reason == f"the value is {value.dtype}, the destination {x.dtype}"
    assert_needed("same_kind", raw_fill, x, draw.mask(5), value)


def test_a_wide_integer_is_kept_in_place_too(draw):
    inputs = torch.arange(5) + 2**25, draw.mask(5), torch.tensor(3.0)
    assert "same_kind" in refuse(fill, *inputs)
    assert_needed("same_kind", fill, *inputs)


def test_guard_broadcasts(draw):
    """ATen's index_put takes one value of any rank; where would return that rank."""
    inputs = draw.floats(5), draw.mask(5), draw.floats(1, 1)
    reason = refuse(raw_fill, *inputs)["broadcasts"]
    assert reason == "the value has 2 dims, the destination 1"
    with pytest.raises(VerificationFailed, match=r"differs|it returned"):
        run(PASS.without("broadcasts", "layout"), export(raw_fill, *inputs))


def test_a_value_of_higher_rank_cannot_be_written_back(draw):
    """In place, no other guard stands behind `broadcasts`."""

    def function(x, mask, value):
        return aten.index_put_(x.clone(), [mask], value)

    program = export(function, draw.floats(5), draw.mask(5), draw.floats(1, 1))
    assert "broadcasts" in missed(run(PASS, program))
    with pytest.raises(RewriteRefused):
        run(PASS.without("broadcasts"), program)


def test_guard_same_device():
    """ATen's index_put moves a mask to the destination's device; where does not."""
    program = trace_fake(raw_fill, lambda: on("cpu", "cuda", (1,)))
    reason = missed(run(PASS, program, verify="metadata"))["same_device"]
    assert reason == "the mask is on cpu, the destination on cuda:0"
    with pytest.raises(RewriteRefused, match=TWO_DEVICES):
        run(PASS.without("same_device"), program, verify="metadata")


def test_a_number_on_the_host_is_taken():
    program = trace_fake(raw_fill, lambda: on("cuda", "cpu", ()))
    assert run(PASS, program, verify="metadata").changed


def on(mask_device, value_device, shape):
    mask = torch.ones(5, dtype=torch.bool, device=mask_device)
    return torch.ones(5, device="cuda"), mask, torch.ones(shape, device=value_device)


def test_guard_layout(draw):
    inputs = draw.floats(4, 3), draw.mask(3, 4).t(), torch.tensor(5.0)
    reason = refuse(fill, *inputs, functional=True)["layout"]
    assert reason == "the replacement would have strides (1, 4), index_put has (3, 1)"
    assert_needed("layout", fill, *inputs, functional=True)
    rewrite(fill, *inputs)


def test_every_guard_has_a_test_here():
    tested = {name.removeprefix("test_guard_") for name in globals() if "test_guard_" in name}
    assert tested == set(PASS.guards())


def test_many_values_are_another_kind(draw, functional):
    result = run(
        PASS,
        export(fill, draw.floats(5), torch.ones(5).bool(), draw.floats(5), functional=functional),
    )
    assert not result.changed
    assert result.remarks == []
