"""What counts as equal to eager, and how a difference is told."""

import math

import pytest
import torch

from backend.self_check.compare import difference


def fault(found, expected, tolerance=None, by_chance=()):
    return difference(found, expected, tolerance, set(by_chance))


def test_the_worst_element_is_named_with_both_values():
    expected = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    found = expected.clone()
    found[1, 0] += 0.5
    assert fault((found,), (expected,)) == (
        "output 0 differs in 1 of 4 elements, most at [1, 0]: 3.5, eager gives 3.0 "
        "(a difference of 0.0004 is allowed)"
    )


@pytest.mark.parametrize(
    ("dtype", "small", "large"),
    [
        (torch.float64, 1e-12, 1e-8),
        (torch.float32, 1e-5, 1e-3),
        (torch.float16, 5e-3, 5e-2),
        (torch.bfloat16, 3e-2, 2e-1),
        (torch.complex64, 1e-5, 1e-3),
    ],
)
def test_each_dtype_has_its_tolerance(dtype, small, large):
    expected = torch.ones(3, dtype=dtype)
    assert not fault(expected * (1 + small), expected)
    assert "differs in 3 of 3" in fault(expected * (1 + large), expected)


def test_a_tolerance_that_is_asked_for_replaces_them():
    one = torch.ones(2)
    assert not fault(one * 1.05, one, tolerance=0.1)
    assert fault(one * 1.00001, one, tolerance=0.0)


def test_the_tolerance_is_a_share_of_the_largest_magnitude():
    expected = torch.tensor([1000.0, 0.0])
    assert not fault(expected + 0.05, expected)
    assert fault(expected + 0.5, expected)


def test_zeros_are_measured_against_one():
    zeros = torch.zeros(2)
    assert not fault(zeros + 1e-6, zeros)
    assert fault(zeros + 1e-2, zeros)


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool])
def test_integers_and_booleans_are_exact_whatever_is_asked(dtype):
    expected = torch.tensor([0, 1, 1], dtype=dtype)
    assert not fault(expected.clone(), expected)
    assert "at [0]" in fault(torch.ones_like(expected), expected, tolerance=10.0)


def test_nan_and_infinities_have_their_places():
    expected = torch.tensor([math.nan, math.inf, -math.inf, 1.0])
    assert not fault(expected.clone(), expected)
    for place, value in enumerate([0.0, -math.inf, math.nan, math.inf]):
        found = expected.clone()
        found[place] = value
        assert f"at [{place}]" in fault(found, expected)


def test_an_empty_tensor_equals_another():
    assert not fault(torch.empty(0, 3), torch.empty(0, 3))


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (torch.ones(2, dtype=torch.float64), "has dtype torch.float64, eager gives torch.float32"),
        (torch.ones(3), "has shape [3], eager gives [2]"),
        (7, "is 7, eager gives a tensor"),
    ],
)
def test_another_kind_of_tensor_is_named(found, message):
    assert fault([torch.ones(1), found], [torch.ones(1), torch.ones(2)]) == f"output 1 {message}"


def test_other_strides_are_named():
    expected = torch.ones(2, 3)
    assert fault(torch.ones(3, 2).t(), expected) == (
        "output 0 has strides [1, 2], eager's result has [3, 1]"
    )


def test_a_view_with_gaps_has_the_strides_of_its_copy():
    view = torch.ones(4, 6).t()[::2]
    assert not fault(view.clone(), view)
    assert fault(view.contiguous(), view)


def test_strides_of_dims_with_one_element_or_none_do_not_count():
    one = torch.ones(2, 1)
    assert not fault(one.as_strided((2, 1), (1, 7)), one)
    none = torch.ones(0, 3)
    assert not fault(torch.ones(3, 0).t(), none)


def test_numbers_have_their_type_and_value():
    assert not fault({"n": 3, "f": 0.5}, {"n": 3, "f": 0.5})
    assert fault({"n": 4}, {"n": 3}) == "output 0 is 4, eager gives 3"
    assert fault({"n": True}, {"n": 1}) == "output 0 is True, eager gives 1"
    assert "differs" in fault(0.5, 0.75)


def test_another_structure_is_named():
    one = torch.ones(1)
    assert "structured" in fault((one, one), [one, one])


def test_random_outputs_need_dtype_and_rank_alone():
    assert not fault((torch.zeros(3),), (torch.ones(2),), by_chance=[0])
    assert fault((torch.zeros(3, 1),), (torch.ones(2),), by_chance=[0])
    assert fault((torch.zeros(2, dtype=torch.int64),), (torch.ones(2),), by_chance=[0])
