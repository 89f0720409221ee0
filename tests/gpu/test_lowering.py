"""What the CPU tests of lowering prove, once more on a CUDA device."""

import pytest
import torch

import backend
from backend.demo import show
from tests.programs import ANY_BATCH, COUNTER, IN_BRANCH

pytestmark = [pytest.mark.gpu, pytest.mark.compile]


@pytest.fixture(scope="module")
def program():
    """Three methods in one file, lowered for the GPU."""
    examples = {"copy": IN_BRANCH, "count": COUNTER, "batch": ANY_BATCH}
    exported = {name: example.export() for name, example in examples.items()}
    lowered = backend.lower(exported, device="cuda")
    with backend.load(lowered.buffer) as loaded:
        yield loaded


def test_a_masked_copy_in_a_branch(program):
    module = IN_BRANCH.module()
    for density in (0.5, 0.0, 1.0):
        out, source = (torch.randn(4, 3, device="cuda") for _ in range(2))
        mask = torch.rand(4, 3, device="cuda") < density
        result = program["copy"](out, source, mask)
        assert torch.equal(result, module(out, source, mask))


def test_a_one_element_counter_counts(program):
    zero = torch.zeros(1, device="cuda")
    assert [float(program["count"](zero)) for _ in range(4)] == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("batch", [2, 5, 17])
def test_any_batch(program, batch):
    x = torch.randn(batch, 3, device="cuda")
    assert torch.equal(program["batch"](x), ANY_BATCH.module()(x))


def test_the_demo_holds(tmp_path):
    assert show(tmp_path, "cuda")
