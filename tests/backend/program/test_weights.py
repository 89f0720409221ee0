"""Weights come back with their values and strides, in memory of their own."""

import pytest
import torch

from backend.errors import InvalidProgram, NotSupported
from backend.program.weights import pack, unpack

CPU = torch.device("cpu")
WEIGHTS = {
    "plain": torch.randn(3, 4),
    "channels_last": torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
    "transposed": torch.randn(3, 4).t(),
    "expanded": torch.randn(1, 5).expand(4, 5),
    "sliced": torch.randn(6, 8)[1::2, ::3],
    "number": torch.tensor(3),
    "empty": torch.empty(0, 4),
    "precise": torch.randn(3, dtype=torch.float64),
    "half": torch.randn(7, dtype=torch.bfloat16),
    "flags": torch.tensor([True, False]),
    "parameter": torch.nn.Parameter(torch.randn(2)),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_values_and_strides_survive(name) -> None:
    result = unpack(pack(WEIGHTS), CPU)[name]
    assert torch.equal(result, WEIGHTS[name])
    assert result.dtype == WEIGHTS[name].dtype
    assert result.stride() == WEIGHTS[name].stride()


def test_an_expanded_weight_is_stored_once() -> None:
    wide = pack({"w": torch.zeros(1, 100).expand(1000, 100)})
    assert len(wide) < 1000


def test_nothing_at_all_survives() -> None:
    assert unpack(pack({}), CPU) == {}


def test_the_blob_does_not_depend_on_the_order() -> None:
    assert pack(WEIGHTS) == pack(dict(reversed(WEIGHTS.items())))


def test_tensors_that_share_memory_come_back_apart() -> None:
    base = torch.zeros(4)
    weights = unpack(pack({"a": base, "b": base[:2]}), CPU)
    weights["a"].fill_(1.0)
    assert weights["b"].sum() == 0


def test_tensors_are_aligned_as_torch_aligns_them() -> None:
    weights = unpack(pack({"a": torch.zeros(1), "b": torch.zeros(3)}), CPU)
    assert all(tensor.data_ptr() % 64 == 0 for tensor in weights.values())


@pytest.mark.parametrize("data", [b"", b"12345678", bytes(100)])
def test_what_is_no_blob_is_refused(data) -> None:
    with pytest.raises(InvalidProgram, match="weights blob"):
        unpack(data, CPU)


def test_a_dtype_that_cannot_be_stored_is_named() -> None:
    with pytest.raises(NotSupported, match="cannot be stored"):
        pack({"w": torch.zeros(2, dtype=torch.complex128)})
