"""Every change goes through the editor, which keeps the graph right and counts what happened."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch

from fxpasses import Editor, Pass, RewriteRefused
from tests.fxpasses.programs import (
    assert_equal_to_eager,
    aten,
    calls,
    export,
    named,
    results,
    run,
    trace,
)


@named("test.edit")
@dataclass(frozen=True)
class Edit(Pass):
    """Hands the editor to a test."""

    edit: ClassVar[Callable[[Editor], Any]]

    def run(self, editor):
        self.edit(editor)


def edit(program, change, verify="metadata", **options):
    handed_over = type("Edit", (Edit,), {"edit": staticmethod(change)})()
    return run(handed_over, program, verify=verify, **options)


def double(x):
    return x.cos() * 2


@pytest.fixture
def program(draw):
    return export(double, draw.floats(4, 3))


def only(editor, target):
    (node,) = editor.find(target)
    return node


def multiply_by(value):
    """Replace the product by one with another factor."""

    def change(editor):
        node = only(editor, aten.mul.Tensor)
        with editor.at(node):
            editor.replace(node, editor.call(aten.mul.Tensor, node.args[0], value))

    return change


def test_a_new_node_records_its_value_and_where_it_comes_from(draw):
    class Double(torch.nn.Module):
        def forward(self, x):
            return double(x)

    program = export(Double(), draw.floats(4, 3))
    (old,) = program.graph.find_nodes(op="call_function", target=aten.mul.Tensor)
    (new,) = results(edit(program, multiply_by(3)).program)
    assert new.meta["val"].shape == (4, 3)
    assert (new.meta["stack_trace"], new.meta["nn_module_stack"]) == (
        old.meta["stack_trace"],
        old.meta["nn_module_stack"],
    )
    (source,) = new.meta["from_node"]
    assert (source.name, source.pass_name) == ("mul", "test.edit")
    assert new.name.startswith("mul")


def test_several_origins_are_all_recorded(program):
    def change(editor):
        node, cosine = only(editor, aten.mul.Tensor), only(editor, aten.cos.default)
        with editor.at(node, node, cosine):
            editor.replace(node, editor.call(aten.mul.Tensor, cosine, 3))

    (new,) = results(edit(program, change).program)
    assert [source.name for source in new.meta["from_node"]] == ["mul", "cos"]


def test_a_value_without_tensors_among_its_operands(program):
    def change(editor):
        node = only(editor, aten.mul.Tensor)
        with editor.at(node):
            ones = editor.call(aten.ones.default, [4, 3])
            editor.replace(node, editor.call(aten.mul.Tensor, node.args[0], ones))

    result = edit(program, change).program
    assert_equal_to_eager(result, torch.cos, torch.ones(4, 3))


def test_readers_are_refreshed_as_far_as_they_change(draw):
    def function(x):
        return (x * 2 > 0).logical_not(), x * 2 + 1

    program = export(function, draw.floats(4))
    kept = results(program)[0].meta["val"]
    flag, wide = results(edit(program, widen, verify="structure").program)
    assert wide.meta["val"].dtype is torch.float64
    assert flag.meta["val"] is kept


def widen(editor):
    for node in editor.find(aten.mul.Tensor):
        with editor.at(node):
            wide = editor.call(aten._to_copy.default, node.args[0], dtype=torch.float64)
            editor.replace(node, editor.call(aten.mul.Tensor, wide, 2))


def test_a_change_that_a_reader_does_not_take_is_refused(draw):
    program = export(lambda x: (x * 2).to(torch.float16), draw.floats(4))
    assert calls(program, aten._assert_tensor_metadata.default) == 1
    with pytest.raises(RewriteRefused, match=r"_assert_tensor_metadata\.default does not take"):
        edit(program, widen)


def test_replacing_erases_dead_feeders_that_only_compute(program):
    result = edit(
        program,
        lambda editor: editor.replace(
            only(editor, aten.mul.Tensor), next(iter(editor.region.graph.nodes))
        ),
    )
    assert [node.op for node in result.program.graph.nodes] == ["placeholder", "output"]
    (report,) = result.reports
    assert (report.changed, report.nodes_before, report.nodes_after) == (True, 4, 2)


def test_the_graphs_of_a_dropped_cond_go_with_it(draw, functional):
    """Another cond, which stays, keeps both of its graphs."""

    def two_conds(p, x):
        doubled = torch.cond(p, lambda x: x.sin() * 2, torch.cos, (x,))
        return doubled + torch.cond(p, torch.tanh, torch.exp, (x,))

    def drop_the_first(editor):
        for first in editor.find(torch.ops.higher_order.cond)[:1]:
            (result,) = first.users
            editor.replace(result, first.args[3][0])

    inputs = torch.tensor(True), draw.floats(4)
    program = export(two_conds, *inputs, functional=functional)
    module = edit(program, drop_the_first).program.graph_module
    named = {node.target for node in module.graph.find_nodes(op="get_attr")}
    assert named == {name for name, _ in module.named_children()}
    assert named == {"true_graph_1", "false_graph_1"}


@pytest.mark.parametrize(
    "keep", [lambda x: torch.rand_like(x), lambda x: x.add_(1), lambda x: torch.empty_like(x)]
)
def test_what_draws_or_writes_is_not_dropped(draw, keep):
    program = export(lambda x: keep(x) * 1, draw.floats(4))

    def change(editor):
        node = only(editor, aten.mul.Tensor)
        with editor.at(node):
            editor.replace(node, editor.call(aten.zeros.default, [4]))

    before = len(program.graph.nodes)
    assert len(edit(program, change).program.graph.nodes) == before


def test_a_replaced_write_stays_unless_its_effect_is_kept(draw):
    def function(x):
        return x.add_(1) * 2

    def change(kept):
        def replace(editor):
            node = only(editor, aten.add_.Tensor)
            with editor.at(node):
                new = editor.call(aten.add.Tensor, *node.args)
                if kept:
                    new = editor.call(aten.copy_.default, node.args[0], new)
            editor.replace(node, new, effects_kept=kept)

        return replace

    program = export(function, torch.zeros(3))
    assert calls(edit(program, change(False)).program, aten.add_.Tensor) == 1
    result = edit(program, change(True)).program
    assert calls(result, aten.add_.Tensor) == 0
    assert_equal_to_eager(result, function, draw.floats(3))


def test_a_node_that_is_read_cannot_be_erased(program):
    with pytest.raises(RewriteRefused, match="cos is still read by mul"):
        edit(program, lambda editor: editor.erase(only(editor, aten.cos.default)))


def test_inserting_needs_a_place(program):
    with pytest.raises(RewriteRefused, match=r"with editor\.at\(node\)"):
        edit(program, lambda editor: editor.call(aten.ones.default, [1]))


def test_the_place_is_forgotten_when_an_insertion_fails(program):
    def change(editor):
        node = only(editor, aten.mul.Tensor)
        with pytest.raises(RewriteRefused), editor.at(node):
            editor.call(aten.mm.default, node, 3)
        with pytest.raises(RewriteRefused, match="say where"):
            editor.call(aten.ones.default, [1])

    assert not edit(program, change).changed


def test_an_operator_that_does_not_take_its_operands_is_refused(program):
    with pytest.raises(RewriteRefused, match=r"aten\.mm\.default does not take"):
        edit(program, replacing_by(aten.mm.default))


def replacing_by(target):
    def change(editor):
        node = only(editor, aten.mul.Tensor)
        with editor.at(node):
            editor.replace(node, editor.call(target, node.args[0], node.args[0]))

    return change


def test_a_change_that_would_reach_a_branch_is_refused(draw):
    def function(p, x):
        return torch.cond(p, lambda x: x.cos(), lambda x: x.sin(), (x * 2,))

    def change(editor):
        for node in editor.find(aten.mul.Tensor):
            with editor.at(node):
                editor.replace(node, editor.call(aten.sum.dim_IntList, node.args[0], [0]))

    program = export(function, torch.tensor(True), draw.floats(4, 3))
    with pytest.raises(RewriteRefused, match="would alter what cond gives to its graphs"):
        edit(program, change)


def test_symbolic_sizes_are_kept(draw):
    dynamic = [{0: torch.export.Dim("n", min=2)}]
    program = export(double, draw.floats(4, 3), dynamic=dynamic)
    result = edit(program, multiply_by(2)).program
    assert results(result)[0].meta["val"].shape == results(program)[0].meta["val"].shape
    assert result.range_constraints == program.range_constraints
    assert_equal_to_eager(result, double, draw.floats(9, 3))


def test_a_new_data_dependent_size_is_refused(draw):
    """Saved, the program would name a size that it does not declare."""

    def change(editor):
        with editor.at(only(editor, aten.sum.default)):
            editor.call(aten.nonzero.default, next(iter(editor.region.graph.nodes)))

    with pytest.raises(RewriteRefused, match="finds a size in data"):
        edit(export(lambda x: x.sum() * 2, draw.floats(4)), change)


def test_a_graph_module_may_find_sizes_in_data(draw):
    def change(editor):
        node = only(editor, aten.mul.Tensor)
        with editor.at(node):
            found = editor.call(aten.nonzero.default, next(iter(editor.region.graph.nodes)))
            count = editor.call(aten.sum.default, found)
            editor.replace(node, editor.call(aten.mul.Tensor, node.args[0], count))

    x = draw.floats(4)
    result = edit(trace(lambda x: x.sum() * 2, x), change).program
    assert torch.equal(result(x), x.sum() * x.nonzero().sum())


def test_a_change_that_would_rename_a_size_is_refused(draw):
    def change(editor):
        node = only(editor, aten.relu.default)
        with editor.at(node):
            wide = editor.call(aten._to_copy.default, node.args[0], dtype=torch.float64)
            editor.replace(node, editor.call(aten.relu.default, wide))

    with pytest.raises(RewriteRefused, match="would rename the sizes that nonzero finds in data"):
        edit(export(lambda x: x.relu().nonzero() + 1, draw.floats(4)), change)


def test_a_constant_says_which_pass_it_comes_from(program):
    def change(editor):
        node = only(editor, aten.mul.Tensor)
        with editor.at(node):
            two = editor.constant(torch.tensor(2.0))
            editor.replace(node, editor.call(aten.mul.Tensor, node.args[0], two))

    result = edit(program, change).program
    constant = next(n for n in result.graph.nodes if n.name.startswith("c_lifted"))
    (source,) = constant.meta["from_node"]
    assert (source.pass_name, source.name) == ("test.edit", "mul")


def test_find_keeps_the_order_of_the_graph(draw):
    def note(editor):
        found = editor.find(aten.cos.default, aten.sin.default)
        assert [node.name for node in found] == ["sin", "cos", "sin_1"]

    assert not edit(export(lambda x: x.sin().cos().sin(), draw.floats(4)), note).changed


def test_the_edits_are_what_counts_and_not_what_is_claimed(program):
    def claim(editor):
        editor.passed(only(editor, aten.cos.default), "nothing really")

    result = edit(program, claim)
    assert (result.changed, result.program) == (False, program)
    assert result.reports[0].rewrites == 1


def test_what_is_undone_is_no_change(program):
    def insert_and_erase(editor):
        node = only(editor, aten.mul.Tensor)
        with editor.at(node):
            new = editor.call(aten.neg.default, node.args[0])
        editor.erase(new)

    assert edit(program, insert_and_erase).program is program
