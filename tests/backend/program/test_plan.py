"""Only a plan that is one delegate call of ours can be run; each other one is told why not."""

import copy

import pytest

from backend._executorch import deserialize_pte_binary, quietly, schema
from backend.errors import InvalidProgram, NotSupported
from backend.program.plan import Constant, method_plan


@pytest.fixture(scope="session")
def file(lowered):
    with quietly():
        return deserialize_pte_binary(lowered.buffer).program


@pytest.fixture
def plan(file):
    return copy.deepcopy(next(plan for plan in file.execution_plan if plan.name == "batch"))


@pytest.fixture
def delegates(file) -> list[bytes]:
    return [bytes(item.data) for item in file.backend_delegate_data]


def refused(plan, delegates, kind, message) -> None:
    with pytest.raises(kind) as caught:
        method_plan(plan, delegates, "m.pte")
    assert str(caught.value).startswith('m.pte: method "batch"')
    assert message in str(caught.value)


def test_values_are_followed_to_their_sources(plan, delegates) -> None:
    found = method_plan(plan, delegates, "m.pte")
    x, pair, *fixed, bias, nothing = found.inputs
    names = [spec.name for spec in found.payload.inputs]
    assert [names[source] for source in (x, pair, bias)] == ["x", "pair", "bias"]
    assert [*fixed, nothing] == [None, Constant(3), Constant(None)]
    assert ("input", 0) in found.outputs
    assert Constant(3) in found.outputs
    assert sum(isinstance(source, tuple) for source in found.outputs) == len(found.outputs) - 1


def test_no_delegate_call(plan, delegates) -> None:
    plan.chains[0].instructions.clear()
    refused(plan, delegates, NotSupported, "it has 0 delegate calls")


def test_two_delegate_calls(plan, delegates) -> None:
    plan.chains[0].instructions *= 2
    refused(plan, delegates, NotSupported, "it has 2 delegate calls")


def test_a_kernel_beside_the_delegate(plan, delegates) -> None:
    plan.operators.append(schema.Operator("aten::sin", "out"))
    plan.chains[0].instructions.append(schema.Instruction(schema.KernelCall(0, [0, 1])))
    refused(plan, delegates, NotSupported, "it calls aten::sin.out outside of the delegate")


def test_control_flow_beside_the_delegate(plan, delegates) -> None:
    plan.chains[0].instructions.append(schema.Instruction(schema.MoveCall(0, 1)))
    refused(plan, delegates, NotSupported, "it has control flow outside of the delegate")


def test_the_delegate_of_another_backend(plan, delegates) -> None:
    plan.delegates[0].id = "XnnpackBackend"
    refused(plan, delegates, NotSupported, "its delegate belongs to XnnpackBackend")


def test_an_output_that_is_stored_beside_the_delegate(plan, delegates) -> None:
    plan.chains[0].instructions[0].instr_args.args.pop()
    refused(plan, delegates, NotSupported, "it returns a tensor that is stored outside")


def test_a_payload_that_is_missing(plan) -> None:
    refused(plan, [], InvalidProgram, "its payload is missing")


def test_a_payload_that_does_not_fit_the_plan(plan, delegates) -> None:
    plan.chains[0].instructions[0].instr_args.args.insert(0, 0)
    refused(plan, delegates, InvalidProgram, "differ in the number of values")


def test_a_structure_that_cannot_be_read(plan, delegates) -> None:
    plan.container_meta_type.encoded_out_str = "[99, null]"
    refused(plan, delegates, InvalidProgram, "the structure of its values cannot be read")
