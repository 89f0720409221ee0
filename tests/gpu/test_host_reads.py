"""The waits that `host_reads` foretells are those that CUDA itself reports."""

import pytest
import torch

from backend.demo.model import fresh_calls, vision_embeddings
from decomps import decomposition_table
from fxpasses import Pipeline
from fxpasses.analysis import host_reads

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def programs():
    """SmolVLM's vision embeddings on the GPU, before and after the default pipeline."""
    module, call = vision_embeddings().cuda(), next(fresh_calls("cuda"))
    program = torch.export.export(module, call).run_decompositions(decomposition_table("cuda"))
    return program, Pipeline.parse("default").run(program).program


def waits(module, calls, capfd):
    """How often the host waits for the device while `module` runs on `calls`: torch logs each."""
    capfd.readouterr()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        for call in calls:
            module(*call)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return capfd.readouterr().err.count("called a synchronizing CUDA operation")


def test_five_calls_wait_ten_times_before_and_never_after(programs, capfd):
    before, after = programs
    calls = list(fresh_calls("cuda"))[:5]
    assert (len(host_reads(before)), len(host_reads(after))) == (2, 0)
    assert waits(before.module(), calls, capfd) == 10
    assert waits(after.module(), calls, capfd) == 0
