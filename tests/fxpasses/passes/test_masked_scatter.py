"""Picks written back by `masked_scatter`, and the ways to write one mask."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import Dim
from torch.fx.experimental.proxy_tensor import make_fx

from fxpasses.passes import ReplaceMaskedCopyWithWhere
from tests.fxpasses.passes.judge import Judge
from tests.fxpasses.programs import assert_same, aten, calls, export, missed, run, writes

PASS = ReplaceMaskedCopyWithWhere()
JUDGE = Judge(PASS)
rewrite, refuse, assert_needed = JUDGE.rewrite, JUDGE.refuse, JUDGE.assert_needed

PICKS = {
    "index": lambda source, mask: source[mask],
    "masked_select": lambda source, mask: source.masked_select(mask),
    "flat": lambda source, mask: source[mask].reshape(-1),
}
WRITES = {
    "masked_scatter": lambda out, mask, values: out.masked_scatter(mask, values),
    "masked_scatter_": lambda out, mask, values: out.clone().masked_scatter_(mask, values),
    "index_put": lambda out, mask, values: aten.index_put(out, [mask], values),
    "index_put_": lambda out, mask, values: aten.index_put_(out.clone(), [mask], values),
}


def scattering(pick, write="masked_scatter"):
    def function(out, source, mask):
        return WRITES[write](out, mask, PICKS[pick](source, mask))

    return function


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("pick", ["index", "masked_select"])
def test_every_way_to_pick_and_to_write(draw, functional, pick, write):
    inputs = draw.floats(3, 5), draw.floats(3, 5), draw.mask(3, 5)
    rewrite(scattering(pick, write), *inputs, functional=functional)


@pytest.mark.parametrize("fill", [False, True])
def test_no_pick_and_all_picks(draw, functional, fill):
    inputs = draw.floats(6), draw.floats(6), torch.full((6,), fill)
    rewrite(scattering("masked_select"), *inputs, functional=functional)


def test_picks_in_another_shape(draw, functional):
    rewrite(
        scattering("flat"),
        *(draw.floats(3, 5), draw.floats(3, 5), draw.mask(3, 5)),
        functional=functional,
    )


def rows_by_an_expanded_mask(out, source, mask):
    return out.masked_scatter(mask[:, None].expand_as(out), source[mask])


def rows_by_broadcasting(out, source, mask):
    return out.masked_scatter(mask.unsqueeze(-1), source.masked_select(mask[:, None]))


def middle(out, source, mask):
    spread = mask[:, None]
    return out.masked_scatter(spread.expand_as(out), source.masked_select(spread))


def test_a_mask_spread_over_a_middle_dim(draw, functional):
    inputs = draw.floats(3, 2, 4), draw.floats(3, 2, 4), draw.mask(3, 4)
    rewrite(middle, *inputs, functional=functional)


def test_a_mask_of_one_row_broadcasts(draw, functional):
    def function(out, source, mask):
        return out.masked_scatter(mask, source.masked_select(mask[0]))

    inputs = draw.floats(3, 5), draw.floats(3, 5), draw.mask(1, 5)
    # mask[0] is a select, which we do not follow.
    assert "same_mask" in refuse(function, *inputs, functional=functional)


def once_expanded(out, source, mask):
    return out.masked_scatter(mask.expand_as(out), source.masked_select(mask))


def test_a_mask_with_a_dim_of_one_element(draw, functional):
    inputs = draw.floats(3, 5), draw.floats(3, 5), draw.mask(1, 5)
    rewrite(once_expanded, *inputs, functional=functional)


@pytest.mark.parametrize("function", [rows_by_an_expanded_mask, rows_by_broadcasting])
def test_a_mask_of_lower_rank(draw, functional, function):
    rewrite(function, draw.floats(4, 3), draw.floats(4, 3), draw.mask(4), functional=functional)


def test_any_size_after_one_dynamic_export(draw, functional):
    inputs = draw.floats(4, 3), draw.floats(4, 3), draw.mask(4)
    rows = {0: Dim("rows", min=2)}
    dynamic = [rows, rows, rows]
    rewrite(rows_by_an_expanded_mask, *inputs, functional=functional, dynamic=dynamic)


def test_inside_a_branch(draw, functional):
    def function(p, out, source, mask):
        operands = out, source, mask
        return torch.cond(p, scattering("masked_select"), lambda o, s, m: o + s, operands)

    inputs = torch.tensor(True), draw.floats(6), draw.floats(6), draw.mask(6)
    rewrite(function, *inputs, functional=functional)


def test_a_users_check_keeps_the_selection(draw):
    def function(out, source, mask):
        picked = source.masked_select(mask)
        torch._check(picked.shape[0] >= 1)
        return out.masked_scatter(mask, picked)

    result = run(PASS, export(function, draw.floats(6), draw.floats(6), draw.mask(6)))
    assert (writes(result.program), calls(result.program, aten.masked_select.default)) == (0, 1)
    assert "does not hold for every mask" in missed(result)["count_checks"]


# Refusals.


@pytest.mark.parametrize("by", [lambda mask: mask.expand(4, 4), lambda mask: mask])
def test_rows_and_columns_are_different_places(draw, functional, by):
    """The same mask, over the first dim when it picks and over the last when it writes."""

    def square_mask_by_columns(out, source, mask):
        return out.masked_scatter(by(mask), source[mask])

    inputs = draw.floats(4, 4), draw.floats(4, 4), draw.mask(4)
    assert "need not equal" in refuse(square_mask_by_columns, *inputs)["same_mask"]
    assert_needed("same_mask", square_mask_by_columns, *inputs, functional=functional)


def part_of_a_mask(out, source, mask):
    return out.masked_scatter(mask[1:], source.masked_select(mask[:-1]))


def test_slices_of_one_mask_are_two_masks(draw):
    mask = torch.tensor([True, True, False, True, False])
    inputs = draw.floats(4), draw.floats(4), mask
    assert "same_mask" in refuse(part_of_a_mask, *inputs)
    assert_needed("same_mask", part_of_a_mask, *inputs)


def some_features(out, features, mask):
    return out.masked_scatter(mask[..., None].expand_as(out), features)


def test_values_of_their_own_are_kept(draw):
    """Image features that fill the places of a token: nothing says where they come from."""
    mask = torch.tensor([[True, False, True, True], [False, True, False, False]])
    reasons = refuse(some_features, draw.floats(2, 4, 3), draw.floats(4, 3), mask)
    assert "the values are no picks of a mask" in reasons["picked_values"]


def row_of_elements(out, source, mask):
    selected = source.masked_select(mask[:, None])
    torch._check(selected.shape[0] == 3)
    return aten.index_put(out, [mask], selected)


def test_a_row_of_elements_is_no_row_of_slices(draw):
    inputs = draw.floats(5, 3), draw.floats(5, 3), torch.arange(5) == 2
    assert "picked_values" in refuse(row_of_elements, *inputs)


def smaller_source(out, source, mask):
    return out.masked_scatter(mask, source.masked_select(mask))


def test_a_source_that_broadcasts_is_kept(draw):
    """PyTorch's own check on the count is wrong here, so the program is not run."""
    inputs = draw.floats(3, 5), draw.floats(1, 5), draw.mask(3, 5)
    result = run(PASS, export(smaller_source, *inputs), verify="metadata")
    assert "source has shape [1, 5]" in missed(result)["same_kind"]


