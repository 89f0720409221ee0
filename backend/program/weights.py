"""The weights blob: safetensors, with shape and strides in its header where they are not plain.

    data = pack({"lin.weight": weight})
    unpack(data, torch.device("cuda"))["lin.weight"]      # a tensor of our own, same strides
    unpack(data, torch.device("cuda"), host=("flag",))    # "flag" stays in host memory

A tensor that is not contiguous (channels_last, a transposed or expanded one) is stored as the
stretch of memory that it covers, and seen through its strides again when it is read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from backend.errors import InvalidProgram, NotSupported
from backend.program.fields import Fields

LAYOUTS = "layouts"


def pack(weights: Mapping[str, Tensor]) -> bytes:
    """The blob for `weights`; tensors may lie on any device and share memory.

    Raises:
        NotSupported: a dtype that safetensors does not store.
    """
    layouts = {name: layout(t) for name, t in weights.items() if not t.is_contiguous()}
    stored = {name: stretch(t).detach().cpu().clone() for name, t in sorted(weights.items())}
    try:
        return safetensors.torch.save(stored, {LAYOUTS: json.dumps(layouts, sort_keys=True)})
    except (KeyError, ValueError, safetensors.SafetensorError) as error:
        raise NotSupported(f"a weight cannot be stored: {error}") from error


def unpack(data: bytes, device: torch.device, host: Collection[str] = ()) -> dict[str, Tensor]:
    """The tensors of a blob, in memory of their own on `device`, those of `host` on the CPU.

    Raises:
        InvalidProgram: not what `pack` wrote.
    """
    try:
        stored = safetensors.torch.load(data)
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size]).get("__metadata__", {})
        layouts = Fields(json.loads(header[LAYOUTS]), "weights blob")
    except (KeyError, ValueError, safetensors.SafetensorError) as error:
        raise InvalidProgram(f"the weights blob is not as lowering writes it: {error}") from error
    places = {name: torch.device("cpu") if name in host else device for name in stored}
    return {name: placed(t, name, layouts, places[name]) for name, t in stored.items()}


def placed(stored: Tensor, name: str, layouts: Fields, device: torch.device) -> Tensor:
    """A copy of `stored` on `device`, under the strides that it had."""
    copy = stored.to(device, copy=True)
    if name not in layouts.mapping():
        return copy
    fields = layouts.object(name)
    return copy.as_strided(fields.values("shape"), fields.values("strides"))


def layout(tensor: Tensor) -> dict[str, Any]:
    """Shape and strides, as JSON holds them."""
    return {"shape": list(tensor.shape), "strides": list(tensor.stride())}


def stretch(tensor: Tensor) -> Tensor:
    """`tensor`, or the flat run of memory that it covers when it is not contiguous."""
    if tensor.is_contiguous():
        return tensor
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((size - 1) * stride for size, stride in pairs)
    return tensor.as_strided((last + 1,), (1,))
