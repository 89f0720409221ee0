"""A pipeline's text, and what a run promises: the argument stays, the result works."""

import copy
import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
import torch

from fxpasses import (
    InvalidOption,
    InvalidPipeline,
    InvalidProgram,
    Listener,
    Pass,
    PassError,
    Pipeline,
    Registry,
    RewriteRefused,
    UnknownPass,
    register_pass,
    registry,
)
from tests.fxpasses.programs import (
    assert_equal_to_eager,
    aten,
    export,
    missed,
    named,
    picks,
    run,
    trace,
    writes,
)

CUDA = "replace-integer-floor-division,move-cond-predicate-to-host"
MASKS = "replace-masked-fill-with-where,replace-masked-copy-with-where"
REST = registry.pipelines["default"].removeprefix("remove-async-asserts,")


def copy_picks(out, source, mask):
    out = out.clone()
    out[mask] = source[mask]
    return out


def copy_here_and_in_a_branch(p, out, source, mask):
    inner = torch.cond(p, copy_picks, lambda o, s, m: o * 2, (out, source, mask))
    return copy_picks(out, source, mask) + inner


def checked(x):
    torch._assert_async((x < 99).all(), "small")
    return x * 2


@pytest.fixture
def masked(draw, functional):
    return export(copy_picks, draw.floats(5), draw.floats(5), draw.mask(5), functional=functional)


@named("test.copy-input")
@dataclass(frozen=True)
class ReturnInput(Pass):
    """Return x in place of x * 1."""

    def run(self, editor):
        for node in editor.find(aten.mul.Tensor):
            if node.args[1] == 1:
                editor.replace(node, node.args[0])
                editor.passed(node, "dropped")


@named("test.count")
@dataclass(frozen=True)
class Count(Pass):
    """Notes the regions that it sees."""

    def run(self, editor):
        editor.missed(next(iter(editor.region.graph.nodes)), "", "seen")


# Text.


def test_names_expand_and_print():
    pipeline = Pipeline.parse("default")
    assert str(pipeline) == registry.pipelines["default"] == f"remove-async-asserts,{REST}"
    assert Pipeline.parse(str(pipeline)) == pipeline
    assert repr(pipeline) == f"Pipeline.parse('{pipeline}')"


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("", ""),
        ("default,-remove-async-asserts", REST),
        ("-remove-async-asserts", None),
        ("remove-async-asserts,default,-remove-async-asserts", REST),
        ("+remove-async-asserts", "remove-async-asserts"),
        ("cpu", f"remove-async-asserts,{REST}"),
        ("cuda", f"remove-async-asserts,{REST},{CUDA}"),
        ("replace-masked-copy-with-where,replace-masked-fill-with-where", MASKS),
    ],
)
def test_edits_of_named_pipelines(text, expanded):
    if expanded is None:
        with pytest.raises(InvalidPipeline, match=r"removes nothing: .* is not listed before it"):
            Pipeline.parse(text)
    else:
        assert str(Pipeline.parse(text)) == expanded


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("defualt", UnknownPass, "unknown pass 'defualt'; did you mean 'default'"),
        ("-remove-async-assert", UnknownPass, "did you mean 'remove-async-asserts'"),
        ("remove-async-asserts{x=1}", InvalidOption, "has no option 'x'; it has: none"),
        ("default{x=1}", InvalidPipeline, "default takes no options"),
        ("default,-remove-async-asserts{x=1}", InvalidPipeline, "takes no options"),
        ("default,,", InvalidPipeline, "expected a pass name at column 9"),
    ],
)
def test_errors_name_the_place_or_the_nearest_name(text, error, message):
    with pytest.raises(error, match=message) as caught:
        Pipeline.parse(text)
    assert isinstance(caught.value, PassError)


def test_a_pipeline_that_names_itself_is_refused():
    known = Registry()
    known.add_pipeline("a", "b")
    known.add_pipeline("b", "a")
    with pytest.raises(InvalidPipeline, match="a -> b -> a"):
        Pipeline.parse("a", known)


def test_equal_pipelines_are_one_key():
    assert len({Pipeline.parse("default"), Pipeline.parse("cpu"), Pipeline.parse("")}) == 2


# The argument stays as it was.


