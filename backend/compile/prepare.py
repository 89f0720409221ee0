"""Bring an ATen program into a form that ExecuTorch's edge dialect carries without loss.

    x * 1.1           aten.mul.Tensor(x, 1.1)  ->  aten.mul.Scalar(x, 1.1)
    return self.count                          ->  return self.count.clone()

The dialect makes a tensor of every number that stands where an operator takes a tensor: a float32
one, rounded again to the other operand's dtype, which no longer is what eager computes in float64
or bfloat16. And ExecuTorch refuses a program that both writes a buffer and returns it. `edge` turns
the numbers back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

from backend._executorch import SORTS_RESULTS
from backend.compile.aliases import base
from backend.errors import NotSupported
from fxpasses.analysis import writes_buffers
from fxpasses.program import fork
from fxpasses.regions import regions

Number = (bool, int, float, complex)


def prepare(program: ExportedProgram) -> ExportedProgram:
    """A copy of `program` whose numbers and returned buffers survive the edge dialect.

    Raises:
        NotSupported: a buffer is written that shares memory with another one.
    """
    refuse_shared_state(program)
    new = fork(program if SORTS_RESULTS else program.run_decompositions({}))
    for region in regions(new.graph_module):
        for node in region.graph.nodes:
            keep_numbers(node)
    own_outputs(new)
    for region in regions(new.graph_module):
        region.module.recompile()
    return new


def refuse_shared_state(program: ExportedProgram) -> None:
    """Refuse a written buffer that another weight or buffer looks at: neither tool below us can."""
    written = {write.buffer for write in writes_buffers(program)}
    tensors = {**program.state_dict, **program.constants}
    inputs = {spec.target: tensors.get(spec.target) for spec in program.graph_signature.input_specs}
    places = {n: t.untyped_storage().data_ptr() for n, t in inputs.items() if isinstance(t, Tensor)}
    for one in sorted(written & places.keys()):
        others = [n for n, place in places.items() if n != one and place == places[one] != 0]
        if others:
            raise NotSupported(
                f'"{one}" and "{others[0]}" share memory that the program writes; '
                "register one buffer and take views of it in forward"
            )


def keep_numbers(node: Node) -> None:
    """Give `node` the overload that takes as numbers the numbers it has in tensors' places."""
    if not isinstance(node.target, OpOverload):
        return
    numbers = {n for n, kind, v in typed(node) if kind == "Tensor" and isinstance(v, Number)}
    sibling = overload_with(node.target, numbers, "number") if numbers else None
    if sibling is not None:
        retarget(node, sibling)


def typed(node: Node) -> Iterator[tuple[str, str, Any]]:
    """The arguments of `node` as (name, type by the schema, value)."""
    arguments = node.target._schema.arguments  # type: ignore[union-attr]
    for argument, value in zip(arguments, node.args, strict=False):
        yield argument.name, str(argument.type), value
    for argument in arguments[len(node.args) :]:
        if argument.name in node.kwargs:
            yield argument.name, str(argument.type), node.kwargs[argument.name]


def overload_with(operator: OpOverload, names: set[str], kind: str) -> OpOverload | None:
    """The overload of `operator` whose arguments `names` are of type `kind`, all others alike."""
    wanted = {a.name: kind if a.name in names else str(a.type) for a in operator._schema.arguments}
    packet = operator.overloadpacket
    for name in packet.overloads():
        other: OpOverload = getattr(packet, name)
        if {a.name: str(a.type) for a in other._schema.arguments} == wanted:
            return other
    return None


def retarget(node: Node, operator: OpOverload) -> None:
    """Let `node` call `operator`, whose arguments have the same names, perhaps in other places."""
    given = {name: value for name, _, value in typed(node)}
    args = []
    for argument in operator._schema.arguments:
        if argument.kwarg_only or argument.name not in given:
            break
        args.append(given.pop(argument.name))
    node.target, node.args, node.kwargs = operator, tuple(args), given


def own_outputs(program: ExportedProgram) -> None:
    """Return a copy of whatever is a weight or a buffer, old or new, under another name.

    For an ExecuTorch that does not sort them, copy all results, after the buffers' new values.
    """
    held = held_values(program)
    output = program.graph.output_node()
    results = list(output.args[0])
    for index, spec in enumerate(program.graph_signature.output_specs):
        result = results[index]
        if spec.kind != OutputKind.USER_OUTPUT or not isinstance(result, Node):
            continue
        if base(result).name in held or must_come_last(result, program):
            results[index] = copied(result, output)
            spec.arg.name = results[index].name
    output.args = (tuple(results),)


def must_come_last(result: Node, program: ExportedProgram) -> bool:
    """Whether ExecuTorch 1.2 would mistake `result` for the new value of a buffer."""
    if SORTS_RESULTS or not program.graph_signature.buffers_to_mutate:
        return False
    fresh = isinstance(result.meta.get("val"), Tensor) and result.op == "call_function"
    return fresh and result.target is not torch.ops.aten.clone.default


def held_values(program: ExportedProgram) -> set[str]:
    """The names of the nodes that stand for a weight or for what a buffer becomes."""
    signature = program.graph_signature
    weights = [s.arg.name for s in signature.input_specs if s.kind != InputKind.USER_INPUT]
    written = [s.arg.name for s in signature.output_specs if s.kind != OutputKind.USER_OUTPUT]
    return {*weights, *written}


def copied(result: Node, output: Node) -> Node:
    """A copy of `result`, made just before `output`."""
    with output.graph.inserting_before(output):
        node = output.graph.call_function(torch.ops.aten.clone.default, (result,))
    node.meta.update(result.meta)
    return node
