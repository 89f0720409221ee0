"""The same work by others, in the same run. Sizes stop where one round takes many seconds.

They do less: `replace_pattern` leaves new nodes without metadata, and none checks its result.
"""

import pytest
import torch
from executorch.exir.pass_base import ExportPass
from torch._inductor.pattern_matcher import PatternMatcherPass, fwd_only, register_replacement
from torch._inductor.virtualized import V
from torch.fx import replace_pattern
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from benchmarks import graphs

aten = torch.ops.aten
BOTH = pytest.mark.parametrize("size", [1_000, 10_000])


def square(x):
    return aten.pow.Tensor_Scalar(x, 2)


def product(x):
    return aten.mul.Tensor(x, x)


def absent(x):
    """No benchmark calls this."""
    return aten.tan.default(x)


def replaced(module, search):
    return len(replace_pattern(module, search, product))


def matcher(search):
    found = PatternMatcherPass(pass_name=search.__name__)
    register_replacement(search, product, [torch.empty(4, 4)], fwd_only, found)
    return found


def applied(module, search):
    with V.set_fake_mode(first_value(module).fake_mode):
        return search.apply(module.graph)


def propagated(module):
    value = first_value(module)
    FakeTensorProp(module, value.fake_mode).propagate_dont_convert_inputs(value)


def first_value(module):
    return next(iter(module.graph.nodes)).meta["val"]


@BOTH
def test_export_pass_nothing(measure, size):
    who = "ExecuTorch: ExportPass()"
    assert measure("nothing to do", who, size, ExportPass(), graphs.plain(size)).modified


@BOTH
def test_replace_pattern_nothing(measure, size):
    who = "torch.fx: replace_pattern"
    assert not measure("nothing to do", who, size, replaced, graphs.plain(size), absent)


@BOTH
def test_inductor_nothing(measure, size):
    who, search = "Inductor: register_replacement", matcher(absent)
    assert not measure("nothing to do", who, size, applied, graphs.plain(size), search)


@BOTH
def test_replace_pattern_squares(measure, size):
    who = "torch.fx: replace_pattern"
    count = measure.changing(
        "rewrite x ** 2", who, size, replaced, lambda: graphs.squares(size), square
    )
    assert count == size // 4


@pytest.mark.parametrize("size", [1_000])
def test_inductor_squares(measure, size):
    who, search = "Inductor: register_replacement", matcher(square)
    count = measure.changing(
        "rewrite x ** 2", who, size, applied, lambda: graphs.squares(size), search
    )
    assert count == size // 4


@BOTH
def test_fake_tensor_prop(measure, size):
    who = "torch.fx: FakeTensorProp, no rewrite"
    measure("rewrite x ** 2", who, size, propagated, graphs.squares(size))