def test_the_program_handed_in_is_not_touched(draw, functional):
    inputs = torch.tensor(True), draw.floats(5), draw.floats(5), draw.mask(5)
    program = export(copy_here_and_in_a_branch, *inputs, functional=functional)
    before = program.graph_module.print_readable(False), str(program.graph_signature)
    result = run("default", program)
    assert (program.graph_module.print_readable(False), str(program.graph_signature)) == before
    assert writes(program) == 2
    assert writes(result.program) == picks(result.program) == 0
    assert_equal_to_eager(program, copy_here_and_in_a_branch, *inputs)
    assert_equal_to_eager(result.program, copy_here_and_in_a_branch, *inputs)


def test_two_runs_of_one_program_do_not_meet(masked):
    one, two = run("default", masked).program, run("default", masked).program
    assert one is not two
    assert str(one.graph) == str(two.graph)


def test_nothing_to_do_gives_the_same_object(draw):
    program = export(lambda x: x + 1, draw.floats(3))
    result = run("default", program)
    assert result.program is program
    assert not result.changed
    assert result.remarks == []


def test_nothing_done_gives_the_same_object(draw):
    program = export(lambda x, m: aten.index_put(x, [m], x[m], True), draw.floats(3), draw.mask(3))
    result = run("default", program)
    assert result.program is program
    assert "accumulate" in missed(result)


def test_a_second_run_finds_nothing(masked):
    once = run("default", masked).program
    assert run("default", once).program is once


def test_weights_are_shared_and_state_is_not_lost(draw):
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x):
            self.count.add_(1)
            x = x.clone()
            x[x > 0] = 7.0
            return self.linear(x) + self.count

    layer = Layer().requires_grad_(False)
    eager = copy.deepcopy(layer)
    program = export(layer, draw.floats(2, 3), functional=True)
    result = run("default", program).program
    assert result.state_dict["linear.weight"] is program.state_dict["linear.weight"]
    module, x = result.module(), draw.floats(2, 3)
    assert all(torch.equal(module(x), eager(x)) for _ in range(3))


# The result is a program like any other.


def test_the_result_can_be_validated_saved_loaded_and_lowered_further(masked, draw):
    program = run("default", masked).program
    program.validate()
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file)
    for again in (program, loaded, program.run_decompositions({}), loaded.run_decompositions()):
        assert_equal_to_eager(again, copy_picks, draw.floats(5), draw.floats(5), draw.mask(5))
        assert picks(again) == 0


def test_the_signature_follows_a_new_output(masked):
    program = run("default", masked).program
    (spec,) = program.graph_signature.output_specs
    (output,) = program.graph.output_node().args[0]
    assert spec.arg.name == output.name
    assert output.target in (aten.where.self, aten.copy_.default)


def test_the_signature_follows_a_written_buffer(draw):
    class Store(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.full((5,), 7.0))

        def forward(self, x, mask):
            self.kept[mask] = x[mask]
            return x * 2

    program = export(Store(), draw.floats(5), draw.mask(5), functional=True)
    result = run("default", program).program
    assert list(result.graph_signature.buffers_to_mutate) == ["where"]
    assert list(program.graph_signature.buffers_to_mutate) == ["index_put"]
    result.validate()


def test_an_output_may_become_an_input(draw):
    program = export(lambda x: x * 1, draw.floats(3))
    result = run(ReturnInput(), program).program
    assert [spec.arg.name for spec in result.graph_signature.output_specs] == ["inputs_0"]
    result.validate()
    assert_equal_to_eager(result, lambda x: x * 1, draw.floats(3))


def test_a_graph_module_is_a_program_too(draw):
    inputs = draw.floats(5), draw.floats(5), draw.mask(5)
    module = trace(copy_picks, *inputs)
    result = run("default", module, inputs=inputs)
    assert result.program is not module
    assert (writes(module), writes(result.program)) == (1, 0)
    assert torch.equal(result.program(*inputs), copy_picks(*inputs))


def test_a_symbolic_trace_without_metadata_is_left_alone():
    module = torch.fx.symbolic_trace(lambda x: x + 1)
    assert run("default", module, verify="metadata").program is module


def test_what_is_no_program_is_refused():
    with pytest.raises(InvalidProgram, match=r"got Linear; torch\.export\.export"):
        run("default", torch.nn.Linear(1, 1), verify="off")


# Reports.


def test_one_report_for_each_pass_and_region(draw):
    inputs = torch.tensor(True), draw.floats(5), draw.floats(5), draw.mask(5)
    result = run("default", export(copy_here_and_in_a_branch, *inputs))
    assert [(r.name, r.region) for r in result.reports] == [
        (name, region)
        for name in registry.pipelines["default"].split(",")
        for region in ["", "true_graph_0", "false_graph_0"]
    ]
    changed = [report for report in result.reports if report.changed]
    assert [report.region for report in changed] == ["", "true_graph_0"]
    assert all(report.rewrites == 1 for report in changed)
    sizes = {report.region: report.nodes_after - report.nodes_before for report in changed}
    assert sizes == {"": 0, "true_graph_0": -5}
    assert all(report.seconds >= 0 for report in result.reports)


