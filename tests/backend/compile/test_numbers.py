"""Numbers are rounded where eager rounds them: eager sees no difference, and no other moves."""

import pytest
import torch

from backend.compile.numbers import round_numbers

aten = torch.ops.aten
HALF = [torch.bfloat16, torch.float16]

ROUNDED = {
    "x + number": lambda x, number: x + number,
    "x - number": lambda x, number: x - number,
    "number - x": lambda x, number: number - x,
    "x - 3 * number": lambda x, number: torch.sub(x, number, alpha=3),
    "3 * number - x": lambda x, number: torch.rsub(x, number, alpha=0.7),
    "x % number": lambda x, number: x % number,
    "number % x": lambda x, number: number % x,
    "fmod": lambda x, number: x.fmod(number),
    "x ** number": lambda x, number: x.abs() ** number,
    "number ** x": lambda x, number: abs(number) ** x,
    "another overload": lambda x, number: aten.add.Scalar(x, number),
}
AS_GIVEN = {
    "x * number": lambda x, number: x * number,
    "x / number": lambda x, number: x / number,
    "floor": lambda x, number: torch.div(x, number, rounding_mode="floor"),
    "alpha": lambda x, number: x.add(x.flip(0), alpha=number),
    "lerp": lambda x, number: x.lerp(x.flip(0), number),
}


def exported(function, *inputs):
    module = torch.nn.Module()
    module.forward = function
    return torch.export.export(module, inputs).graph_module


def numbers(graph_module):
    return [
        operand
        for module in graph_module.modules()
        for node in module.graph.nodes
        for operand in (*node.args, *node.kwargs.values())
        if isinstance(operand, int | float)
    ]


def rounded_numbers(function, *inputs):
    """The numbers of the graph of `function` after it was edited; its results stay."""
    graph_module = exported(function, *inputs)
    before = graph_module(*inputs)
    round_numbers(graph_module)
    for result, expected in zip(graph_module(*inputs), before, strict=True):
        assert torch.equal(result.nan_to_num(), expected.nan_to_num())
    return numbers(graph_module)


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("number", [0.3, -7.7, 1e4 + 1, 60001.0, 4e-6, 1001])
@pytest.mark.parametrize("name", ROUNDED)
def test_eager_sees_no_difference(name, number, dtype):
    x = torch.linspace(-5, 9, 1001).to(dtype)
    found = rounded_numbers(lambda x: ROUNDED[name](x, number), x)
    nearest = abs(torch.tensor(number, dtype=dtype).item())
    assert nearest in [abs(number) for number in found]


@pytest.mark.parametrize("name", AS_GIVEN)
def test_a_number_that_eager_takes_as_it_is(name):
    x = torch.randn(1001).to(torch.bfloat16)
    assert 0.3 in rounded_numbers(lambda x: AS_GIVEN[name](x, 0.3), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_other_dtypes(dtype):
    x = torch.arange(1, 9).to(dtype)
    assert rounded_numbers(lambda x: (x + 0.3) % 0.7, x) == [0.3, 0.7]


def test_a_number_that_fits_keeps_its_type():
    (number,) = rounded_numbers(lambda x: x**2, torch.randn(9).to(torch.float16))
    assert type(number) is int


def test_inside_a_branch():
    def function(flag, x):
        return torch.cond(flag, lambda x: x + 0.3, lambda x: x - 0.7, (x,))

    inputs = torch.tensor(False), torch.randn(9).to(torch.bfloat16)
    assert {0.30078125, 0.69921875} < set(rounded_numbers(function, *inputs))


def test_sizes_are_no_numbers():
    x = torch.randn(2, 3).to(torch.bfloat16)
    program = torch.export.export(
        torch.nn.Flatten(0), (x,), dynamic_shapes=({0: torch.export.Dim("rows")},)
    )
    before = str(program.graph)
    round_numbers(program.graph_module)
    assert str(program.graph) == before
