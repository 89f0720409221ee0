"""Checks after a pass find what the pass did wrong, and name pass, region and node."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch

from fxpasses import Editor, Pass, VerificationFailed
from fxpasses.verify import LEVELS, rank, same_bits
from tests.fxpasses.programs import aten, export, named, run, trace


@named("test.damage")
@dataclass(frozen=True)
class Damage(Pass):
    """Does to the region at `path` what a test says."""

    damage: ClassVar[Callable[[Editor], Any]]
    path: str = ""

    def run(self, editor):
        if editor.region.path == self.path:
            self.damage(editor)


def doing(damage, path=""):
    return type("Damage", (Damage,), {"damage": staticmethod(damage)})(path)


def failure(program, damage, verify="metadata", path="", **options) -> VerificationFailed:
    with pytest.raises(VerificationFailed) as caught:
        run(doing(damage, path), program, verify=verify, **options)
    assert (caught.value.pass_name, caught.value.region) == ("test.damage", path)
    assert str(caught.value).startswith("after test.damage")
    return caught.value


def accepted(program, damage, verify):
    return run(doing(damage), program, verify=verify).program


def node(editor, target):
    (found,) = editor.find(target)
    return found


def replace_product(*operands, target=aten.mul.Tensor):
    def damage(editor):
        old = node(editor, aten.mul.Tensor)
        with editor.at(old):
            editor.replace(old, editor.call(target, old.args[0], *operands))

    return damage


@pytest.fixture
def program(draw):
    return export(lambda x: (x * 1).cos(), draw.floats(4))


def test_levels_include_those_before():
    assert [rank(level) for level in LEVELS] == [0, 1, 2, 3]


# Behind the editor's back.


def change_constant(editor):
    product = node(editor, aten.mul.Tensor)
    product.args = (product.args[0], 2)


def change_target(editor):
    node(editor, aten.mul.Tensor).target = aten.add.Tensor


def insert(editor):
    product = node(editor, aten.mul.Tensor)
    with editor.region.graph.inserting_after(product):
        editor.region.graph.call_function(aten.neg.default, (product,))


def change_value(editor):
    node(editor, aten.mul.Tensor).meta["val"] = None


@pytest.mark.parametrize("damage", [change_constant, change_target, insert, change_value])
@pytest.mark.parametrize("verify", ["structure", "metadata"])
def test_a_change_behind_the_editors_back(program, damage, verify):
    error = failure(program, damage, verify)
    assert error.detail == "the graph changed behind the editor's back"
    assert error.node in ("mul", "neg_default")


def test_an_erased_node_behind_the_editors_back(draw):
    program = export(lambda x: (x.add_(1), x * 2)[1], draw.floats(4))

    def erase(editor):
        (add,) = editor.find(aten.add_.Tensor)
        add.replace_all_uses_with(add.args[0])
        editor.region.graph.erase_node(add)

    assert "behind the editor's back" in failure(program, erase, "structure").detail


def test_off_checks_nothing(program):
    accepted(program, change_constant, "off")


# Structure.


def use_before_definition(editor):
    replace_product(3)(editor)
    product, cosine = node(editor, aten.mul.Tensor), node(editor, aten.cos.default)
    cosine.append(product)


def test_a_use_before_its_definition(program):
    assert (
        "used before it has been defined"
        in failure(program, use_before_definition, "structure").detail
    )
    accepted(program, use_before_definition, "off")


def return_twice(editor):
    replace_product(1)(editor)
    output = editor.region.graph.output_node()
    output.args = ((*output.args[0], *output.args[0]),)


def take_one_more(editor):
    replace_product(1)(editor)
    first = next(iter(editor.region.graph.nodes))
    with editor.region.graph.inserting_after(first):
        editor.region.graph.placeholder("extra").meta["val"] = first.meta["val"]


def test_an_output_that_the_signature_does_not_have(program):
    error = failure(program, return_twice, "structure")
    assert (error.node, error.detail) == ("output", "the graph returns 2 values, the signature 1")


def test_an_input_that_the_signature_does_not_have(program):
    error = failure(program, take_one_more, "structure")
    assert "the graph takes ['inputs_0', 'extra'], the signature says ['inputs_0']" in error.detail


# Metadata.


def stale_reader(editor):
    """The new product is right, its reader keeps the value of the old one."""
    product = node(editor, aten.mul.Tensor)
    with editor.at(product):
        wide = editor.call(aten._to_copy.default, product.args[0], dtype=torch.float64)
    product.replace_input_with(product.args[0], wide)


def test_a_stale_value(program):
    error = failure(program, stale_reader, "metadata")
    assert error.node == "mul"
    assert "records" in error.detail
    assert "computes (torch.float64" in error.detail
    accepted(program, stale_reader, "structure")


def stale_reader_of_a_new_value(editor):
    """The product is another size, and the value that the cosine records is not."""
    product = node(editor, aten.mul.Tensor)
    with editor.at(product):
        new = editor.call(aten.cat.default, [product.args[0], product.args[0]])
    node(editor, aten.cos.default).replace_input_with(product, new)


def test_a_reader_of_another_size(program):
    assert failure(program, stale_reader_of_a_new_value).node == "cos"


def test_an_operator_that_cannot_run_on_what_it_reads(program):
    def damage(editor):
        product = node(editor, aten.mul.Tensor)
        with editor.at(product):
            new = editor.call(aten.neg.default, product.args[0])
        new.target = aten.mm.default
        new.args = (product.args[0], product.args[0])

    assert "mm.default fails on its operands" in failure(program, damage).detail


def test_other_strides_are_another_value(draw):
    program = export(lambda x: x * 1, draw.floats(3, 4))

    def damage(editor):
        replace_product(2)(editor)
        product = node(editor, aten.mul.Tensor)
        product.meta["val"] = product.meta["val"].t().contiguous().t()

    assert "records" in failure(program, damage).detail


def test_a_size_that_depends_on_data_is_compared_by_place(draw):
    """Each evaluation names a new symbol; that alone is no difference."""
    program = export(lambda x: x[x > 0] * 1, draw.floats(4))
    accepted(program, replace_product(2), "metadata")


def test_a_wrong_value_in_a_branch_names_the_region(draw):
    def function(p, x):
        return torch.cond(p, lambda x: (x * 1).cos(), torch.sin, (x,))

    program = export(function, torch.tensor(True), draw.floats(4))
    error = failure(program, stale_reader, path="true_graph_0")
    assert "in true_graph_0 at mul" in str(error)


# Numbers.


def test_a_wrong_result(program):
    error = failure(program, replace_product(2), "numeric")
    assert error.node == "output 0"
    assert error.detail.startswith("call 0 differs by ")
    accepted(program, replace_product(2), "metadata")


def test_a_right_result(program):
    accepted(program, replace_product(1.0), "numeric")
    accepted(program, replace_product(1, target=aten.div.Tensor), "numeric")


class Counter(torch.nn.Module):
    """Adds to a buffer and returns what does not depend on it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count.add_(x[:1] * 1)
        return x + 1


