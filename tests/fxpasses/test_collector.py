"""The garbage collector rests during a run, and is afterwards as it was before."""

import gc
from dataclasses import dataclass

import pytest
import torch

from fxpasses import Pass, PassFailed, Pipeline
from fxpasses.collector import paused


@dataclass(frozen=True)
class Watch(Pass):
    """Notes whether the collector runs, and raises when told to."""

    fail: bool = False

    def run(self, editor):
        seen.append(gc.isenabled())
        if self.fail:
            raise RuntimeError("as told")


Watch.name = "watch"
seen: list[bool] = []


@pytest.fixture(autouse=True)
def collector():
    seen.clear()
    yield
    gc.enable()


def module():
    return torch.fx.symbolic_trace(lambda x: x + 1)


def test_a_run_pauses_the_collector():
    Pipeline([Watch()]).run(module(), verify="off")
    assert seen == [False]
    assert gc.isenabled()


def test_a_run_that_fails_resumes_it():
    with pytest.raises(PassFailed):
        Pipeline([Watch(fail=True)]).run(module(), verify="off")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    Pipeline([Watch()]).run(module(), verify="off")
    assert not gc.isenabled()


def test_the_last_of_overlapping_pauses_resumes_it():
    first, second = paused(), paused()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()
