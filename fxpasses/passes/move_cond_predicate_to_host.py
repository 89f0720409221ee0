"""Flags of `torch.cond` that the program holds itself, kept where they are asked for.

    flag on the device:   copy flag to the host, wait, choose a branch
    flag on the host:     choose a branch

The host chooses the branch. A flag among the program's buffers, "the cache is filled" say, is
computed by nobody but the program, so it can live in host memory, with what updates it there too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node
from torch.utils._pytree import tree_leaves

from fxpasses import _torch
from fxpasses.analysis.calls import chooses_by, results_of
from fxpasses.editor import Editor
from fxpasses.held import Held, held_tensors, sharers, written_back
from fxpasses.operators import operator_of
from fxpasses.program import Program, module_of
from fxpasses.registry import register_pass
from fxpasses.rewrite import RewritePass, guard
from fxpasses.values import is_tensor, value_of
from fxpasses.verdict import YES, Verdict, no

_WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)

# What a host computes of whole numbers exactly as a device does.
_EXACT = frozenset(
    {"logical_not", "logical_and", "logical_or", "logical_xor", "where", "clamp", "any", "all"}
    | {"bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "eq", "ne", "lt", "le", "gt"}
    | {"ge", "add", "sub", "rsub", "mul", "neg", "abs", "minimum", "maximum", "clone", "copy"}
    | {"fill", "zero", "alias", "detach", "view", "reshape", "squeeze", "unsqueeze", "select"}
    | {"_to_copy", "lift_fresh_copy"}
)


@dataclass
class Flags:
    """All that moves with a predicate.

    Attributes:
        inputs: buffers and constants.
        sources: what it is all computed from besides, which cannot move.
        readers: who else reads it, each with what it reads.
    """

    inputs: list[Node] = field(default_factory=list)
    sources: list[Node] = field(default_factory=list)
    readers: list[tuple[Node, Node]] = field(default_factory=list)


@register_pass("move-cond-predicate-to-host")
@dataclass(frozen=True)
class MoveCondPredicateToHost(RewritePass):
    """Keep the predicate of `torch.cond` in host memory, where it is a buffer or a constant.

        cond(flag, ...);  flag = logical_not(flag)    ->  the same, with flag in host memory

    The host decides which branch runs, so a predicate on the device costs a copy and a wait on
    every call. What moves is the flag, what it is computed from, and what is computed of it: one
    element each, of whole numbers, by operators that give the same on every device. A predicate
    that is a number, or on the host already, is left as it is.

    held: the program holds all that the predicate is computed from, so nothing that the caller
        gives, or that the device computes, would have to come to the host.
    alone: nothing else reads what moves: only predicates, and the buffers that are written back.
    unshared: no other tensor of the program shares memory with a buffer that moves.
    """

    targets = (torch.ops.higher_order.cond,)

    def match(self, node: Node, editor: Editor) -> Flags | None:
        predicate: Any = node.args[0]
        if not is_tensor(predicate) or value_of(predicate).device.type == "cpu":
            return None
        return _flags(predicate, editor.program)

    @guard
    def held(self, node: Node, match: Flags, editor: Editor) -> Verdict:
        for source in match.sources:
            return no(f"{source} is no buffer or constant, nor one whole number computed of such")
        return YES

    @guard
    def alone(self, node: Node, match: Flags, editor: Editor) -> Verdict:
        for read, reader in match.readers:
            return no(f"{reader} reads {read} where it is")
        return YES

    @guard
    def unshared(self, node: Node, match: Flags, editor: Editor) -> Verdict:
        tensors = held_tensors(editor.program)
        for held in (tensors[node] for node in match.inputs):
            for other in sharers(editor.program, held):
                return no(f"{other} shares the memory of {held.name}")
        return YES

    def rewrite(self, node: Node, match: Flags, editor: Editor) -> str:
        editor.move(match.inputs, torch.device("cpu"))
        return f"{', '.join(map(str, match.inputs))} lives in host memory, where it is asked for"


def _flags(predicate: Node, program: Program) -> Flags:
    """What moves with `predicate`: operands, readers and buffers written back, to the end."""
    held, written = held_tensors(program), _written(program)
    found, seen, pending = Flags(), {predicate}, [predicate]
    while pending:
        node = pending.pop()
        if not _is_flag(node, held):
            found.sources.append(node)
            continue
        if node in held:
            found.inputs.append(node)
        moving = [reader for reader in node.users if _is_flag(reader, held)]
        staying = [reader for reader in node.users if reader not in moving]
        found.readers += [(node, r) for r in staying if not _may_stay(r, node, written)]
        moving += [other for pair in written if node in pair for other in pair]
        fresh = [n for n in dict.fromkeys((*node.all_input_nodes, *moving)) if n not in seen]
        seen.update(fresh)
        pending += fresh
    return found


def _written(program: Program) -> list[tuple[Node, Node]]:
    """The buffers that are written back, each with its new value."""
    by_name = {held.name: node for node, held in held_tensors(program).items()}
    results = results_of(module_of(program).graph)
    back = [(by_name.get(name), results[place]) for place, name in written_back(program)]
    return [(buffer, value) for buffer, value in back if buffer]


def _is_flag(node: Node, held: Mapping[Node, Held]) -> bool:
    """Whether `node` is one whole number that the host can hold, or compute."""
    value = value_of(node)
    whole = is_tensor(node) and value.dtype in _WHOLE and _torch.always(value.numel() == 1)
    return whole and (node in held or _computes(node))


def _computes(node: Node) -> bool:
    """Whether a host computes what `node` does of whole numbers, and no device is asked for."""
    called = operator_of(node)
    if not isinstance(called, OpOverload) or called.namespace != "aten":
        return False
    name = called._schema.name.removeprefix("aten::").removesuffix("_")
    given = tree_leaves((node.args, node.kwargs))
    return name in _EXACT and not any(isinstance(x, float | torch.device) for x in given)


def _may_stay(reader: Node, node: Node, written: list[tuple[Node, Node]]) -> bool:
    """Whether `reader` does not mind where `node` lives: it chooses by it, or writes it back."""
    if reader.op == "output":
        return results_of(reader.graph).count(node) == sum(value is node for _, value in written)
    return chooses_by(reader, [node])
