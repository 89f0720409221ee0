"""Integer floor division by way of float64: eager's, bit for bit, and only where it is needed.

The values are judged on the CPU, where eager can run; graphs on a GPU are traced on fake tensors.
"""

import itertools

import pytest
import torch

from fxpasses import _torch
from fxpasses.passes import ReplaceIntegerFloorDivision
from tests.fxpasses.programs import (
    assert_equal_to_eager,
    calls,
    export,
    missed,
    passed,
    run,
    trace_fake,
)

PASS = ReplaceIntegerFloorDivision(always=True)
HERE = ReplaceIntegerFloorDivision(device="cpu", always=True)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
DIVISIONS = PASS.targets


def divide(a, b):
    return torch.floor_divide(a, b)


def divide_in_mode(a, b):
    return torch.div(a, b, rounding_mode="floor")


def rewritten(function, *inputs, functional=True):
    result = run(HERE, export(function, *inputs, functional=functional))
    assert calls(result.program, *DIVISIONS) == 0, missed(result)
    assert_equal_to_eager(result.program, function, *inputs)
    return result


def edges(dtype):
    """Numbers around every place where a quotient, a rounding or a sign could go wrong."""
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    near = {n + d for n in (low, 0, high) for d in (-3, -2, -1, 0, 1, 2, 3)}
    powers = {s * 2**e + d for s in (1, -1) for e in range(2, 64, 3) for d in (-1, 0, 1)}
    exact = {s * 2**e + d for s in (1, -1) for e in (52, 53, 54, 61, 62) for d in (-1, 0, 1, 1023)}
    others = {7, -7, 10, 1000003, -1000003, 3037000499, -3037000500}
    return sorted(n for n in near | powers | exact | others if low <= n <= high)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("function", [divide, divide_in_mode])
def test_every_edge_by_every_edge(dtype, function):
    numbers = edges(dtype)
    pairs = torch.tensor([(a, b) for a, b in itertools.product(numbers, numbers) if b], dtype=dtype)
    rewritten(function, pairs[:, 0].contiguous(), pairs[:, 1].contiguous())


@pytest.mark.parametrize("bits", [8, 16, 31, 40, 53, 62, 63])
def test_random_numbers_by_random_numbers(draw, bits):
    """Dividends of 63 bits by divisors of fewer; and dividends next to a multiple."""
    a = draw.integers(20_000, low=-(2**63), high=2**63 - 1)
    b = draw.integers(20_000, low=-(2**bits), high=2**bits - 1)
    b[b == 0] = 1
    rewritten(divide, a, b)
    near = a // b * b
    for off in (-1, 0, 1):
        rewritten(divide, near + off, b)