@pytest.mark.parametrize("functional", [False, True])
def test_a_wrong_buffer(draw, functional):
    program = export(Counter(), draw.floats(3), functional=functional)
    assert failure(program, replace_product(2), "numeric").node.endswith(" count")


def test_a_wrong_input(draw):
    program = export(lambda x: (x.add_(x * 1), x.cos())[1], torch.zeros(3))
    inputs = (torch.full((3,), 1e30),)
    error = failure(program, replace_product(2), "numeric", inputs=inputs)
    assert error.node in ("output 0", "input 0")


def test_a_result_that_is_wrong_from_the_second_call_on(draw):
    class Warm(Counter):
        def forward(self, x):
            result = x * self.count
            self.count.add_(1)
            return result

    def damage(editor):
        product = node(editor, aten.mul.Tensor)
        with editor.at(product):
            editor.replace(product, editor.call(aten.zeros_like.default, product.args[0]))

    program = export(Warm(), torch.ones(3))
    assert failure(program, damage, "numeric").detail.startswith("call 1 differs")


def test_random_programs_draw_the_same_on_both_sides(draw):
    program = export(lambda x: x * 1 + torch.rand_like(x), draw.floats(4))
    accepted(program, replace_product(1.0), "numeric")


def test_the_users_generator_is_left_alone(program):
    before = torch.get_rng_state()
    accepted(program, replace_product(1.0), "numeric")
    with pytest.raises(VerificationFailed):
        accepted(program, replace_product(2), "numeric")
    assert torch.equal(before, torch.get_rng_state())


def test_other_metadata_are_shown(draw):
    program = export(lambda x: x * 1, draw.floats(3, 4))
    error = failure(program, replace_product(target=aten.t.default), "numeric")
    assert "torch.float32" in error.detail


def test_the_inputs_of_a_call_may_be_given(draw):
    program = export(lambda x: (x * 1).clamp(max=5), torch.full((3,), 9.0))
    accepted(program, replace_product(2), "numeric")
    failure(program, replace_product(2), "numeric", inputs=(torch.ones(3),))


def test_a_graph_module(draw):
    module, inputs = trace(lambda x: x * 1, draw.floats(3)), (draw.floats(3),)
    failure(module, replace_product(2), "numeric", inputs=inputs)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (torch.tensor([1.0]), torch.tensor([1.0]), True),
        (torch.tensor([1.0]), torch.tensor([1.0], dtype=torch.float64), False),
        (torch.tensor([0.0]), torch.tensor([-0.0]), False),
        (torch.tensor([NAN, INF]), torch.tensor([-NAN, INF]), True),
        (torch.tensor([NAN]), torch.tensor([0.0]), False),
        (torch.tensor([1]), torch.tensor([2]), False),
        (torch.tensor([True]), torch.tensor([False]), False),
        (torch.tensor([1 + 2j]), torch.tensor([1 + 2j]), True),
        (torch.tensor([1 + 2j]), torch.tensor([1 - 2j]), False),
        (torch.tensor([1 + 2j]).conj(), torch.tensor([1 - 2j]), True),
        (torch.zeros(2, 3), torch.zeros(3, 2).t(), False),
        (torch.zeros(2, 1), torch.zeros(1, 2).t(), True),
        (torch.zeros(0), torch.zeros(0), True),
        (torch.zeros(0), torch.zeros(0, 1), False),
        (torch.ones(2).to(torch.float8_e4m3fn), torch.ones(2).to(torch.float8_e4m3fn), True),
        (torch.ones(2).to(torch.float8_e4m3fn), torch.zeros(2).to(torch.float8_e4m3fn), False),
        (torch.tensor(5e-324, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64), False),
        (1, 1, True),
        (1, 1.0, False),
        (1, True, False),
        (NAN, NAN, True),
        (None, None, True),
        ("a", "b", False),
        (torch.tensor(1), 1, False),
    ],
)
def test_same_bits(left, right, same):
    assert same_bits(left, right) is same
    assert same_bits(right, left) is same


