"""What can be said of a value from its recorded metadata alone."""

import pytest
import torch
from torch.export import Dim

from fxpasses.values import has_distinct_places, signature_of, strides
from tests.fxpasses.programs import export, results

VIEWS = {
    "contiguous": (lambda x: x, True),
    "transposed": (lambda x: x.permute(2, 0, 1), True),
    "column by column": (lambda x: x.permute(2, 1, 0).contiguous().permute(2, 1, 0), True),
    "every other": (lambda x: x[:, ::2], True),
    "a diagonal": (lambda x: x.diagonal(), True),
    "one dim more": (lambda x: x.unsqueeze(1), True),
    "windows side by side": (lambda x: x.reshape(-1)[:24].unfold(0, 4, 4), True),
    "overlapping windows": (lambda x: x.reshape(-1)[:24].unfold(0, 4, 2), False),
    "expanded": (lambda x: x[:1].expand(5, -1, -1), False),
    "expanded in a new dim": (lambda x: x.expand(2, -1, -1, -1), False),
    "expanded to one": (lambda x: x.expand(1, -1, -1, -1), True),
    "interleaved": (lambda x: x.as_strided((2, 2), (3, 2)), True),
    "meeting": (lambda x: x.as_strided((3, 3), (2, 1)), False),
}


@pytest.mark.parametrize("name", VIEWS)
def test_distinct_places(draw, name):
    view, distinct = VIEWS[name]
    assert has_distinct_places(view(draw.floats(4, 6, 5))) is distinct


@pytest.mark.parametrize("name", ["contiguous", "transposed", "expanded"])
def test_distinct_places_of_symbolic_sizes(draw, name):
    view, distinct = VIEWS[name]
    dims = {i: Dim(f"d{i}", min=3, max=64) for i in range(3)}
    program = export(lambda x: view(x) + view(x), draw.floats(4, 6, 5), dynamic=[dims])
    (sum_,) = results(program)
    assert has_distinct_places(sum_.args[0].meta["val"]) is distinct


def test_distinct_places_of_a_size_that_depends_on_data(draw):
    program = export(lambda x: x[x[:, 0] > 0] * 2, draw.floats(4, 3))
    (product,) = results(program)
    assert has_distinct_places(product.meta["val"])


def test_nothing_and_one_element():
    assert has_distinct_places(torch.zeros(()))
    assert has_distinct_places(torch.zeros(1).expand(1, 1))


def test_strides_of_dims_of_one_element_cannot_be_observed():
    tall, wide = torch.zeros(3, 1), torch.zeros(1, 3).t()
    assert tall.stride() != wide.stride()
    assert strides(tall) == strides(wide) == (1, 0)
    assert signature_of(tall) == signature_of(wide)


def test_strides_of_an_empty_tensor_cannot_be_observed():
    tall, wide = torch.zeros(3, 0, 2), torch.zeros(2, 0, 3).permute(2, 1, 0)
    assert tall.stride() != wide.stride()
    assert strides(tall) == strides(wide) == (0, 0, 0)


def test_a_signature_tells_kinds_apart():
    values = [torch.zeros(2), torch.zeros(2).double(), torch.zeros(2, 1), 1, 1.0, True, None]
    signatures = {signature_of(value) for value in values}
    assert len(signatures) == len(values)
    assert signature_of([torch.zeros(2), 1]) == (signature_of(torch.zeros(2)), signature_of(1))
