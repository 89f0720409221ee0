"""Check what a caller passes against what was compiled, and bring it into the compiled layout.

    input 0 ("x") has size 4 in dim 1, expected 3

A compiled library trusts its inputs. So count, structure, dtype, device, rank and every size are
checked here, equal symbols against each other too, and other strides are copied away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import TreeSpec, tree_flatten

from backend.errors import InvalidArgument, InvalidProgram
from backend.program.plan import Constant, MethodPlan
from backend.program.sizes import Dynamic, evaluate
from backend.program.tensor_spec import TensorSpec


def flatten(args: Sequence[Any], kwargs: Mapping[str, Any], expected: TreeSpec) -> list[Any]:
    """The leaves of a call's arguments.

    Raises:
        InvalidArgument: another count or another structure than was exported.
    """
    leaves, found = tree_flatten((tuple(args), in_order(kwargs, expected)))
    if found == expected:
        return leaves
    if len(leaves) != expected.num_leaves:
        raise InvalidArgument(f"got {len(leaves)} inputs, expected {expected.num_leaves}")
    raise InvalidArgument(f"the inputs are structured as {plain(found)}, not {plain(expected)}")


def in_order(kwargs: Mapping[str, Any], expected: TreeSpec) -> dict[str, Any]:
    """`kwargs` in the order of the exported call; unknown names stay, at the end."""
    known = [name for name in expected.children()[1].context if name in kwargs]
    return {name: kwargs[name] for name in [*known, *(set(kwargs) - set(known))]}


def plain(spec: TreeSpec) -> str:
    """A structure on one line."""
    return " ".join(str(spec).split())


def select(leaves: Sequence[Any], plan: MethodPlan) -> list[Tensor]:
    """The tensors that the library takes, in its order, checked and in its layout.

    Raises:
        InvalidArgument: naming the input and what is wrong with it.
    """
    specs = plan.payload.inputs
    tensors: list[Tensor | None] = [None] * len(specs)
    names: list[str] = [""] * len(specs)
    for index, (leaf, source) in enumerate(zip(leaves, plan.inputs, strict=True)):
        if isinstance(source, Constant):
            check_constant(index, leaf, source.value)
        elif not isinstance(leaf, Tensor):
            raise InvalidArgument(f"input {index} is a {type(leaf).__name__}, expected a tensor")
        elif source is not None:
            names[source] = f'input {index} ("{specs[source].name}")'
            tensors[source] = checked(leaf, specs[source], names[source])
    present = [tensor for tensor in tensors if tensor is not None]
    if len(present) != len(specs):
        raise InvalidProgram("the plan does not pass all inputs of the delegate")
    check_sizes(present, specs, names)
    return [laid_out(tensor, spec) for tensor, spec in zip(present, specs, strict=True)]


def check_constant(index: int, leaf: Any, fixed: Any) -> None:
    """A number, string or None must be the one that was exported: it is part of the code."""
    same = leaf == fixed or (leaf != leaf and fixed != fixed)  # NaN is NaN
    if type(leaf) is not type(fixed) or not same:
        raise InvalidArgument(f"input {index} is {leaf!r}, expected {fixed!r} as exported")


def checked(tensor: Tensor, spec: TensorSpec, name: str) -> Tensor:
    """`tensor` without its autograd history, if dtype, device and rank are right."""
    if type(tensor) not in (Tensor, torch.nn.Parameter):
        raise InvalidArgument(f"{name} is a {type(tensor).__name__}, expected a plain tensor")
    if tensor.layout != torch.strided:
        raise InvalidArgument(f"{name} is {tensor.layout}, expected a dense tensor")
    if tensor.dtype != spec.torch_dtype:
        raise InvalidArgument(f"{name} is {str(tensor.dtype)[6:]}, expected {spec.dtype}")
    if not same_device(tensor.device, torch.device(spec.device)):
        raise InvalidArgument(f"{name} is on {tensor.device}, expected {spec.device}")
    if tensor.dim() != len(spec.shape):
        raise InvalidArgument(f"{name} has {tensor.dim()} dims, expected {len(spec.shape)}")
    plain = tensor.detach().resolve_conj().resolve_neg()
    if not holds_data(plain):
        raise InvalidArgument(f"{name} has no memory of its own behind it; clone() gives it some")
    return plain


def holds_data(tensor: Tensor) -> bool:
    """Whether the storage of `tensor` reaches as far as its sizes say: native code relies on it."""
    if tensor.numel() == 0:
        return True
    if torch._is_functional_tensor(tensor) or tensor._is_zerotensor():  # noqa: SLF001
        return False
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    last = tensor.storage_offset() + sum((size - 1) * stride for size, stride in pairs)
    return tensor.untyped_storage().nbytes() >= (last + 1) * tensor.element_size()


def same_device(found: torch.device, expected: torch.device) -> bool:
    """Whether a tensor on `found` is on `expected`; a device without an index is the first."""
    return found.type == expected.type and (found.index or 0) == (expected.index or 0)


def check_sizes(
    tensors: Sequence[Tensor], specs: Sequence[TensorSpec], names: Sequence[str]
) -> None:
    """Check every size, against what was compiled and against the other sizes of the call.

    Sizes that are symbols bind them first; expressions over them are checked afterwards.
    """
    sizes = [
        (f"{name} has size {size} in dim {dim}", size, expected)
        for tensor, spec, name in zip(tensors, specs, names, strict=True)
        for dim, (size, expected) in enumerate(zip(tensor.shape, spec.shape, strict=True))
    ]
    symbols: dict[str, int] = {}
    for _, size, expected in sizes:
        if isinstance(expected, Dynamic) and expected.symbol.isidentifier():
            symbols.setdefault(expected.symbol, size)
    for fact, size, expected in sizes:
        check_size(fact, size, expected, symbols)


def check_size(fact: str, size: int, expected: int | Dynamic, symbols: Mapping[str, int]) -> None:
    """One size against a number, or against a range and what the symbols say."""
    if isinstance(expected, int):
        if size != expected:
            raise InvalidArgument(f"{fact}, expected {expected}")
        return
    if size < expected.minimum or (expected.maximum is not None and size > expected.maximum):
        upper = "any size" if expected.maximum is None else expected.maximum
        raise InvalidArgument(f"{fact}, expected {expected.minimum} to {upper}")
    value = evaluate(expected.symbol, symbols)
    if value is not None and size != value:
        raise InvalidArgument(f"{fact}, expected {value}, as other sizes of this call imply")


def laid_out(tensor: Tensor, spec: TensorSpec) -> Tensor:
    """`tensor`, or a copy of it in the layout that the library was compiled for."""
    room = partial(torch.empty_permuted, tensor.shape, spec.dim_order, dtype=tensor.dtype)
    strides = zip(tensor.shape, tensor.stride(), room(device="meta").stride(), strict=True)
    if all(size == 1 or found == wanted for size, found, wanted in strides):
        return tensor
    return room(device=tensor.device).copy_(tensor)
