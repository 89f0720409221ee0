"""The decomposition equals the operator, and never returns the source's memory."""

import pytest
import torch

from decomps.reshape_copy import reshape_copy

ATEN = torch.ops.aten._reshape_copy.default
SOURCE = torch.arange(24.0).reshape(4, 6)
SOURCES = {
    "contiguous": (SOURCE, [3, 8]),
    "transposed": (SOURCE.t(), [2, 12]),
    "sliced": (SOURCE[:, ::2], [12]),
    "inferred": (SOURCE.t(), [-1, 8]),
    "flat": (SOURCE[1:], [-1]),
    "same shape": (SOURCE, [4, 6]),
    "one element": (SOURCE[:1, :1], []),
    "empty": (SOURCE[:0], [6, 0]),
}


@pytest.mark.parametrize("name", SOURCES)
def test_equals_the_operator(name) -> None:
    source, size = SOURCES[name]
    result, expected = reshape_copy(source, size), ATEN(source, size)
    assert torch.equal(result, expected)
    assert result.stride() == expected.stride()


@pytest.mark.parametrize("name", [name for name in SOURCES if name != "empty"])
def test_never_aliases_the_source(name) -> None:
    source, size = SOURCES[name]
    before = source.clone()
    reshape_copy(source, size).fill_(-1.0)
    assert torch.equal(source, before)


def test_a_shape_of_another_size_is_refused() -> None:
    with pytest.raises(RuntimeError, match="invalid for input of size 24"):
        reshape_copy(SOURCE, [5, 5])
