"""What operators do without declaring it: running statistics that they write, views they return."""

import pytest
import torch

from fxpasses import Pipeline
from fxpasses.analysis import writes_buffers
from fxpasses.verify import same_bits

aten = torch.ops.aten


class Normalised(torch.nn.Module):
    """Picks by a mask of the running mean, before and after a normalisation that may write it."""

    def __init__(self, training):
        super().__init__()
        self.training_norm = training
        self.register_buffer("mean", torch.tensor([3.0, 1.0, 2.0, 0.0]))
        self.register_buffer("variance", torch.ones(4))

    def forward(self, x, out, source):
        picks = source[self.mean > 1.5]
        options = {"training": self.training_norm, "momentum": 0.5}
        y = torch.nn.functional.batch_norm(x, self.mean, self.variance, **options)
        out = out.clone()
        out[self.mean > 1.5] = picks
        return y, out


def inputs():
    x = torch.tensor([[0.0, 9, 0, 9], [0, 9, 0, 9]]) + torch.rand(2, 4) / 8
    return x, torch.randn(4), torch.randn(4)


def test_a_normalisation_in_training_writes_its_statistics():
    program = torch.export.export(Normalised(training=True), inputs())
    assert {write.buffer for write in writes_buffers(program)} == {"mean", "variance"}


def test_a_normalisation_in_evaluation_writes_nothing():
    program = torch.export.export(Normalised(training=False), inputs())
    assert writes_buffers(program) == []
    assert Pipeline.parse("default").run(program, verify="numeric").changed


def test_masks_on_both_sides_of_a_hidden_write_differ():
    program = torch.export.export(Normalised(training=True), inputs())
    result = Pipeline.parse("default").run(program, verify="numeric")
    assert not result.changed
    assert "same_mask" in [remark.guard for remark in result.remarks]


@pytest.mark.parametrize(
    "view",
    [
        lambda m: aten._unsafe_view(m, [6]),
        lambda m: aten.lift(m),
        lambda m: torch.unsafe_split(m, 6)[0],
        lambda m: torch.unsafe_split_with_sizes(m, [6])[0],
    ],
    ids=["_unsafe_view", "lift", "unsafe_split", "unsafe_split_with_sizes"],
)
def test_a_write_through_an_undeclared_view(view):
    class Copies(torch.nn.Module):
        def forward(self, out, source, mask):
            mask, out = mask.clone(), out.clone()
            same = view(mask)
            picks = source[same]
            mask.copy_(mask.roll(1))
            out[same] = picks
            return out

    mask = torch.tensor([True, False, True, False, False, True])
    given = torch.randn(6), torch.randn(6), mask
    program = torch.export.export(Copies(), given)
    result = Pipeline.parse("default").run(program)
    before, after = program.module()(*given), result.program.module()(*given)
    assert same_bits(after, before)
