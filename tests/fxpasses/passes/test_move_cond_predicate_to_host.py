"""Predicates that the program holds live on the host; the others stay where they are.

A program is exported on the CPU, and its metadata then say that all of it lives on a GPU: the pass
asks no more, and what it makes still runs here.
"""

import pytest
import torch
from torch.utils._pytree import tree_map_only

from fxpasses import Pipeline
from fxpasses._torch import fake_mode_of
from fxpasses.analysis import host_reads
from fxpasses.held import held_tensors
from fxpasses.passes import MoveCondPredicateToHost
from fxpasses.values import value_of
from tests.fxpasses.programs import export, missed, passed, run

PASS = MoveCondPredicateToHost()
CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)


class Flagged(torch.nn.Module):
    """Takes turns by a flag; `update` says what becomes of it."""

    def __init__(self, update, flag=True):
        super().__init__()
        self.register_buffer("flag", torch.tensor(flag))
        self.register_buffer("other", torch.tensor(False), persistent=False)
        self.update = update

    def forward(self, x):
        y = torch.cond(self.predicate(x), lambda t: t * 2, lambda t: t + 100, (x,))
        extra = self.update(self, x)
        return y if extra is None else (y, extra)

    def predicate(self, x):
        return self.flag


def toggled(module, x):
    module.flag.logical_not_()


def on_gpu(program):
    """The program with metadata that place all of it on a GPU."""
    values = [node.meta["val"] for node in program.graph.nodes if "val" in node.meta]
    with fake_mode_of(values):
        for node in program.graph.nodes:
            if "val" in node.meta:
                node.meta["val"] = tree_map_only(torch.Tensor, placed, node.meta["val"])
    return program


def placed(value):
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=CUDA)


def flagged(draw, update=toggled, of=Flagged, functional=True):
    return on_gpu(export(of(update), draw.floats(3), functional=functional))


def devices(program):
    """Where the program says that each of its buffers lives."""
    return {held.name: value_of(node).device for node, held in held_tensors(program).items()}


def test_a_flag_and_what_updates_it_move(draw):
    program = flagged(draw)
    assert [read.reads for read in host_reads(program)] == ["the predicate b_flag"]
    result = run(PASS, program)
    assert "b_flag lives in host memory" in passed(result)[0].reason
    assert devices(result.program)["flag"] == CPU
    assert host_reads(result.program) == []
    (new,) = result.program.graph_signature.buffers_to_mutate
    assert value_of(next(n for n in result.program.graph.nodes if n.name == new)).device == CPU


def test_the_callers_program_keeps_its_flag(draw):
    program = flagged(draw)
    state, before = dict(program.state_dict), devices(program)
    run(PASS, program)
    assert devices(program) == before
    assert all(program.state_dict[name] is tensor for name, tensor in state.items())


def test_a_flag_that_is_never_written_moves(draw):
    result = run(PASS, flagged(draw, lambda module, x: None))
    assert devices(result.program) == {"flag": CPU, "other": CUDA}


def test_all_that_the_flag_is_computed_with_moves(draw):
    """Two buffers and a constant; the predicate is computed, and so is what is written back."""

    class Both(Flagged):
        def predicate(self, x):
            return torch.logical_and(self.flag, self.other == torch.tensor(False))

    def update(module, x):
        module.other.copy_(module.flag)
        module.flag.fill_(False)

    result = run(PASS, flagged(draw, update, of=Both))
    assert passed(result)
    assert set(devices(result.program).values()) == {CPU}
    assert host_reads(result.program) == []


def test_the_branch_follows_the_flag_on_every_call(draw, functional):
    program = run(PASS, flagged(draw, functional=functional)).program
    assert devices(program)["flag"] == CPU
    module, eager, x = program.module(), Flagged(toggled), draw.floats(3)
    for _ in range(4):
        assert torch.equal(module(x), eager(x))


def test_one_flag_of_two_conds_moves_once(draw):
    class Twice(Flagged):
        def forward(self, x):
            x = super().forward(x)
            return torch.cond(self.flag, lambda t: t - 1, lambda t: t.clone(), (x,))

    result = run(PASS, flagged(draw, of=Twice))
    assert len(passed(result)) == 1
    assert host_reads(result.program) == []


class Computed(Flagged):
    def predicate(self, x):
        return x.sum() > 0


class Remembered(Flagged):
    """The flag is a buffer; what it becomes is computed of the input."""

    def forward(self, x):
        y = super().forward(x)
        self.flag.copy_(x.sum() > 0)
        return y


class Halved(Flagged):
    """A whole number is compared with a fraction, in floating point."""

    def __init__(self, update):
        super().__init__(update)
        self.register_buffer("count", torch.tensor(1))

    def predicate(self, x):
        return self.count > 0.5


class Wide(Flagged):
    """The predicate is computed of many elements."""

    def __init__(self, update):
        super().__init__(update)
        self.register_buffer("many", torch.arange(9))

    def predicate(self, x):
        return (self.many > 3).any()


@pytest.mark.parametrize(
    ("of", "source"),
    [(Computed, "sum_1"), (Remembered, "sum_1"), (Wide, "gt"), (Halved, "gt")],
    ids=str,
)
def test_guard_held(draw, of, source):
    """What the device computes stays there, with the flag that is written from it."""
    result = run(PASS, flagged(draw, lambda module, x: None, of=of))
    assert missed(result)["held"].startswith(f"{source} is no buffer or constant")
    assert set(devices(result.program).values()) == {CUDA}


def test_a_predicate_that_the_caller_gives_stays(draw):
    def function(p, x):
        return torch.cond(p, lambda t: t * 2, lambda t: t + 1, (x,))

    program = on_gpu(export(function, torch.tensor(True), draw.floats(3)))
    assert missed(run(PASS, program))["held"].startswith("inputs_0 is no buffer")


class Handed(Flagged):
    """The flag chooses the branch and is given to it."""

    def forward(self, x):
        return torch.cond(self.flag, lambda t, f: t * f, lambda t, f: t - 1, (x, self.flag))


def test_a_flag_that_its_own_branches_read_stays(draw):
    result = run(PASS, flagged(draw, of=Handed))
    assert missed(result) == {"alone": "cond reads b_flag where it is"}


READERS = {
    "mul": lambda module, x: x * module.flag,
    "output": lambda module, x: module.flag.logical_not(),
    "cond_1": lambda module, x: torch.cond(
        x.sum() > 0, lambda f, t: t * f, lambda f, t: t - 1, (module.flag, x)
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_guard_alone(draw, reader):
    """Whoever reads the flag on the device, or is given it there, still finds it there."""
    result = run(PASS, flagged(draw, READERS[reader]))
    assert f"{reader} reads" in missed(result)["alone"]
    assert set(devices(result.program).values()) == {CUDA}


def test_guard_unshared(draw):
    class Shared(Flagged):
        def __init__(self, update):
            super().__init__(update)
            self.register_buffer("all", torch.tensor([True, False, True]))
            self.flag = self.all[0]

        def forward(self, x):
            return super().forward(x) * self.all

    result = run(PASS, flagged(draw, lambda module, x: None, of=Shared))
    assert missed(result) == {"unshared": "all shares the memory of flag"}


def test_a_predicate_on_the_host_is_nothing_to_do(draw):
    result = run(PASS, export(Flagged(toggled), draw.floats(3), functional=True))
    assert not result.changed
    assert not result.remarks


def test_it_is_part_of_the_pipeline_for_a_gpu(draw):
    result = Pipeline.parse("cuda").run(flagged(draw))
    assert host_reads(result.program) == []