def test_a_region_that_a_rewrite_drops_is_not_visited(draw):
    @named("test.drop-cond")
    @dataclass(frozen=True)
    class DropCond(Pass):
        """Replace cond by its first operand."""

        def run(self, editor):
            for node in editor.find(torch.ops.higher_order.cond):
                for result in list(node.users):
                    editor.replace(result, node.args[3][0])
                editor.erase(node)

    inputs = torch.tensor(True), draw.floats(5), draw.floats(5), draw.mask(5)
    program = export(copy_here_and_in_a_branch, *inputs)
    result = run([DropCond(), Count()], program, verify="metadata")
    assert [report.region for report in result.reports] == ["", ""]
    assert not hasattr(result.program.graph_module, "true_graph_0")
    assert hasattr(program.graph_module, "true_graph_0")


# Events.


class Notes(Listener):
    def __init__(self):
        self.events = []

    def before(self, pass_, region):
        self.events.append(("before", pass_.name, region.path))

    def rewrite(self, remark):
        self.events.append(("rewrite", remark.node))

    def missed(self, remark):
        self.events.append(("missed", remark.node))

    def after(self, report):
        self.events.append(("after", report.name, report.changed))

    def failed(self, error):
        self.events.append(("failed", type(error)))


def test_events_come_in_order_to_every_listener(draw):
    def function(x, mask):
        return copy_picks(x, x + 1, mask), aten.index_put(x, [mask], x[mask], True)

    name, notes = "replace-masked-copy-with-where", [Notes(), Notes()]
    program = export(function, draw.floats(5), draw.mask(5))
    run(name, program, listeners=notes)
    assert notes[0].events == notes[1].events
    assert notes[0].events == [
        ("before", name, ""),
        ("rewrite", "index_put_"),
        ("missed", "index_put"),
        ("after", name, True),
    ]


def test_failed_is_told_and_the_error_goes_on(draw):
    @named("test.broken")
    @dataclass(frozen=True)
    class Broken(Pass):
        """Inserts an operator on operands that it does not take."""

        def run(self, editor):
            output = editor.region.graph.output_node()
            with editor.at(output):
                editor.call(aten.mm.default, *editor.find(aten.add.Tensor) * 2)

    notes, program = Notes(), export(lambda x: x + 1, draw.floats(3))
    with pytest.raises(RewriteRefused, match=r"aten\.mm\.default does not take"):
        run(Broken(), program, listeners=[notes])
    assert notes.events == [("before", "test.broken", ""), ("failed", RewriteRefused)]
    assert_equal_to_eager(program, lambda x: x + 1, draw.floats(3))


def test_an_unknown_level_is_refused(draw):
    program = export(lambda x: x + 1, draw.floats(3))
    with pytest.raises(InvalidOption, match="expected one of off, structure, metadata, numeric"):
        run("default", program, verify="full")


def test_numeric_needs_inputs(draw):
    with pytest.raises(InvalidOption, match="needs inputs"):
        run("default", trace(lambda x: x + 1, draw.floats(3)), verify="numeric")


def test_a_pass_without_run_is_named(draw):
    @register_pass("test.empty", into=Registry())
    @dataclass(frozen=True)
    class Empty(Pass):
        """Does not say what it does."""

    with pytest.raises(PassError, match="Empty does not define run"):
        run(Empty(), export(lambda x: x + 1, draw.floats(3)))


def test_a_limit_below_zero_is_refused(draw):
    with pytest.raises(InvalidOption, match="limit=-1"):
        Pipeline.parse("default").run(export(lambda x: x + 1, draw.floats(2)), limit=-1)


def test_runs_in_several_threads_do_not_disturb_one_another(draw):
    """They share random numbers, and a program's fake mode."""

    def noisy(out, source, mask):
        out = out.clone()
        out[mask] = source[mask]
        return out + torch.rand(2000)

    inputs = draw.floats(2000), draw.floats(2000), draw.mask(2000)
    program = export(noisy, *inputs, functional=True)
    pipeline = Pipeline.parse("default")
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(pipeline.run, program, "numeric") for _ in range(16)]
    assert all(run.result().changed for run in runs)