def test_what_python_says(draw):
    a, b = [2**63 - 1, -(2**63), 2**53 + 1, -7], [3, 7, -1, 2]
    got = rewritten(divide, torch.tensor(a), torch.tensor(b)).program.module()
    quotients = got(torch.tensor(a), torch.tensor(b)).tolist()
    assert quotients == [x // y for x, y in zip(a, b, strict=True)]


MIXED = list(itertools.permutations([torch.uint8, torch.int8, torch.int32, torch.int64], 2))


@pytest.mark.parametrize(("left", "right"), MIXED, ids=str)
@pytest.mark.parametrize("shape", [(5,), ()], ids=str)
def test_promotion(left, right, shape):
    """A divisor without dims takes the dividend's dtype, and wraps on the way."""
    a = torch.tensor([100, 7, 0, 90, 13], dtype=left)
    b = torch.full(shape, 100, dtype=right)
    rewritten(divide, a, b)
    rewritten(divide_in_mode, b, a + 1)
    if right is torch.int64:
        rewritten(divide, a, torch.tensor(300))


def test_bool_operands_count_as_numbers(draw):
    rewritten(divide, draw.integers(5), torch.ones(5, dtype=torch.bool))


def test_broadcasting_and_layout(draw, functional):
    a, b = draw.integers(4, 3).t(), draw.integers(4, low=1)
    rewritten(divide, a, b, functional=functional)
    rewritten(divide, draw.integers(2, 3, 4, 4).to(memory_format=torch.channels_last), b)
    rewritten(divide, draw.integers(0, 4), b)


def test_in_place(draw, functional):
    def function(x, d):
        y = x.clone()
        y //= d
        return y, x.div_(d, rounding_mode="floor")

    rewritten(function, draw.integers(6), torch.tensor(-3), functional=functional)


def test_in_place_in_a_smaller_dtype(draw):
    def function(x, d):
        return x.clone().floor_divide_(d)

    x = torch.tensor([-100, 7, 90], dtype=torch.int8)
    rewritten(function, x, torch.tensor([300, -300, 7]), functional=False)


def test_a_number_by_a_tensor_without_dims():
    def function(d):
        return torch.floor_divide(1000003, d), torch.floor_divide(d, -7)

    rewritten(function, torch.tensor(-31))


def test_a_constant_of_the_program(draw):
    class Rows(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("width", torch.tensor(7))

        def forward(self, x):
            return x // self.width, x // torch.tensor(-3)

    module = Rows()
    result = run(HERE, export(module, draw.integers(9), functional=True))
    assert calls(result.program, *DIVISIONS) == 0
    assert_equal_to_eager(result.program, module, draw.integers(9))


def test_inside_a_branch(draw, functional):
    def function(p, a, b):
        return torch.cond(p, divide, lambda a, b: a - b, (a, b))

    inputs = torch.tensor(True), draw.integers(6), draw.integers(6, low=1)
    rewritten(function, *inputs, functional=functional)


# On a GPU, and nowhere else.


def on(device, dtype=torch.int64):
    return lambda: (
        torch.ones(5, dtype=dtype, device=device),
        torch.ones((), dtype=dtype, device=device),
    )


@pytest.mark.parametrize("function", [divide, divide_in_mode])
def test_on_a_gpu(function):
    result = run(PASS, trace_fake(function, on("cuda")), verify="metadata")
    assert calls(result.program, *DIVISIONS) == 0
    (remark,) = passed(result)
    assert "divides in float64" in remark.reason


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (divide, on("cpu")),
        (divide, on("cuda", torch.float64)),
        (lambda a, b: torch.div(a, b, rounding_mode="trunc"), on("cuda")),
        (torch.div, on("cuda")),
        (torch.remainder, on("cuda")),
    ],
    ids=["cpu", "floats", "trunc", "true division", "remainder"],
)
def test_other_divisions_are_no_kind_of_ours(function, inputs):
    result = run(PASS, trace_fake(function, inputs), verify="metadata")
    assert (result.changed, result.remarks) == (False, [])


def test_sizes_are_no_tensors(draw):
    def function(x):
        return x.new_zeros(x.shape[0] // 2)

    rows = torch.export.Dim("rows", min=4)
    result = run(HERE, export(function, draw.integers(6), dynamic=[{0: rows}]))
    assert (result.changed, result.remarks) == (False, [])


def test_guard_constants():
    """A number beside a tensor with dims is compiled right everywhere: nothing to mend."""
    program = trace_fake(lambda a, _: a // 3, on("cuda"))
    result = run(PASS, program, verify="metadata")
    assert not result.changed
    assert "divides by a number" in missed(result)["constants"]
    assert run(PASS.without("constants"), program, verify="metadata").changed


@pytest.mark.parametrize("faulty", [False, True])
def test_guard_miscompiled(monkeypatch, faulty):
    monkeypatch.setattr(_torch, "takes_integer_constants_for_floats", lambda: faulty)
    subject, program = ReplaceIntegerFloorDivision(), trace_fake(divide, on("cuda"))
    result = run(subject, program, verify="metadata")
    assert result.changed is faulty
    assert faulty or "compiles it right" in missed(result)["miscompiled"]
    assert run(subject.without("miscompiled"), program, verify="metadata").changed


@pytest.mark.compile
def test_where_the_fault_is_we_say_so(tmp_path):
    """What Inductor makes of -1 // tensor(3), on the device that every machine has.

    Torch 2.11 has the faulty lowering, but hands it no constant here.
    """

    class Third(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("three", torch.tensor(3))

        def forward(self, x):
            return x // self.three

    def compiled(program):
        path = torch._inductor.aoti_compile_and_package(
            program, package_path=str(tmp_path / f"{len(list(tmp_path.iterdir()))}.pt2")
        )
        return torch._inductor.aoti_load_package(path)

    x = torch.tensor([-1, -4, 2**63 - 1, -(2**62) - 1, 7])
    program = export(Third(), x)
    right = torch.equal(compiled(program)(x), x // 3)
    assert right or _torch.takes_integer_constants_for_floats()
    assert torch.equal(compiled(run(HERE, program).program)(x), x // 3)


def test_every_guard_has_a_test_here():
    tested = {name.removeprefix("test_guard_") for name in globals() if "test_guard_" in name}
    assert tested == set(PASS.guards())
