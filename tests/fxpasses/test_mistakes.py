"""Mistakes that a pass author makes, and the error that names each."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from fxpasses import (
    InvalidOption,
    InvalidPass,
    InvalidPipeline,
    Listener,
    ListenerFailed,
    Pass,
    PassFailed,
    Pipeline,
    Registry,
    RewritePass,
    RewriteRefused,
    UnknownPass,
    VerificationFailed,
    register_pass,
)
from fxpasses.patterns import op, var

aten = torch.ops.aten


class Doubles(torch.nn.Module):
    def forward(self, x):
        return x * 2


@pytest.fixture(scope="module")
def program():
    return torch.export.export(Doubles(), (torch.randn(3),))


def run(program, rewrite, pattern=None, **options):
    """A run of one rewrite pass whose rewrite is `rewrite(node, match, editor)`."""
    looks_for = pattern or op(aten.mul.Tensor, var("x"), 2)
    known = Registry()

    @register_pass("test.mistaken", into=known)
    @dataclass(frozen=True)
    class Mistaken(RewritePass):
        """A pass with one mistake."""

        pattern = looks_for

        def rewrite(self, node, match, editor):
            return rewrite(node, match, editor)

    return Pipeline.parse("test.mistaken", known).run(program, **options)


def replace_by(editor, node, target, *args):
    with editor.at(node):
        editor.replace(node, editor.call(target, *args))
    return "replaced"


@pytest.mark.parametrize(
    ("wrong", "fact"),
    [
        (lambda: op(aten.mul, var("x"), 2), "stands for several operators"),
        (lambda: op("aten.mul.Tensor", var("x")), "is no operator"),
        (lambda: op(torch.mul, var("x"), 2), "is no operator"),
        (lambda: op(aten.mul.Tensor, var("x"), 2, 3), "takes 2 operands, the pattern has 3"),
        (lambda: op(aten.sum.default, var("x"), keepdims=True), "has no operand 'keepdims'"),
    ],
)
def test_a_pattern_that_can_never_match(wrong, fact):
    with pytest.raises(InvalidPass, match=fact):
        wrong()


def test_a_rewrite_that_changes_nothing(program):
    with pytest.raises(InvalidPass, match=r"mistaken\.rewrite of mul changed nothing"):
        run(program, lambda node, match, editor: "nothing, in truth")


def test_a_rewrite_that_does_not_say_what_it_did(program):
    def silent(node, match, editor):
        replace_by(editor, node, aten.add.Tensor, match["x"], match["x"])

    with pytest.raises(InvalidPass, match="returned None"):
        run(program, silent)


@pytest.mark.parametrize("target", [aten.add, torch.add])
def test_inserting_what_is_no_operator(program, target):
    with pytest.raises(InvalidPass, match="operator"):
        run(program, lambda node, match, editor: replace_by(editor, node, target, match["x"], 1))


def test_another_shape_of_an_output(program):
    def unsqueeze(node, match, editor):
        return replace_by(editor, node, aten.unsqueeze.default, match["x"], 0)

    with pytest.raises(VerificationFailed, match=r"at output 0: returns .* it returned"):
        run(program, unsqueeze)


def test_an_error_in_a_pass_names_pass_and_node(program):
    with pytest.raises(PassFailed, match=r"test.mistaken failed at mul: KeyError: 'y'") as error:
        run(program, lambda node, match, editor: match["y"])
    assert isinstance(error.value.__cause__, KeyError)


def test_a_rewrite_pass_that_looks_for_nothing():
    with pytest.raises(InvalidPass, match="give it a pattern, or targets"):

        @register_pass("test.idle", into=Registry())
        @dataclass(frozen=True)
        class Idle(RewritePass):
            """Neither."""


def test_targets_that_are_no_tuple():
    with pytest.raises(InvalidPass, match="no tuple of operators"):

        @register_pass("test.bare", into=Registry())
        @dataclass(frozen=True)
        class Bare(Pass):
            """One target, without parentheses."""

            targets = aten.mul.Tensor


def test_a_constraint_that_is_a_string():
    with pytest.raises(InvalidPass, match="after='default' is a name; give a list"):
        register_pass("test.string", after="default", into=Registry())(Pass)


def test_an_unknown_constraint_names_who_declared_it():
    known = Registry()

    @register_pass("test.early", before=["test.lost"], into=known)
    @dataclass(frozen=True)
    class Early(Pass):
        """Wants to come before a pass that nobody knows."""

    with pytest.raises(UnknownPass, match=r"'test.lost' \(named by test.early\)"):
        Pipeline.parse("test.early", known)


def test_text_where_passes_belong():
    with pytest.raises(InvalidPipeline, match=r"Pipeline\.parse reads it"):
        Pipeline("default")


def test_a_group_in_a_group():
    with pytest.raises(InvalidPipeline, match="cannot hold another"):
        Pipeline.parse("((default)*2,default)*3")


def test_a_pipeline_is_taken_out_by_its_name():
    assert str(Pipeline.parse("default,-default")) == ""


@pytest.mark.parametrize("text", ["(" * 9000, "a{b=" + "[" * 9000, "(a)*00", "(a)*" + "9" * 5000])
def test_hostile_text_is_refused_with_its_column(text):
    with pytest.raises(InvalidPipeline, match="at column"):
        Pipeline.parse(text)


@dataclass(frozen=True)
class Nameless(Pass):
    """A pass that nobody registered."""


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        (Nameless(), "Nameless has no name: put @register_pass"),
        (Nameless, "is no pass: Pipeline takes instances"),
        ("test.named", "'test.named' is no pass"),
    ],
)
def test_what_no_pipeline_can_hold(listed, message):
    with pytest.raises(InvalidPass, match=message):
        Pipeline([listed])


def test_a_pipeline_is_no_text():
    with pytest.raises(InvalidPipeline, match="is no text"):
        Pipeline.parse(Pipeline.parse("default"))


def test_inputs_that_are_one_tensor(program):
    with pytest.raises(InvalidOption, match=r"give a tuple of inputs: \(x,\)"):
        Pipeline.parse("default").run(program, verify="numeric", inputs=torch.ones(3))


@pytest.mark.parametrize("kind", [list[int], dict, tuple[int, str], int | str, Any])
def test_an_option_that_has_no_text_form(kind):
    fields = {"__annotations__": {"sizes": kind}, "sizes": None}
    with pytest.raises(InvalidPass, match=r"Sized cannot have the option sizes: .*tuple\[TYPE"):
        register_pass("test.sized", into=Registry())(
            dataclass(frozen=True)(type("Sized", (Pass,), fields))
        )


def test_a_refused_change_names_pass_and_node(program):
    def of_no_operands(node, match, editor):
        with editor.at(node):
            editor.call(aten.add.Tensor)

    with pytest.raises(RewriteRefused, match=r"^test.mistaken at mul: aten.add.Tensor does not"):
        run(program, of_no_operands)


def test_a_listener_that_raises_is_named(program):
    class Broken(Listener):
        def before(self, pass_, region):
            raise ValueError("no disk")

    with pytest.raises(ListenerFailed, match="listener Broken failed at 'before': ValueError: no"):
        run(program, lambda node, match, editor: None, listeners=[Broken()])
