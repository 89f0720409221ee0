"""Integer floor division, written in what Inductor compiles right.

    x // torch.tensor(3)        # -10 // 3 is -4, and -3 once it is compiled

Up to torch 2.13 Inductor keeps a constant without dims in a form that its floor division does not
know for an integer, so it divides as it would floats and rounds towards zero (pytorch#186164). A
division of two numbers is exact enough in float64 to get within reach of the quotient, and the
remainder, which integers hold exactly, says what is missing:

    q = floor(f64(a) / f64(b));   q += floor(f64(a - q*b) / f64(b));   q += 1 or -1 or 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from fxpasses import _torch
from fxpasses.editor import Editor
from fxpasses.operators import argument, operator_of
from fxpasses.registry import register_pass
from fxpasses.rewrite import RewritePass, guard
from fxpasses.values import is_tensor, value_of
from fxpasses.verdict import YES, Verdict, no

aten = torch.ops.aten

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_IN_PLACE = frozenset({aten.floor_divide_.Tensor, aten.div_.Tensor_mode})
_LARGEST = float(2**63 - 2**10)  # the largest float64 that is an int64


@dataclass(frozen=True)
class Division:
    """The operands of one floor division, tensors or numbers, and the dtype it is done in."""

    dividend: Any
    divisor: Any
    dtype: torch.dtype


@register_pass("replace-integer-floor-division")
@dataclass(frozen=True)
class ReplaceIntegerFloorDivision(RewritePass):
    """Replace integer floor division where Inductor miscompiles it (pytorch#186164).

        floor_divide(a, b)  ->  q = floor(f64(a) / f64(b)), corrected for int64:
                                q = q + floor(f64(a - q*b) / f64(b))
                                q = q + (1 if a - q*b reaches b) - (1 if it is across zero from b)

    For 32 bits and fewer, a quotient that is no integer lies further from the next one than
    float64 rounds, so the floor is exact. For int64, the first step is off by at most 2**12 (and
    one), the second by at most one, and the remainder, exact modulo 2**64, shows which way. The
    result is eager's for every pair of operands, the smallest number by -1 included, which wraps;
    a division by zero gives some number, as it does on a GPU.

    Other division is left alone: of floats, with another rounding, and off the device.

    Options: `device` is the type of device whose divisions are rewritten; `always` rewrites them
    whatever the torch at hand does, for a program that another torch will compile.

    constants: Inductor goes wrong over constants without dims. Where one operand is a number and
        the other has dims, it sees two integers.
    miscompiled: the torch at hand has the fault.
    """

    device: str = "cuda"
    always: bool = False

    targets = (
        aten.floor_divide.default,
        aten.floor_divide_.Tensor,
        aten.div.Tensor_mode,
        aten.div_.Tensor_mode,
    )

    def match(self, node: Node, editor: Editor) -> Division | None:
        rounds = operator_of(node) in (aten.div.Tensor_mode, aten.div_.Tensor_mode)
        if rounds and argument(node, "rounding_mode") != "floor":
            return None
        left, right = argument(node, "self"), argument(node, "other")
        dtype = torch.result_type(value_of(left), value_of(right))
        here = value_of(node).device.type == self.device
        return Division(left, right, dtype) if here and dtype in _INTEGERS else None

    @guard
    def constants(self, node: Node, match: Division, editor: Editor) -> Verdict:
        tensors = [x for x in (match.dividend, match.divisor) if is_tensor(x)]
        if len(tensors) == 2 or value_of(tensors[0]).dim() == 0:
            return YES
        return no("it divides by a number, which Inductor knows for an integer")

    @guard
    def miscompiled(self, node: Node, match: Division, editor: Editor) -> Verdict:
        if self.always or _torch.takes_integer_constants_for_floats():
            return YES
        return no(f"torch {torch.__version__} compiles it right")

    def rewrite(self, node: Node, match: Division, editor: Editor) -> str:
        in_place = operator_of(node) in _IN_PLACE
        with editor.at(node):
            a, b = (_operand(x, match.dtype, node, editor) for x in (match.dividend, match.divisor))
            new = _quotient(a, b, match.dtype, editor)
            if in_place:
                new = editor.call(aten.copy_.default, match.dividend, new)
        editor.replace(node, new, effects_kept=in_place)
        return f"divides in float64, {new} is the quotient"


def _operand(operand: Any, dtype: torch.dtype, node: Node, editor: Editor) -> Node:
    """`operand` as a tensor of `dtype`."""
    if not isinstance(operand, Node):
        device = value_of(node).device
        return editor.call(aten.scalar_tensor.default, operand, dtype=dtype, device=device)
    return operand if value_of(operand).dtype is dtype else _to(operand, dtype, editor)


def _quotient(a: Node, b: Node, dtype: torch.dtype, editor: Editor) -> Node:
    wide = _to(b, torch.float64, editor)
    quotient = _floor(a, wide, editor)
    if dtype is not torch.int64:
        return _to(quotient, dtype, editor)
    rest = _rest(a, quotient, b, editor)
    quotient = editor.call(aten.add.Tensor, quotient, _floor(rest, wide, editor))
    rest = _rest(a, quotient, b, editor)
    quotient = editor.call(aten.add.Tensor, quotient, _reaches(rest, b, editor))
    return editor.call(aten.sub.Tensor, quotient, _is_across(rest, b, editor))


def _floor(a: Node, divisor: Node, editor: Editor) -> Node:
    """The floor of a / divisor in float64, as int64."""
    ratio = editor.call(aten.div.Tensor, _to(a, torch.float64, editor), divisor)
    floor = editor.call(aten.floor.default, ratio)
    # 2**63 is no int64, and devices differ in what they make of it.
    return _to(editor.call(aten.clamp_max.default, floor, _LARGEST), torch.int64, editor)


def _rest(a: Node, quotient: Node, b: Node, editor: Editor) -> Node:
    """What `quotient` times `b` leaves of `a`; what wraps in the product wraps back."""
    return editor.call(aten.sub.Tensor, a, editor.call(aten.mul.Tensor, quotient, b))


def _reaches(rest: Node, b: Node, editor: Editor) -> Node:
    """1 where `rest` holds `b` once more, 0 elsewhere."""
    below, above = (editor.call(op.Tensor, rest, b) for op in (aten.le, aten.ge))
    return _by_sign(b, below, above, editor)


def _is_across(rest: Node, b: Node, editor: Editor) -> Node:
    """1 where `rest` lies on the other side of zero than `b`, 0 elsewhere."""
    above, below = (editor.call(op.Scalar, rest, 0) for op in (aten.gt, aten.lt))
    return _by_sign(b, above, below, editor)


def _by_sign(b: Node, negative: Node, positive: Node, editor: Editor) -> Node:
    """`negative` where `b` is, and `positive` elsewhere, as 1 and 0."""
    sign = editor.call(aten.lt.Scalar, b, 0)
    return _to(editor.call(aten.where.self, sign, negative, positive), torch.int64, editor)


def _to(node: Node, dtype: torch.dtype, editor: Editor) -> Node:
    return editor.call(aten._to_copy.default, node, dtype=dtype)
