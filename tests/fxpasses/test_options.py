"""A pass's fields are its options: typed, checked, printed, and read back."""

import math
from dataclasses import dataclass, field
from typing import Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._ops import OpOverload

from fxpasses import InvalidOption, Pass, Pipeline, Registry, register_pass

aten = torch.ops.aten
known = Registry()


@register_pass("test.options", into=known)
@dataclass(frozen=True)
class Options(Pass):
    """A pass with an option of each kind."""

    flag: bool = False
    limit: int = 4
    scale: float = 1.0
    note: str = ""
    maybe: int | None = None
    label: str | None = None
    mode: Literal["fast", "none", "a b"] = "fast"
    only: tuple[OpOverload, ...] = ()
    sizes: tuple[int, ...] = (1, 2)
    names: tuple[str, ...] = ()
    floors: tuple[float, ...] = field(default_factory=tuple)


@register_pass("test.required", into=known)
@dataclass(frozen=True)
class Required(Pass):
    """A pass with an option that must be given."""

    limit: int


def build(text):
    (pass_,) = Pipeline.parse(text, known).passes
    return pass_


anything = st.builds(
    Options,
    flag=st.booleans(),
    limit=st.integers(),
    scale=st.floats(allow_nan=False),
    note=st.text(),
    maybe=st.none() | st.integers(),
    label=st.none() | st.text() | st.sampled_from(["none", "true", "1", "a,b", 'a"b', "{}", "\n"]),
    mode=st.sampled_from(["fast", "none", "a b"]),
    only=st.lists(st.sampled_from([aten.add.Tensor, aten.mul.Tensor, aten.relu.default])).map(
        tuple
    ),
    sizes=st.lists(st.integers()).map(tuple),
    names=st.lists(st.text()).map(tuple),
    floors=st.lists(st.floats(allow_nan=False)).map(tuple),
)


@given(st.lists(anything, max_size=3))
def test_any_pipeline_parses_back(passes):
    pipeline = Pipeline(passes, known)
    again = Pipeline.parse(str(pipeline), known)
    assert again == pipeline
    assert [repr(p) for p in again.passes] == [repr(p) for p in pipeline.passes]
    assert (str(again), hash(again)) == (str(pipeline), hash(pipeline))


def test_not_a_number_parses_back():
    assert math.isnan(build(str(Options(scale=math.nan))).scale)


def test_defaults_are_not_printed():
    assert str(Options()) == "test.options"
    assert str(Options(limit=8, flag=True)) == "test.options{flag=true,limit=8}"
    assert str(Required(4)) == "test.required{limit=4}"


def test_operators_are_named():
    pass_ = build("test.options{only=[aten.add.Tensor,aten.relu.default]}")
    assert pass_.only == (aten.add.Tensor, aten.relu.default)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ("limit=many", "test.options{limit}: expected int, got 'many'"),
        ("limit=1.5", "expected int"),
        ('limit="4"', "expected int"),
        ("limit=[4]", "expected int, got a list"),
        ("flag=yes", "test.options{flag}: expected bool, got 'yes'"),
        ("flag=1", "expected bool"),
        ("scale=big", "expected float"),
        ("mode=slow", "got 'slow'"),
        ("sizes=3", "got '3'"),
        ("sizes=[1,x]", "expected int, got 'x'"),
        ("only=[aten.add]", "got 'aten.add'"),
        ("only=[aten.nothing.default]", "got 'aten.nothing.default'"),
        ("maybe=x", "expected int, got 'x'"),
        ("limt=3", "pass 'test.options' has no option 'limt'; it has: flag, limit"),
    ],
)
def test_a_wrong_value_is_refused(given_, message):
    with pytest.raises(InvalidOption) as caught:
        build(f"test.options{{{given_}}}")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"flag": 1},
        {"limit": True},
        {"limit": 4.0},
        {"scale": 1},
        {"note": 3},
        {"maybe": "x"},
        {"mode": "slow"},
        {"sizes": [1]},
        {"sizes": (1, "2")},
        {"only": (torch.add,)},
    ],
    ids=str,
)
def test_a_wrong_field_is_refused_in_python_too(wrong):
    (key,) = wrong
    with pytest.raises(InvalidOption, match=f"test.options{{{key}}}: expected"):
        Options(**wrong)


def test_a_missing_option_is_named():
    with pytest.raises(InvalidOption, match=r"'test\.required' needs option 'limit'"):
        build("test.required")


def test_negative_zero_is_no_default():
    @register_pass("test.signed", into=Registry())
    @dataclass(frozen=True)
    class Signed(Pass):
        """Has a zero."""

        shift: float = 0.0

    assert str(Signed(-0.0)) == "test.signed{shift=-0.0}"
    assert str(Signed(0.0)) == "test.signed"


def test_a_pass_with_a_required_option_is_taken_out_by_its_name():
    assert str(Pipeline.parse("test.required{limit=3},-test.required", known)) == ""
