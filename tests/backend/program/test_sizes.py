"""Sizes are numbers, symbols or arithmetic, and nothing that could run."""

import pytest

from backend.errors import InvalidProgram
from backend.program.fields import Fields
from backend.program.sizes import Dynamic, evaluate, size_from_json, size_to_json


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("s0", 7),
        ("2*s0 + 1", 15),
        ("-s0 + 10", 3),
        ("(s0 + 1)//2", 4),
        ("s0**2", 49),
        ("Mod(s0, 4)", 3),
        ("FloorDiv(s0, 2)", 3),
        ("CeilDiv(s0, 2)", 4),
        ("Max(3, s0)", 7),
        ("s1", None),
        ("s0 + s1", None),
    ],
)
def test_arithmetic_on_symbols(expression, expected) -> None:
    assert evaluate(expression, {"s0": 7}) == expected


@pytest.mark.parametrize(
    "expression", ["__import__('os')", "s0.real", "s0 +", "[s0]", "s0//0", "1.5", "Max()"]
)
def test_anything_else_is_refused(expression) -> None:
    with pytest.raises(InvalidProgram, match="cannot be computed"):
        evaluate(expression, {"s0": 7})


@pytest.mark.parametrize("size", [3, Dynamic("s0", 0, 20), Dynamic("2*s0", 4, None)])
def test_a_size_survives_json(size) -> None:
    assert size_from_json(size_to_json(size), Fields({}, "x"), "shape") == size


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("3", 'field "shape" is not a list of sizes'),
        (True, 'field "shape" is not a list of sizes'),
        ({"symbol": "s0", "max": 3}, 'x.shape: field "min" is missing'),
        ({"symbol": "s0", "min": 1}, 'x.shape: field "max" is missing'),
        ({"symbol": 3, "min": 1, "max": 3}, 'x.shape: field "symbol" is not a string'),
    ],
)
def test_a_wrong_size_is_named(value, message) -> None:
    with pytest.raises(InvalidProgram) as caught:
        size_from_json(value, Fields({}, "x"), "shape")
    assert message in str(caught.value)
