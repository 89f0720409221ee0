"""What every test shares: the GPU tests are skipped without a GPU, and no test is timed."""

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("fxpasses", deadline=None, max_examples=30)
hypothesis.settings.load_profile("fxpasses")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is marked `gpu` on a machine that has none."""
    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
