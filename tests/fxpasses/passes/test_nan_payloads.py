"""The only bits in which a rewritten fill may differ from eager: the payload of a NaN.

A fill by one value on the CPU reads it as a Python number. On the way a float32 NaN that signals
becomes quiet, and a float16 or bfloat16 one loses its payload; `where` copies bits. Arithmetic
gives NaNs without a payload, so a value has to be put together from bits to show the difference.
Copies keep every bit.
"""

import pytest
import torch

from tests.fxpasses.programs import export, run, writes

SIGNALING = {
    torch.float32: (torch.int32, 0x7F800001),
    torch.float64: (torch.int64, 0x7FF0000000000001),
    torch.float16: (torch.int16, 0x7C01),
    torch.bfloat16: (torch.int16, 0x7F81),
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
def test_a_fill_by_a_nan_with_a_payload_gives_a_nan(draw, dtype):
    kind, signaling = SIGNALING[dtype]
    value = torch.tensor(signaling, dtype=kind).view(dtype)
    given = draw.floats(6, dtype=dtype), value, draw.mask(6)
    result = run("default", export(fill, *given), verify="metadata")
    assert writes(result.program) == 0
    ours, eager = (f(*given) for f in (result.program.module(), fill))
    torch.testing.assert_close(ours, eager, rtol=0, atol=0, equal_nan=True)
    assert (ours.view(kind)[given[2]] == signaling).all()


@pytest.mark.parametrize("dtype", SIGNALING)
def test_a_copy_keeps_every_bit(draw, dtype):
    kind, signaling = SIGNALING[dtype]
    source = torch.full((6,), signaling, dtype=kind).view(dtype)
    given = draw.floats(6, dtype=dtype), source, draw.mask(6)
    result = run("default", export(copy, *given), verify="metadata")
    assert writes(result.program) == 0
    ours, eager = (f(*given).view(kind) for f in (result.program.module(), copy))
    assert torch.equal(ours, eager)
    assert (ours[given[2]] == signaling).all()