def test_a_transposed_destination_keeps_its_layout(draw, functional):
    def function(out, source, mask):
        return out.t().masked_scatter(mask.t(), source.t().masked_select(mask.t()))

    inputs = draw.floats(3, 5), draw.floats(3, 5), draw.mask(3, 5)
    assert "layout" in refuse(function, *inputs, functional=functional)
    assert_needed("layout", function, *inputs, functional=functional)


# Masks of uint8: PyTorch 2.11 to 2.14 run them and do not export them.


def test_a_mask_of_uint8_picks_what_is_not_zero(draw):
    def function(out, source, mask):
        return aten.index_put(out, [mask], aten.index(source, [mask]))

    byte = torch.tensor([0, 1, 2, 0, 255], dtype=torch.uint8)
    inputs = draw.floats(5), draw.floats(5), byte
    graph = make_fx(function)(*inputs)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        for node in graph.graph.nodes:
            known = dict(zip(("out_1", "source_1", "mask_1"), inputs, strict=True))
            value = known.get(node.name, inputs[0])
            node.meta["val"] = mode.from_tensor(value)
    result = run(PASS, graph, verify="off")
    assert (writes(result.program), calls(result.program, aten.ne.Scalar)) == (0, 1)
    assert_same(result.program(*inputs), function(*inputs))
