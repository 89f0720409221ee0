"""Which results hold random numbers."""

import torch

from backend.self_check.chance import depends_on_chance


def of(module, *inputs):
    return depends_on_chance(torch.export.export(module, inputs or (torch.randn(3),)))


class Draws(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("noise", torch.zeros(3))
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x):
        earlier = self.noise * 2
        self.noise.copy_(torch.rand(3))
        self.count.add_(1)
        return x + 1, earlier, x * torch.rand_like(x)


class InBranch(torch.nn.Module):
    def forward(self, x):
        drawn = torch.cond(x.sum() > 0, lambda v: v + torch.rand(3), lambda v: v.clone(), (x,))
        return drawn, x * 2


class Plain(torch.nn.Module):
    def forward(self, x):
        return x.sin(), x.cos()


def test_draws_and_what_reads_them_through_a_buffer_of_an_earlier_call():
    assert of(Draws()) == ({1, 2}, {"noise"})


def test_a_draw_inside_a_branch():
    assert of(InBranch()) == ({0}, set())


def test_a_program_without_one():
    assert of(Plain()) == (set(), set())
