"""The analysis says of each operator what the GPU says: it waits, or it does not."""

import pytest
import torch

from tests.fxpasses.analysis.waiting import NO_WAITS, WAITS, label, tensors

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", autouse=True)
def loaded():
    """Libraries, workspaces and kernels are loaded once, and loading them waits."""
    for operator, operands, kwargs in (*WAITS, *NO_WAITS):
        operator(*operands(tensors("cuda")), **kwargs)
    torch.cuda.synchronize()


def run(each):
    """Run an operator where a wait is an error."""
    operator, operands, kwargs = each
    given = operands(tensors("cuda"))
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        operator(*given, **kwargs)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("each", WAITS, ids=label)
def test_waits(each):
    with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
        run(each)


@pytest.mark.parametrize("each", NO_WAITS, ids=label)
def test_does_not_wait(each):
    run(each)
