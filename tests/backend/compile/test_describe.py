"""Inputs and outputs are described as the runtime checks them."""

import pytest
import torch
from torch.export import Dim, export

from backend.compile.describe import example_inputs, input_specs, output_specs
from backend.errors import NotSupported
from backend.program.sizes import Dynamic


class Takes(torch.nn.Module):
    def forward(self, x, y):
        return x * 2, y.shape[0], y.sum() > 0


def described(x: torch.Tensor, y: torch.Tensor, shapes=None):
    program = export(Takes(), (x, y), dynamic_shapes=shapes).run_decompositions({})
    return input_specs(program, example_inputs(program)), output_specs(program)


@pytest.mark.parametrize(
    ("tensor", "order"),
    [
        (torch.randn(2, 3), (0, 1)),
        (torch.randn(2, 3).t(), (1, 0)),
        (torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last), (0, 2, 3, 1)),
        (torch.randn(4, 6)[:, ::2], (0, 1)),
        (torch.randn(1, 3).expand(2, 3), (0, 1)),
        (torch.randn(2, 1, 3), (0, 1, 2)),
        (torch.randn(()), ()),
    ],
)
def test_the_layout_of_an_input_is_dense(tensor, order) -> None:
    (x, _), _ = described(tensor, torch.randn(2))
    assert x.dim_order == order
    assert x.shape == tuple(tensor.shape)


def test_ranges_are_those_that_were_asked_for() -> None:
    rows, more = Dim("rows", max=20), Dim("more", min=5)
    (x, y), _ = described(torch.randn(4, 3), torch.randn(6), ({0: rows}, {0: more}))
    assert isinstance(x.shape[0], Dynamic)
    assert (x.shape[0].minimum, x.shape[0].maximum) == (0, 20)
    assert (y.shape[0].minimum, y.shape[0].maximum) == (5, None)


def test_a_derived_size_is_an_expression() -> None:
    rows = Dim("rows", max=20)
    (x, y), _ = described(torch.randn(4, 3), torch.randn(8), ({0: rows}, {0: 2 * rows}))
    assert y.shape[0] == Dynamic(f"2*{x.shape[0].symbol}", 0, 40)


def test_outputs_are_tensors_and_numbers() -> None:
    _, outputs = described(torch.randn(4, 3), torch.randn(6), ({}, {0: Dim("n")}))
    assert [spec.kind for spec in outputs] == ["tensor", "int", "tensor"]


class TakesNumber(torch.nn.Module):
    def forward(self, x, n):
        return x * n


def test_an_input_that_is_a_changing_number_is_refused() -> None:
    program = export(TakesNumber(), (torch.randn(3), 3), dynamic_shapes=(None, Dim.DYNAMIC))
    with pytest.raises(NotSupported, match='input "n" is a SymInt that changes, not a tensor'):
        example_inputs(program)
