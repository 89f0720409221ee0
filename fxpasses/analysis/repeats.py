"""Which operators give one value whenever they are given one value.

    facts(torch.ops.aten.add.Tensor)        # what numbering needs to know of it
    facts(torch.ops.aten.rand.default)      # None: two runs may differ

An operator repeats when it is pure and draws nothing, when its result does not depend on the order
of atomic updates on a GPU, and when it looks at values and sizes alone, never at strides.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx import Node

from fxpasses._torch import expression
from fxpasses.analysis.effects import may_write, of_operator
from fxpasses.operators import parameters
from fxpasses.values import is_tensor, signature_of, value_of

aten = torch.ops.aten

# Where a result has the dtype, sizes and strides of the operand, these give the operand's value:
# the places of a view are the same places, and copies keep the order of the elements. Permuting
# copies are not here: a square one may come back to the strides it started with.
_KEEPS_VALUE = frozenset(
    {"alias", "detach", "detach_", "clone", "contiguous", "lift_fresh", "lift_fresh_copy", "to"}
    | {"_to_copy", "type_as", "view", "view_as", "_unsafe_view", "reshape", "reshape_as", "ravel"}
    | {"expand", "expand_as", "broadcast_to", "slice", "flatten", "squeeze", "permute", "transpose"}
    | {"t", "movedim", "alias_copy", "detach_copy", "view_copy", "expand_copy", "slice_copy"}
    | {"_reshape_copy", "squeeze_copy", "resolve_conj", "resolve_neg"}
)
# The order of atomic updates is free on a GPU, or the place of a tie is.
_UNREPEATABLE = frozenset(
    {"scatter", "scatter_reduce", "index_put", "_unsafe_index_put", "_index_put_impl"}
    | {"_unsafe_masked_index_put_accumulate", "index_reduce", "index_copy", "put", "bincount"}
    | {"histc", "kthvalue", "median", "nanmedian", "mode", "topk", "embedding_bag"}
    | {"_embedding_bag", "ctc_loss", "_ctc_loss", "nll_loss2d_forward", "_local_scalar_dense"}
    | {"item", "lstm", "gru", "_cudnn_rnn"}
)
# Sums of floats depend on their order; sums of whole numbers do not.
_SUMS = frozenset({"cumsum", "cumprod", "scatter_add", "index_add"})
_READS_STRIDES = frozenset(
    {"as_strided", "as_strided_copy", "as_strided_scatter", "sym_stride", "sym_storage_offset"}
    | {"stride", "storage_offset", "is_contiguous", "sym_is_contiguous"}
)
_SWAPS = frozenset(
    {aten.logical_and.default, aten.logical_or.default, aten.logical_xor.default}
    | {aten.bitwise_and.Tensor, aten.bitwise_or.Tensor, aten.bitwise_xor.Tensor}
    | {aten.__and__.Tensor, aten.__or__.Tensor, aten.__xor__.Tensor}
    | {aten.eq.Tensor, aten.ne.Tensor, operator.and_, operator.or_, operator.xor}
)
# A product of two NaNs takes the payload of the first, and of 0.0 and -0.0 the maximum takes one.
_SWAPS_INTEGERS = frozenset(
    {aten.mul.Tensor, aten.add.Tensor, aten.maximum.default, aten.minimum.default}
)
_SIZES = frozenset({aten.sym_size.int, aten.sym_numel.default})


@dataclass(frozen=True, eq=False)
class Facts:
    """What numbering needs to know of an operator; one object an operator, compared by identity.

    Attributes:
        keeps_value: where metadata stay the same, the result is the first operand.
        swaps: the first two operands may change places.
        swaps_integers: they may where the result is of whole numbers.
        only_integers: it repeats only where the result is of whole numbers.
        size: the result may be a size.
        names: the schema's arguments in order.
        defaults: the key of the default of each.
    """

    keeps_value: bool
    swaps: bool
    swaps_integers: bool
    only_integers: bool
    size: bool
    names: tuple[str, ...]
    defaults: tuple[Hashable, ...]

    def may_swap(self, node: Node) -> bool:
        """Whether the first two operands of `node` may change places."""
        return self.swaps or (self.swaps_integers and _is_integral(node) and _is_unscaled(node))

    def repeats(self, node: Node) -> bool:
        """Whether the operator repeats in the call that `node` makes."""
        return not self.only_integers or _is_integral(node)


@cache
def facts(called: Any) -> Facts | None:
    """The facts of an operator that repeats: equal operands, equal value; None for any other."""
    if isinstance(called, HigherOrderOperator) or not of_operator(called).pure or may_write(called):
        return None
    name = called._schema.name.split("::")[-1] if isinstance(called, OpOverload) else ""
    if name in _READS_STRIDES or not _repeats_bits(called, name):
        return None
    declared = parameters(called) if name else ()
    return Facts(
        keeps_value=name in _KEEPS_VALUE,
        swaps=called in _SWAPS,
        swaps_integers=called in _SWAPS_INTEGERS,
        only_integers=name in _SUMS,
        size=not name or called in _SIZES,
        names=tuple(argument.name for argument in declared),
        defaults=tuple(map(_default_key, declared)),
    )


def _repeats_bits(called: Any, name: str) -> bool:
    if called is aten.scatter.value:  # one value for every place: no write can win over another
        return True
    # Gradients add into one place from many threads.
    return not (name in _UNREPEATABLE or name.endswith("backward") or _VARIES in _tags(called))


_VARIES = getattr(torch.Tag, "nondeterministic_bitwise", None)


def _tags(called: Any) -> Any:
    return called.tags if isinstance(called, OpOverload) else ()


def _is_integral(node: Node) -> bool:
    if not is_tensor(node):
        return False
    dtype = value_of(node).dtype
    return not (dtype.is_floating_point or dtype.is_complex)


def _is_unscaled(node: Node) -> bool:
    """Whether an addition adds its second operand as it is."""
    scale = node.kwargs.get("alpha", node.args[2] if len(node.args) > 2 else 1)
    return type(scale) is int and scale == 1


def same_metadata(left: Any, right: Any) -> bool:
    """Whether two nodes record tensors of one dtype, device, shape and layout."""
    return (
        is_tensor(left)
        and is_tensor(right)
        and signature_of(value_of(left)) == signature_of(value_of(right))
    )


_PLAIN = frozenset({int, bool, str, type(None), torch.dtype, torch.device})


def constant_key(value: Any) -> Hashable:
    """A constant as part of a key: 1, 1.0 and True differ, 0.0 and -0.0 differ, NaN equals NaN."""
    kind = type(value)
    if kind in _PLAIN:
        return (kind, value)
    if isinstance(value, slice):
        return ("slice", *(constant_key(part) for part in (value.start, value.stop, value.step)))
    return (kind, repr(value) if isinstance(value, float | complex) else expression(value))


def _default_key(declared: torch._C.Argument) -> Hashable:
    if not declared.has_default_value():
        return None
    value = declared.default_value
    return (
        tuple(map(constant_key, value)) if isinstance(value, list | tuple) else constant_key(value)
    )
