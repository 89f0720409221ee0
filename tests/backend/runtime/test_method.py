"""Lowered methods give what eager gives, call after call, and keep their memory to themselves."""

import threading

import pytest
import torch
from torch.utils._pytree import tree_flatten

import backend
from backend.runtime.method import owned

CALLS = 4


def assert_equal(result, expected) -> None:
    """Same structure, same values, bit for bit."""
    results, found = tree_flatten(result)
    expecteds, wanted = tree_flatten(expected)
    assert found == wanted
    for one, other in zip(results, expecteds, strict=True):
        if isinstance(other, torch.Tensor):
            assert one.dtype == other.dtype
            assert torch.equal(one, other)
        else:
            assert type(one) is type(other)
            assert one == other


@pytest.mark.parametrize("name", ["branch", "counter", "state", "layouts", "nothing"])
def test_every_call_equals_eager(program, methods, name) -> None:
    module = methods[name].fresh()
    for _ in range(CALLS):
        inputs = methods[name].draw()
        assert_equal(program[name](*inputs), module(*inputs))


def test_numbers_are_as_exact_as_eager_has_them(program, methods) -> None:
    inputs = methods["numbers"].draw()
    exact, _ = program["numbers"](*inputs)
    assert_equal(exact, methods["numbers"].fresh()(*inputs)[0])


@pytest.mark.skipif(
    torch.__version__.startswith("2.11."), reason="its Inductor drops them in C++ whatever is asked"
)
def test_roundings_between_fused_operators_are_kept(program, methods) -> None:
    inputs = methods["numbers"].draw()
    _, rounded = program["numbers"](*inputs)
    assert_equal(rounded, methods["numbers"].fresh()(*inputs)[1])


@pytest.mark.parametrize("flag", [True, False])
def test_both_branches_equal_eager(program, methods, flag) -> None:
    _, *tensors = methods["branch"].draw()
    module = methods["branch"].fresh()
    inputs = torch.tensor(flag), *tensors
    assert_equal(program["branch"](*inputs), module(*inputs))


def test_a_one_element_counter_counts(program) -> None:
    counts = [program["counter"](torch.zeros(1)).item() for _ in range(3)]
    assert counts == [1, 2, 3]


@pytest.mark.parametrize("rows", [1, 2, 4, 20])
def test_any_batch_size_and_any_structure_equal_eager(program, methods, rows) -> None:
    inputs = methods["batch"].draw(rows)
    bias = torch.randn(5)
    expected = methods["batch"].fresh()(*inputs, bias=bias)
    assert_equal(program["batch"](*inputs, nothing=None, bias=bias), expected)


def test_strided_inputs_equal_eager(program, methods) -> None:
    image = torch.randn(4, 4, 3, 2).permute(3, 2, 0, 1)[..., ::1]
    rows = torch.randn(4, 8)[:, ::2].t()[:2]
    module = methods["layouts"].fresh()
    assert not image.is_contiguous()
    assert not image.is_contiguous(memory_format=torch.channels_last)
    assert_equal(program["layouts"](image, rows), module(image, rows))


def test_an_expanded_input_equals_eager(program, methods) -> None:
    x = torch.randn(1).expand(16)
    assert_equal(program["state"](x), methods["state"].fresh()(x))


def test_inputs_that_require_grad_are_taken(program) -> None:
    result = program["counter"](torch.zeros(1, requires_grad=True))
    assert not result.requires_grad


def test_a_result_does_not_change_with_the_state(program) -> None:
    first = program["state"](torch.randn(16))
    copies = [value.clone() for value in first]
    program["state"](torch.randn(16))
    assert_equal(list(first), copies)


def test_writing_a_result_reaches_no_input_weight_or_other_result(program, methods) -> None:
    inputs = methods["batch"].draw()
    bias = torch.ones(5)
    expected = methods["batch"].fresh()(*inputs, bias=bias)
    for name in ("flat", "weight", "view"):
        program["batch"](*inputs, bias=bias, nothing=None)[name].fill_(7.0)
    assert_equal(program["batch"](*inputs, bias=bias, nothing=None), expected)
    first, second, _ = program["batch"](*inputs, bias=bias, nothing=None)["parts"]
    first.fill_(7.0)
    assert torch.equal(second, inputs[0][:, 1:2])


def test_results_of_a_library_that_share_memory_are_copied() -> None:
    state, x = torch.zeros(4), torch.ones(4)
    fresh = torch.zeros(4)
    empty = torch.zeros(0)
    results = owned([state[1:], x, fresh, fresh.view(2, 2), empty, empty], [x, state])
    for place, result in enumerate(results):
        result.fill_(place + 1.0)
    assert not state.any()
    assert x.sum() == 4
    assert [result.sum() for result in results] == [3, 8, 12, 16, 0, 0]
    assert results[2] is fresh


def test_an_input_that_is_returned_is_the_same_object(program, methods) -> None:
    inputs = methods["batch"].draw()
    assert program["batch"](*inputs, bias=torch.ones(5), nothing=None)["input"] is inputs[0]


def test_state_belongs_to_one_loaded_program(program, saved) -> None:
    with backend.load(saved) as other:
        program["counter"](torch.zeros(1))
        assert other["counter"](torch.zeros(1)).item() == 1


def test_calls_from_many_threads_are_counted_once_each(program) -> None:
    counts: list[float] = []
    call = program["counter"]
    threads = [
        threading.Thread(target=lambda: counts.append(call(torch.zeros(1)).item()))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(counts) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_method_describes_what_it_takes_and_gives(program) -> None:
    inputs = {spec.name: str(spec) for spec in program["batch"].inputs}
    assert inputs["x"].startswith("x: float32[s")
    assert inputs["x"].endswith("[0..20], 3]")
    assert inputs["pair"].endswith("[0..40], 2]")
    assert inputs["bias"] == "bias: float32[5]"
    assert "int" in {spec.kind for spec in program["batch"].outputs}


def test_a_closed_method_says_so(saved) -> None:
    program = backend.load(saved)
    method = program["counter"]
    program.close()
    with pytest.raises(backend.InvalidArgument, match="'counter' is closed"):
        method(torch.zeros(1))


def test_an_unknown_method_names_those_that_are_there(program) -> None:
    with pytest.raises(
        backend.InvalidArgument, match=r"no method 'decode'.*batch, branch, counter"
    ):
        program["decode"]
