"""Which checks on the count of a mask's picks hold for every mask.

Export writes few of the forms that a graph may hold, so the checks are put into an exported
program by hand. The oracle is the program itself, on the mask that picks none and on the one that
picks all: a check goes if and only if it passes on each count in between.
"""

import operator

import pytest
import torch
from torch.export import ExportedProgram

from fxpasses.passes import count_checks
from fxpasses.program import fork
from tests.fxpasses.programs import aten, export, missed, picks, run, writes

PASS = "replace-masked-copy-with-where"
SIZE = 4
COUNTS = range(SIZE + 1)
COMPARISONS = (operator.ge, operator.gt, operator.le, operator.lt)


@pytest.fixture(scope="module")
def plain() -> ExportedProgram:
    def function(out, source, mask):
        out = out.clone()
        out[mask] = source[mask]
        return out

    mask = torch.tensor([True, False, True, False])
    return export(function, torch.full((SIZE,), 7.0), torch.arange(4.0), mask)


def with_check(program: ExportedProgram, write) -> ExportedProgram:
    """A copy of `program` with what `write(graph, count)` puts behind the count."""
    program = fork(program)
    (count,) = program.graph.find_nodes(op="call_function", target=aten.sym_size.int)
    with program.graph.inserting_after(count):
        anchor = program.graph.call_function(operator.add, (count, 0))
    with program.graph.inserting_before(anchor):
        write(program.graph, count)
    program.graph.erase_node(anchor)
    return program


def comparing(compare, bound, mirrored=False):
    def write(graph, count):
        operands = (bound, count) if mirrored else (count, bound)
        check = graph.call_function(compare, operands)
        graph.call_function(aten._assert_scalar.default, (check, "the user's own"))

    return write


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("compare", COMPARISONS)
def test_comparisons_by_every_bound(plain, compare, mirrored):
    for bound in range(-1, SIZE + 2):
        pairs = [(bound, n) if mirrored else (n, bound) for n in COUNTS]
        holds = all(compare(*pair) for pair in pairs)
        program = with_check(plain, comparing(compare, bound, mirrored))
        result = run(PASS, program, verify="metadata")
        assert (writes(result.program), picks(result.program)) == (0, 0 if holds else 1), bound
        if not holds:
            assert "does not hold for every mask" in missed(result)["count_checks"]


@pytest.mark.parametrize("operator_", [aten.sym_constrain_range, aten.sym_constrain_range_for_size])
@pytest.mark.parametrize(
    ("low", "high", "holds"),
    [(None, None, True), (0, SIZE, True), (1, None, False), (None, SIZE - 1, False), (0, 99, True)],
)
def test_ranges(plain, operator_, low, high, holds):
    def write(graph, count):
        graph.call_function(operator_.default, (count,), {"min": low, "max": high})

    result = run(PASS, with_check(plain, write), verify="metadata")
    assert picks(result.program) == (0 if holds else 1)
    assert ("count_checks" in missed(result)) is not holds


def test_a_size_computed_from_the_count_keeps_the_index(plain):
    def write(graph, count):
        twice = graph.call_function(operator.mul, (count, 2))
        graph.call_function(aten._assert_scalar.default, (twice, "never zero"))

    result = run(PASS, with_check(plain, write), verify="metadata")
    assert picks(result.program) == 1
    assert "(mul) reads the count" in missed(result)["count_checks"]


def test_a_comparison_that_decides_something_else_keeps_the_index(plain):
    def write(graph, count):
        some = graph.call_function(operator.ge, (count, 0))
        graph.call_function(torch.sym_not, (some,))

    result = run(PASS, with_check(plain, write), verify="metadata")
    assert picks(result.program) == 1
    assert "decides more than a check" in missed(result)["count_checks"]


def test_a_count_compared_with_itself_is_no_check_that_we_know(plain):
    def write(graph, count):
        same = graph.call_function(operator.ge, (count, count))
        graph.call_function(aten._assert_scalar.default, (same, "odd"))

    assert picks(run(PASS, with_check(plain, write), verify="metadata").program) == 1


def test_one_check_that_may_fail_keeps_the_others(plain):
    program = with_check(plain, comparing(operator.ge, 1))
    before = len(program.graph.find_nodes(op="call_function", target=aten._assert_scalar.default))
    program = run(PASS, program, verify="metadata").program
    after = len(program.graph.find_nodes(op="call_function", target=aten._assert_scalar.default))
    assert before == after == 3


# Each rule, broken: a check that fails in eager is then lost, which is what the tests above see.


def fails_on_an_empty_mask(program) -> bool:
    try:
        program.module()(torch.ones(SIZE), torch.ones(SIZE), torch.zeros(SIZE, dtype=torch.bool))
    except RuntimeError:
        return True
    return False


@pytest.mark.parametrize("compare", [operator.ge, operator.gt])
def test_breaking_a_lower_bound_loses_a_check(plain, monkeypatch, compare):
    program = with_check(plain, comparing(compare, 1))
    assert fails_on_an_empty_mask(run(PASS, program, verify="metadata").program)
    monkeypatch.setitem(count_checks._HOLDS, compare, lambda bound, size: True)
    assert not fails_on_an_empty_mask(run(PASS, program, verify="metadata").program)


@pytest.mark.parametrize(("compare", "bound"), [(operator.le, SIZE), (operator.lt, SIZE + 1)])
def test_breaking_the_mirror_loses_a_check(plain, monkeypatch, compare, bound):
    program = with_check(plain, comparing(compare, bound, mirrored=True))
    assert fails_on_an_empty_mask(run(PASS, program, verify="metadata").program)
    monkeypatch.setitem(count_checks._MIRRORED, compare, compare)
    assert not fails_on_an_empty_mask(run(PASS, program, verify="metadata").program)
