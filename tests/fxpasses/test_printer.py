"""The text of a graph says what each node computes, of which type, and where it comes from."""

import torch

from fxpasses.inspect import program_text
from fxpasses.printer import dtype_text, region_text, type_text
from tests.programs import ANY_BATCH, COUNTER, IN_BRANCH, MASKED_COPY


def test_one_node_a_line_with_type_and_source():
    lines = program_text(MASKED_COPY.export()).splitlines()
    index = next(line for line in lines if line.startswith("%index:"))
    assert index.startswith("%index: f32[u0] = aten.index.Tensor(%source, [%mask])  # programs.py:")
    assert lines[0] == "%out: f32[4, 3] = input"
    assert lines[2] == "%mask: bool[4, 3] = input"
    assert lines[-1] == "return %index_put"


def test_symbolic_sizes_keep_their_names():
    text = program_text(ANY_BATCH.export())
    size = text.partition("[")[2].partition(",")[0]
    assert size.startswith("s")
    assert f"f32[{size}, 3] = aten.mul.Tensor(%x, 2.0)" in text


def test_inputs_and_outputs_name_their_buffers():
    text = program_text(COUNTER.export())
    assert "%b_count: f32[1] = buffer count" in text
    assert text.splitlines()[-1].startswith("return %add -> count, %add_")


def test_regions_are_indented_under_their_operator():
    lines = program_text(IN_BRANCH.export()).splitlines()
    cond = next(place for place, line in enumerate(lines) if "= cond(" in line)
    assert lines[cond + 1] == "  true_graph_0:"
    assert lines[cond + 2].startswith("    %")
    assert any(line.startswith("    %index_put") for line in lines)
    assert not any("constant" in line for line in lines)


def test_a_graph_that_two_operators_share_is_printed_once():
    program = IN_BRANCH.export()
    graph = program.graph
    cond = next(iter(graph.find_nodes(op="call_function", target=torch.ops.higher_order.cond)))
    with graph.inserting_after(cond):
        graph.call_function(cond.target, cond.args).meta.update(cond.meta)
    text = program_text(program)
    assert text.count("  true_graph_0:\n") == 1
    assert text.count("  true_graph_0: as above") == 1


def test_a_region_alone_leaves_out_what_is_nested():
    assert "index_put" not in region_text(IN_BRANCH.export().graph_module)


def test_a_graph_without_metadata_has_no_types():
    text = program_text(torch.fx.symbolic_trace(torch.nn.ReLU()))
    assert text == "%input_1 = input\n%relu = relu(%input_1, inplace=False)\nreturn %relu"


def test_types():
    assert type_text((torch.zeros(2), torch.zeros((), dtype=torch.int64))) == "(f32[2], i64[])"
    assert type_text(3) == "int"
    names = [torch.bfloat16, torch.uint8, torch.complex64, torch.bool, torch.float8_e4m3fn]
    assert list(map(dtype_text, names)) == ["bf16", "u8", "c64", "bool", "float8_e4m3fn"]
