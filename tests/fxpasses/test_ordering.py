"""Declared order is kept, stable where nothing is declared, and explained where it cannot be."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxpasses import (
    ConflictingPasses,
    MissingRequirement,
    OrderingCycle,
    Pass,
    Pipeline,
    Registry,
    UnknownPass,
    register_pass,
)


def declare(**constraints):
    """Passes a, b, c, d, each with what `constraints` says of it."""
    known = Registry()
    for name in "abcd":
        cls = dataclass(frozen=True)(type(name.upper(), (Pass,), {"__module__": __name__}))
        register_pass(name, into=known, **constraints.get(name, {}))(cls)
    return known


def ordered(listed, **constraints):
    passes = Pipeline.parse(",".join(listed), declare(**constraints)).passes
    return "".join(pass_.name for pass_ in passes)


@pytest.mark.parametrize(
    ("listed", "constraints", "expected"),
    [
        ("dcba", {}, "dcba"),
        ("ab", {"b": {"before": ["a"]}}, "ba"),
        ("abcd", {"c": {"before": ["b"]}}, "acbd"),
        ("abcd", {"a": {"after": ["c"]}}, "bcad"),
        ("abcd", {"a": {"after": ["c"]}, "d": {"before": ["c"]}}, "bdca"),
        ("ab", {"a": {"requires": ["b"]}}, "ba"),
        ("ab", {"a": {"before": ["d"], "after": ["c"]}}, "ab"),
        ("aba", {"a": {"before": ["b"]}}, "aba"),
        ("baa", {"a": {"before": ["b"]}}, "aba"),
        ("aab", {"a": {"after": ["b"]}}, "aba"),
        ("bab", {"a": {"requires": ["b"]}}, "bab"),
        ("aa", {}, "aa"),
        ("aba", {}, "aba"),
    ],
)
def test_order(listed, constraints, expected):
    assert ordered(listed, **constraints) == expected


@given(st.lists(st.sampled_from("abcd"), max_size=6))
def test_order_is_stable_and_settled(listed):
    """Every constraint holds afterwards, and what is in order is not moved again."""
    constraints = {"a": {"before": ["b"]}, "d": {"after": ["c"]}}
    result = ordered(listed, **constraints)
    assert sorted(result) == sorted(listed)
    assert ordered(result, **constraints) == result
    if {"a", "b"} <= set(result):
        assert result.index("a") < result.index("b")
    if {"c", "d"} <= set(result):
        assert result.rindex("c") < result.rindex("d")


def test_a_cycle_prints_its_path_and_who_declared_each_edge():
    with pytest.raises(OrderingCycle) as caught:
        ordered("cab", a={"before": ["b"]}, b={"before": ["c"]}, c={"before": ["a"]})
    message = str(caught.value)
    assert any(path in message for path in ("a -> b -> c -> a", "b -> c -> a -> b", "c -> a -> b"))
    for declared in ("a declares before=b", "b declares before=c", "c declares before=a"):
        assert declared in message


def test_a_cycle_of_two_kinds_of_constraint():
    with pytest.raises(OrderingCycle, match="a requires b") as caught:
        ordered("ab", a={"requires": ["b"], "before": ["b"]})
    assert "a declares before=b" in str(caught.value)


def test_a_missing_requirement_is_named():
    with pytest.raises(MissingRequirement, match="a requires b"):
        ordered("a", a={"requires": ["b"]})


def test_conflicts_are_refused_either_way_round():
    for listed in ("ab", "ba"):
        with pytest.raises(ConflictingPasses, match="a conflicts with b"):
            ordered(listed, a={"conflicts": ["b"]})


def test_a_constraint_on_a_pass_that_nobody_registered():
    with pytest.raises(UnknownPass, match="'zz' \\(named by"):
        ordered("a", a={"before": ["zz"]})


def test_a_constraint_may_use_a_former_name():
    known = declare(a={"aliases": ["old"]}, b={"before": ["old"]})
    assert str(Pipeline.parse("a,b", known)) == "b,a"


def test_a_group_moves_as_one_and_is_ordered_inside():
    known = declare(a={"after": ["c"]}, b={"before": ["d"]})
    assert str(Pipeline.parse("(a,d,b)*,c", known)) == "c,(a,b,d)*"
