"""How a method's inputs reach the delegate and its results come back.

ExecuTorch numbers the values of a method. A plan that is one delegate call takes some of the
inputs, gives values to the outputs, and leaves the rest as they are: an input that is returned, a
number or None that export fixed. Everything else needs ExecuTorch's own runtime and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch.utils._pytree import TreeSpec, treespec_loads

from backend._executorch import schema
from backend.errors import InvalidProgram, NotSupported
from backend.program.payload import Payload

BACKEND_ID = "FxCudaBackend"
CONSTANTS = {
    schema.Bool: "bool_val",
    schema.Double: "double_val",
    schema.Int: "int_val",
    schema.String: "string_val",
}


@dataclass(frozen=True)
class Constant:
    """A value that export fixed: a number, a string or None."""

    value: Any


@dataclass(frozen=True)
class MethodPlan:
    """One method: its payload, and where values come from.

    Attributes:
        inputs: for each flat input, the index of the delegate's input that it is, a `Constant`
            that it must equal, or None for a tensor that the method does not read.
        outputs: for each flat output, ("delegate", index), ("input", index) or a `Constant`.
        in_spec, out_spec: pytree structure of (args, kwargs) and of the result.
    """

    payload: Payload
    inputs: tuple[int | Constant | None, ...]
    outputs: tuple[tuple[str, int] | Constant, ...]
    in_spec: TreeSpec
    out_spec: TreeSpec


def method_plan(plan: Any, delegates: list[bytes], path: str) -> MethodPlan:
    """The `MethodPlan` of one of ExecuTorch's execution plans.

    Raises:
        InvalidProgram, NotSupported: see `backend.program.pte.read`.
    """
    where = f'{path}: method "{plan.name}"'
    call = whole_delegate(plan, where)
    payload = Payload.from_bytes(delegate_data(plan, call, delegates, where), where)
    count = len(payload.inputs)
    if len(call.args) != count + len(payload.outputs):
        raise InvalidProgram(f"{where}: plan and payload differ in the number of values")
    taken, given = call.args[:count], call.args[count:]
    return MethodPlan(
        payload=payload,
        inputs=tuple(input_source(plan, value, taken) for value in plan.inputs),
        outputs=tuple(output_source(plan, value, given, where) for value in plan.outputs),
        in_spec=treespec(plan.container_meta_type.encoded_inp_str, where),
        out_spec=treespec(plan.container_meta_type.encoded_out_str, where),
    )


def whole_delegate(plan: Any, where: str) -> Any:
    """The one delegate call that the method consists of.

    Raises:
        NotSupported: naming the method and what else is in it.
    """
    instructions = [step.instr_args for chain in plan.chains for step in chain.instructions]
    kernels = [operator_name(plan, s) for s in instructions if isinstance(s, schema.KernelCall)]
    calls = [step for step in instructions if isinstance(step, schema.DelegateCall)]
    reason = ""
    if kernels:
        reason = f"it calls {', '.join(dict.fromkeys(kernels))} outside of the delegate"
    elif len(calls) != 1:
        reason = f"it has {len(calls)} delegate calls"
    elif plan.delegates[calls[0].delegate_index].id != BACKEND_ID:
        reason = f"its delegate belongs to {plan.delegates[calls[0].delegate_index].id}"
    elif len(instructions) != 1:
        reason = "it has control flow outside of the delegate"
    elif not set(calls[0].args) >= needed(plan):
        reason = "it returns a tensor that is stored outside of the delegate"
    if reason:
        raise NotSupported(f"{where} is not one whole delegate of {BACKEND_ID}: {reason}")
    return calls[0]


def needed(plan: Any) -> set[int]:
    """The outputs that only the delegate can give: no input, no constant."""
    return {i for i in plan.outputs if i not in plan.inputs and constant(plan, i) is None}


def operator_name(plan: Any, call: Any) -> str:
    """The operator of a kernel call, as "aten::add.out"."""
    operator = plan.operators[call.op_index]
    return f"{operator.name}.{operator.overload}" if operator.overload else str(operator.name)


def delegate_data(plan: Any, call: Any, delegates: list[bytes], where: str) -> bytes:
    """The processed bytes of the delegate that `call` calls."""
    index: int = plan.delegates[call.delegate_index].processed.index
    if index >= len(delegates):
        raise InvalidProgram(f"{where}: its payload is missing")
    return delegates[index]


def input_source(plan: Any, value: int, taken: list[int]) -> int | Constant | None:
    """What becomes of an input: see `MethodPlan.inputs`."""
    if value in taken:
        return taken.index(value)
    return constant(plan, value)


def output_source(
    plan: Any, value: int, given: list[int], where: str
) -> tuple[str, int] | Constant:
    """Where an output comes from: see `MethodPlan.outputs`."""
    if value in given:
        return "delegate", given.index(value)
    if value in plan.inputs:
        return "input", plan.inputs.index(value)
    fixed = constant(plan, value)
    if fixed is None:
        raise InvalidProgram(f"{where}: nothing gives its output {plan.outputs.index(value)}")
    return fixed


def constant(plan: Any, value: int) -> Constant | None:
    """The number, string or None that `value` is, or None for a tensor."""
    content = plan.values[value].val
    if isinstance(content, schema.Null):
        return Constant(None)
    name = CONSTANTS.get(type(content))
    if name is None:
        return None
    found = getattr(content, name)
    return Constant(float(found) if isinstance(content, schema.Double) else found)


def treespec(text: str, where: str) -> TreeSpec:
    """The pytree structure that ExecuTorch stored as text."""
    try:
        return treespec_loads(text)
    except Exception as error:  # torch names no error for a text that is not its own
        raise InvalidProgram(f"{where}: the structure of its values cannot be read") from error
