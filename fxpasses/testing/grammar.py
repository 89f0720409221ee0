"""What random programs are made of: lines with a letter for each operand.

The letters say what an operand must be: `a` is any tensor, `b` one of the same dtype and shape,
`m` a mask over the first dims of `a`, `n` another of the same shape. Lines that eager refuses, on
the operands that were drawn, are left out of the program.
"""

from __future__ import annotations

COPIES = (
    "{a}.clone()",
    "{a} + {b}",
    "{a} * 2",
    "{a}.flip(0)",
    "{a}.transpose(0, -1).contiguous().transpose(0, -1)",
    "{a}.to(memory_format=torch.channels_last)",
    "{a}.to(torch.float64)",
    "{a}.to(torch.int32)",
    "torch.rand_like({a})",
    "torch.nn.functional.dropout({a}, 0.5)",
    "torch.where({m}, {a}, {b})",
    "torch.cat([{a}, {b}])",
)
VIEWS = (
    "{a}.detach()",
    "{a}.transpose(0, -1)",
    "{a}[1:]",
    "{a}[..., ::2]",
    "{a}[0]",
    "{a}.view({a}.shape)",
    "{a}.view(-1)",
    "{a}.flatten()",
    "{a}.contiguous()",
    "{a}.unsqueeze(0)",
    "{a}.unsqueeze(-1).expand(*{a}.shape, 2)",
    "{a}.unfold(0, 2, 1)",
    "{a}.unfold(0, 2, 2)",
    "{a}.chunk(2)[0]",
    "{a}.permute(*range({a}.dim())[::-1])",
    "torch.nn.functional.dropout({a}, 0.5, training=False)",
)
COMPARISONS = (
    "{a} > {b}",
    "{a} >= 1",
    "{a} == {b}",
    "{a} != 0",
    "{a}.isnan()",
    "{a}.sum(-1) > 0",
    "torch.rand({a}.shape) > 0.5",
    "torch.arange({a}.shape[0]) == 1",
    "torch.zeros_like({a}, dtype=torch.bool)",
)
MASKS = (
    "~{m}",
    "{m} & {n}",
    "{m} | {n}",
    "{m} ^ {n}",
    "{m}.clone()",
    "{m}.flip(0)",
    "{m}.any(-1)",
    "{m}.transpose(0, -1)",
    "{m}.transpose(0, -1).contiguous().transpose(0, -1)",
    "{m}.cumsum(0) % 2 == 1",
    "torch.bernoulli({m}.float()).bool()",
)
# Masks that pick what `m` picks, and masks that pick as many elements but others.
SAME_MASKS = (
    *("{m}.clone()", "{m}.detach()", "{m}.view({m}.shape)", "{m} & {m}", "{m}.contiguous()"),
    *("{m}.logical_not().logical_not()", "{m}.to(torch.bool)", "{m} == True", "{m}[:]"),
)
OTHER_MASKS = ("{m}.flip(0)", "{m}.roll(1, 0)", "{m}.flip(-1)", "{m}.roll(1, -1)")

PICKS = ("{b}[{n}]", "{b}[{n}]", "{b}[{n}]", "{b}.masked_select({n})")
CHANGED_PICKS = ("{p}.clone()", "{p} * 2", "{p}.flip(0)", "{p}.view({p}.shape)", "{p}.detach()")
# What is put through a mask; those with "=" or "_(" write in place, the others make a tensor.
PUTS = (
    "{a}[{m}] = {p}",
    "{a}[{m}] = {p}",
    "aten.index_put({a}, [{m}], {p})",
    "{a}.index_put_(({m},), {p})",
    "aten.index_put({a}, [{m}], {p}, True)",
    "{a}.masked_scatter_({m}, {p})",
    "aten.masked_scatter({a}, {m}, {p})",
)
MIXED = ("{a}[{m}, 0] = {b}[{n}, 0]", "{a}[{m}, 0] = {b}[{n}, -1]", "{a}[:, {m}] = {b}[:, {n}]")
FILLS = (
    "{a}[{m}] = 0.5",
    "{a}[{m}] = -0.0",
    "{a}[{m}] = float('nan')",
    "{a}[{m}] = {b}.flatten()[:1]",
    "{a}[{m}] = {b}.sum().to({a}.dtype)",
    "{a}[{m}] = torch.tensor(3)",
    "{a}[{m}, 0] = 1",
    "{a}.masked_fill_({m}, 2)",
    "aten.index_put({a}, [{m}], torch.tensor(0.1))",
    "aten.index_put({a}, [{m}], {b}.flatten()[:1])",
    "aten.index_put({a}, [{m}], {b}.flatten()[:1].view(1, 1, 1))",
    "aten.index_put({a}, [{m}], torch.tensor(0.1, dtype=torch.float64))",
    "aten.index_put({a}, [{m}], {b}.flatten()[:1], True)",
    "aten.masked_fill({a}, {m}, 2)",
)
WRITES = (
    "{a}.add_(1)",
    "{a}.mul_(2)",
    "{a}[1:].zero_()",
    "{a}.copy_({a}.flip(0))",
    "{a}.copy_({b})",
    "{a}[0].copy_({b}[-1])",
    "{a}.transpose(0, -1)[:1].neg_()",
    "{a}.view(-1)[:2].fill_(1)",
    "{a}.logical_not_()",
)
CHECKS = (
    "torch._assert_async(({a} == {a}).any() | True, 'holds')",
    "torch._assert_async(({a}.float().abs() >= 0).all() | True)",
    "torch._assert_async((torch.rand(3) < 2).all(), 'a draw')",
)
COUNT_CHECKS = (
    "torch._check({p}.shape[0] >= 0)",
    "torch._check({p}.shape[0] <= {m}.numel())",
    "torch._check({p}.shape[0] >= 1)",
    "torch._check({p}.shape[0] < {m}.numel())",
)
PREDICATES = ("{m}.any()", "{a}.float().sum() > 0", "{m}.all()")
