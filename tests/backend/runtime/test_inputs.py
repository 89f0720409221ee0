"""A wrong input is refused with the fact, before native code sees it."""

import pytest
import torch

import backend
from backend.program.tensor_spec import TensorSpec
from backend.runtime.inputs import checked


def good(rows: int = 4) -> tuple:
    return torch.randn(rows, 3), torch.randn(2 * rows, 2), torch.randn(2), 3


def call(program, *inputs, **kwargs):
    return program["batch"](*inputs, **({"bias": torch.ones(5), "nothing": None} | kwargs))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, torch.randn(4, 4), 'input 0 ("x") has size 4 in dim 1, expected 3'),
        (0, torch.randn(4, 3).double(), 'input 0 ("x") is float64, expected float32'),
        (0, torch.randn(4, 3, 1), 'input 0 ("x") has 3 dims, expected 2'),
        (0, torch.randn(4, 3).to_sparse(), 'input 0 ("x") is torch.sparse_coo, expected a dense'),
        (0, torch.randn(4, 3, device="meta"), 'input 0 ("x") is on meta, expected cpu'),
        (0, torch.randn(21, 3), 'input 0 ("x") has size 21 in dim 0, expected 0 to 20'),
        (0, [1.0], "inputs are structured as"),
        (0, 1.0, "input 0 is a float, expected a tensor"),
        (1, torch.randn(7, 2), 'input 1 ("pair") has size 7 in dim 0, expected 8, as other sizes'),
        (2, None, "input 2 is a NoneType, expected a tensor"),
        (3, 4, "input 3 is 4, expected 3 as exported"),
        (3, True, "input 3 is True, expected 3 as exported"),
    ],
)
def test_a_wrong_input_is_named(program, place, value, message) -> None:
    inputs = list(good())
    inputs[place] = value
    with pytest.raises(backend.InvalidArgument) as caught:
        call(program, *inputs)
    assert message in str(caught.value)


def test_a_wrong_count_is_named(program) -> None:
    with pytest.raises(backend.InvalidArgument, match="got 5 inputs, expected 6"):
        call(program, *good()[:3])


def test_a_wrong_keyword_is_named(program) -> None:
    with pytest.raises(backend.InvalidArgument, match=r"structured as.*'offset'"):
        program["batch"](*good(), offset=torch.ones(5), nothing=None)


def test_a_refused_call_does_not_advance_the_state(program) -> None:
    with pytest.raises(backend.InvalidArgument):
        program["counter"](torch.zeros(2))
    assert program["counter"](torch.zeros(1)).item() == 1


@pytest.mark.gpu
def test_an_input_on_another_device_is_named(program) -> None:
    with pytest.raises(backend.InvalidArgument, match="is on cuda:0, expected cpu"):
        program["counter"](torch.zeros(1, device="cuda"))


def without_storage():
    tensor = torch.randn(4, 3)
    tensor.untyped_storage().resize_(0)
    return tensor


@pytest.mark.parametrize(
    "make",
    [without_storage, lambda: torch._efficientzerotensor((4, 3)), lambda: fake_tensor(4, 3)],
    ids=["no storage", "zero tensor", "fake tensor"],
)
def test_a_tensor_without_memory_is_refused(make):
    """Native code would read where nothing is."""
    spec = TensorSpec("x", "float32", (4, 3), (0, 1), "cpu")
    with pytest.raises(backend.InvalidArgument, match=r"no memory|FakeTensor"):
        checked(make(), spec, "input 0")


def fake_tensor(*shape):
    with torch._subclasses.FakeTensorMode():
        return torch.empty(shape)
