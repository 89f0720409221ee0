"""Perturbed and resized inputs: near the example, and valid wherever that is."""

import torch

from backend.program.payload import Payload
from backend.program.plan import Constant, MethodPlan
from backend.program.sizes import Dynamic
from backend.program.tensor_spec import TensorSpec
from backend.self_check.draws import changed, perturbed, resized


def draw(tensor, seed=0):
    return changed(tensor, torch.Generator().manual_seed(seed))


def test_floats_keep_their_signs_and_change_by_a_tenth_at_most():
    tensor = torch.randn(100)
    tensor[3] = -torch.inf
    other = draw(tensor)
    assert torch.equal(other.sign(), tensor.sign())
    near = (other / tensor)[tensor.isfinite()]
    assert ((near >= 0.95) & (near <= 1.05)).all()
    assert near.unique().numel() > 50


def test_zeros_become_small_positive_numbers():
    other = draw(torch.zeros(50))
    assert (other >= 0).all()
    assert 0 < other.max() <= 0.1


def test_a_mask_keeps_its_count_and_moves():
    mask = torch.tensor([True, False, False, True, False])
    assert draw(mask).sum() == 2
    assert not torch.equal(draw(mask), mask)


def test_a_single_boolean_is_flipped():
    assert not draw(torch.tensor(True))
    assert draw(torch.tensor([False]))


def test_integers_and_numbers_stay():
    index = torch.tensor([3, 1, 2])
    assert perturbed([index, 7, None], torch.Generator()) == [index, 7, None]


def test_the_layout_stays_and_the_example_too():
    tensor = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    before = tensor.clone()
    assert draw(tensor).stride() == tensor.stride()
    assert torch.equal(tensor, before)


def test_seeds_repeat():
    tensor = torch.randn(5)
    assert torch.equal(draw(tensor, 1), draw(tensor, 1))
    assert not torch.equal(draw(tensor, 1), draw(tensor, 2))


def plan(*shapes, sources=None):
    specs = tuple(
        TensorSpec(f"x{i}", "float32", shape, tuple(range(len(shape))), "cpu")
        for i, shape in enumerate(shapes)
    )
    payload = object.__new__(Payload)
    object.__setattr__(payload, "inputs", specs)
    return MethodPlan(payload, sources or tuple(range(len(shapes))), (), None, None)


def test_a_dynamic_size_grows_with_all_that_depends_on_it():
    rows, twice = Dynamic("s0", 0, 9), Dynamic("2*s0", 0, 18)
    one, two = torch.randn(3, 2), torch.randn(6)
    larger, double, constant = resized(
        [one, two, "mean"], plan((rows, 2), (twice,), sources=(0, 1, Constant("mean")))
    )
    assert larger.shape == (4, 2)
    assert torch.equal(larger, one[[0, 1, 2, 0]])
    assert double.shape == (8,)
    assert constant == "mean"


def test_a_size_at_its_upper_bound_shrinks():
    (smaller,) = resized([torch.randn(4)], plan((Dynamic("s0", 2, 4),)))
    assert smaller.shape == (3,)


def test_a_size_with_one_value_and_fixed_sizes_have_no_other():
    assert resized([torch.randn(4)], plan((Dynamic("s0", 4, 4),))) is None
    assert resized([torch.randn(4)], plan((4,))) is None
