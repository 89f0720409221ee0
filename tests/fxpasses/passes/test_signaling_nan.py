"""The one bit in which a rewritten fill may differ from eager: whether a NaN signals.

A fill by one float32 or float16 value reads it as a Python number, which makes a signaling NaN a
quiet one; `where` copies bits. No arithmetic gives a signaling NaN, and any arithmetic makes it
quiet, so a value has to be put together from bits to show the difference. Copies keep every bit.
"""

import pytest
import torch

from tests.fxpasses.programs import export, run, writes

SIGNALING = {
    torch.float32: (torch.int32, 0x7F800001, 0x00400000),
    torch.float64: (torch.int64, 0x7FF0000000000001, 0),
    torch.float16: (torch.int16, 0x7C01, 0x0200),
    torch.bfloat16: (torch.int16, 0x7F81, 0x0040),
}


def fill(out, value, mask):
    out = out.clone()
    out[mask] = value
    return out


def copy(out, source, mask):
    out = out.clone()
    out[mask] = source[mask]
    return out


@pytest.mark.parametrize("dtype", SIGNALING)
def test_a_fill_by_a_signaling_nan_keeps_all_but_the_quiet_bit(draw, dtype):
    kind, signaling, quiet = SIGNALING[dtype]
    value = torch.tensor(signaling, dtype=kind).view(dtype)
    given = draw.floats(6, dtype=dtype), value, draw.mask(6)
    result = run("default", export(fill, *given), verify="metadata")
    assert writes(result.program) == 0
    ours, eager = (f(*given).view(kind) for f in (result.program.module(), fill))
    assert torch.equal(ours | quiet, eager | quiet)
    assert (ours[given[2]] == signaling).all()


@pytest.mark.parametrize("dtype", SIGNALING)
def test_a_copy_keeps_every_bit(draw, dtype):
    kind, signaling, _ = SIGNALING[dtype]
    source = torch.full((6,), signaling, dtype=kind).view(dtype)
    given = draw.floats(6, dtype=dtype), source, draw.mask(6)
    result = run("default", export(copy, *given), verify="metadata")
    assert writes(result.program) == 0
    ours, eager = (f(*given).view(kind) for f in (result.program.module(), copy))
    assert torch.equal(ours, eager)
    assert (ours[given[2]] == signaling).all()
