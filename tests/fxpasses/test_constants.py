"""Constants that a pass adds to a program."""

import io
from dataclasses import dataclass

import pytest
import torch

from fxpasses import Pipeline, Registry, RewritePass, RewriteRefused, register_pass
from fxpasses.patterns import op, var

aten = torch.ops.aten
known = Registry()


@register_pass("tabulate-two", into=known)
@dataclass(frozen=True)
class TabulateTwo(RewritePass):
    """x * 2 -> x * t, with t a tensor of twos that the program holds."""

    pattern = op(aten.mul.Tensor, var("x"), 2)

    def rewrite(self, node, match, editor):
        twos = editor.constant(torch.full((3,), 2.0))
        with editor.at(node):
            editor.replace(node, editor.call(aten.mul.Tensor, match["x"], twos))
        return "2 became a tensor"


class Doubles(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.ones(3))

    def forward(self, x):
        self.calls.add_(1)
        return x * 2 + self.calls


class DoublesInBranch(torch.nn.Module):
    def forward(self, flag, x):
        return torch.cond(flag, lambda x: x * 2, lambda x: x + 1, (x,))


@pytest.fixture(params=["in place", "functional"])
def program(request):
    program = torch.export.export(Doubles(), (torch.randn(3),))
    return program.run_decompositions({}) if request.param == "functional" else program


def test_a_constant_enters_program_and_signature(program):
    result = Pipeline.parse("tabulate-two", known).run(program, verify="numeric")
    result.program.validate()
    assert list(result.program.constants) == ["lifted_constant_0"]
    assert list(result.program.graph_signature.user_inputs) == ["x"]
    assert program.constants == {}
    assert "lifted_constant" not in str(program.graph_signature)


def test_a_program_with_a_new_constant_can_be_saved(program):
    result = Pipeline.parse("tabulate-two", known).run(program)
    file = io.BytesIO()
    torch.export.save(result.program, file)
    file.seek(0)
    x = torch.randn(3)
    assert torch.equal(torch.export.load(file).module()(x), x * 2 + 2)


def test_a_graph_module_holds_a_constant_as_an_attribute():
    module = torch.export.export(Doubles(), (torch.randn(3),)).module()
    result = Pipeline.parse("tabulate-two", known).run(module, verify="structure")
    x = torch.randn(3)
    assert result.changed
    assert torch.equal(result.program(x), x * 2 + 2)


def test_a_branch_cannot_hold_a_constant():
    program = torch.export.export(DoublesInBranch(), (torch.tensor(True), torch.randn(3)))
    with pytest.raises(RewriteRefused, match="true_graph_0 can hold no constant"):
        Pipeline.parse("tabulate-two", known).run(program)
