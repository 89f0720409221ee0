"""The text form parses what it prints, and says where it stops making sense."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxpasses import InvalidPipeline
from fxpasses.text import Group, Quoted, Step, is_name, parse, quote


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("", []),
        ("  \n ", []),
        ("a", [Step("a")]),
        (" a , b ", [Step("a"), Step("b")]),
        ("-a,+b", [Step("a", "-"), Step("b", "+")]),
        ("acme.fuse-rope", [Step("acme.fuse-rope")]),
        ("a{}", [Step("a")]),
        ('a{x=1,y=[p,q],z="s t"}', [Step("a", "", {"x": "1", "y": ["p", "q"], "z": "s t"})]),
        ("a{x=[]}", [Step("a", "", {"x": []})]),
        ("(a,b)*", [Group([Step("a"), Step("b")])]),
        ("(a)*4,c,(b)*", [Group([Step("a")], 4), Step("c"), Group([Step("b")])]),
    ],
)
def test_what_is_written_is_read(text, steps):
    assert parse(text) == steps


def test_a_quoted_value_stays_a_string():
    (step,) = parse('a{x="1",y=1}')
    assert isinstance(step.options["x"], Quoted)
    assert not isinstance(step.options["y"], Quoted)


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ("a,", "expected a pass name", 3),
        ("(a,(b)*2)*4", "cannot hold another one", 5),
        ("a{x=[[1]]}", "expected a value", 6),
        ("a,,b", "expected a pass name", 3),
        (",a", "expected a pass name", 1),
        ("a b", "expected ','", 2),
        ("Bad", "'Bad' is not a pass name", 1),
        ("a{x}", "expected '='", 4),
        ("a{x=}", "expected a value", 5),
        ("a{x=1", "expected ','", 6),
        ("a{x=1 y=2}", "expected ','", 6),
        ("a{x=1,x=2}", "option 'x' is given twice", 8),
        ("a{x=[1}", "expected ','", 7),
        ('a{x="b}', "a string has no end", 5),
        ('a{x="\\q"}', "bad escape", 5),
        ("(a", "expected ')'", 3),
        ("(a)", "expected '*' after a group", 4),
        ("(a)*0", "expected '*' or '*ROUNDS'", 6),
        ("a)", "expected ','", 2),
        ("a,Bad", "'Bad' is not a pass name", 3),
        ("a{b=c", "expected ',' or '}'", 6),
        ("a{b=[c", "expected ',' or ']'", 7),
        ('"a"', "expected a pass name", 1),
    ],
)
def test_an_error_gives_its_column(text, problem, column):
    with pytest.raises(InvalidPipeline) as caught:
        parse(text)
    assert problem in str(caught.value)
    assert f"at column {column} of pipeline {text!r}" in str(caught.value)


@given(st.text())
def test_any_string_can_be_quoted(value):
    (step,) = parse(f"a{{x={quote(value)}}}")
    assert step.options["x"] == value


@given(st.text())
def test_no_text_breaks_the_parser(text):
    with contextlib.suppress(InvalidPipeline):
        parse(text)


@pytest.mark.parametrize(
    ("name", "valid"),
    [("a-b", True), ("acme.x_2", True), ("A", False), ("a--b", False), ("a b", False), ("", False)],
)
def test_names(name, valid):
    assert is_name(name) is valid
