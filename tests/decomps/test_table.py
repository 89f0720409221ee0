"""The table is what `run_decompositions` takes, and each caller's own."""

import pytest
import torch

from decomps import decomposition_table

ATEN = torch.ops.aten._reshape_copy.default


class Reshape(torch.nn.Module):
    def forward(self, x):
        return ATEN(x.t(), [-1])


@pytest.mark.parametrize("device", [None, "cpu", "cuda", "cuda:1"])
def test_the_operators_are_gone_after_decomposing(device) -> None:
    program = torch.export.export(Reshape(), (torch.randn(2, 3),))
    program = program.run_decompositions(decomposition_table(device))
    assert ATEN not in {node.target for node in program.graph.nodes}
    x = torch.randn(2, 3)
    assert torch.equal(program.module()(x), Reshape()(x))


def test_changing_a_table_changes_no_other() -> None:
    decomposition_table().clear()
    assert ATEN in decomposition_table()


def test_a_device_that_torch_does_not_know_is_refused() -> None:
    with pytest.raises(RuntimeError, match="device"):
        decomposition_table("toaster")