def two_draws(x):
    return torch.rand(2), torch.rand(2) * 2, x.relu()


def test_a_node_that_moved_behind_the_editors_back(draw):
    """Two draws in the other order give other numbers, with the same nodes."""

    def swap(editor):
        first, second = editor.find(aten.rand.default)
        first.prepend(second)

    found = failure(export(two_draws, draw.floats(2)), swap, verify="structure")
    assert "behind the editor's back" in found.detail


def test_a_graph_inside_that_changed_behind_the_editors_back(draw):
    def scale_branch(editor):
        branch = editor.region.module.true_graph_0
        (product,) = branch.graph.find_nodes(op="call_function", target=aten.mul.Tensor)
        product.args = (product.args[0], 3)

    program = export(
        lambda x: torch.cond(x.sum() > 0, lambda t: t * 2, lambda t: t - 1, (x,)), draw.floats(2)
    )
    found = failure(program, scale_branch, verify="structure")
    assert (found.node, "behind" in found.detail) == ("true_graph_0", True)


def before_the_write(editor):
    """Compute y * 1 before x is written: as good as after it, where y does not share x's memory."""
    (product,) = editor.find(aten.mul.Tensor)
    (write,) = editor.find(aten.add_.Tensor)
    with editor.at(write):
        early = editor.call(aten.mul.Tensor, *product.args)
    editor.replace(product, early)


def test_inputs_that_share_memory_still_do(draw):
    def function(x, y):
        x.add_(1)
        return y * 1

    x = draw.floats(2)
    program = export(function, x, draw.floats(2))
    run(doing(before_the_write), program, inputs=(x, draw.floats(2)))
    assert failure(program, before_the_write, verify="numeric", inputs=(x, x)).node == "output 0"


def test_a_result_that_changes_with_the_next_call(draw):
    """Returned as it is, a buffer is right until it is written again."""

    def return_buffer(editor):
        (node,) = editor.find(aten.clone.default)
        editor.replace(node, node.args[0])

    class Total(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(2))

        def forward(self, x):
            self.total.add_(x)
            return self.total.clone()

    found = failure(export(Total(), draw.floats(2)), return_buffer, verify="numeric")
    assert (found.node, "differs after call" in found.detail) == ("output 0", True)


def test_a_program_that_does_not_run_any_more(draw):
    def take_the_fifth(editor):
        (node,) = editor.find(aten.index.Tensor)
        with editor.at(node):
            five = editor.call(aten.full_like.default, node.args[1][0], 5)
            editor.replace(node, editor.call(aten.index.Tensor, node.args[0], [five]))

    program = export(lambda x, i: x[i], draw.floats(3), torch.tensor([0, 1]))
    found = failure(program, take_the_fifth, verify="numeric")
    assert found.detail.startswith("does not run any more: IndexError")


def test_sparse_results_are_compared(draw):
    program = trace(lambda x: x.to_sparse(), draw.floats(3))
    result = run(doing(lambda editor: None), program, inputs=(draw.floats(3),))
    assert not result.changed
    assert same_bits(torch.eye(2).to_sparse(), torch.eye(2).to_sparse())
    assert not same_bits(torch.eye(2).to_sparse(), (2 * torch.eye(2)).to_sparse())


def test_keyword_inputs_alone_are_used(draw):
    class Magnitude(torch.nn.Module):
        def forward(self, *, x):
            return x.abs()

    def drop(editor):
        (node,) = editor.find(aten.abs.default)
        with editor.at(node):
            editor.replace(node, editor.call(aten.clone.default, node.args[0]))

    program = torch.export.export(Magnitude(), (), {"x": torch.ones(2)})
    assert failure(program, drop, verify="numeric", kwargs={"x": -torch.ones(2)})


def test_the_diff_of_a_pass_that_counts_no_rewrites(draw):
    def negate(editor):
        (node,) = editor.find(aten.mul.Tensor)
        with editor.at(node):
            editor.replace(node, editor.call(aten.neg.default, node.args[0]))

    diff = failure(export(lambda x: x * 2, draw.floats(3)), negate, verify="numeric").diff
    assert "-" in diff
    assert "aten.neg" in diff
