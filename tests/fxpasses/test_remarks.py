"""A remark is one sentence about one node, with the user's line."""

import pytest
from torch.fx import Graph

from fxpasses import Remark
from fxpasses.remarks import source_of


def node_with(trace):
    node = Graph().placeholder("x")
    if trace is not None:
        node.meta["stack_trace"] = trace
    return node


FRAMES = '  File "/home/me/net.py", line 7, in forward\n    y = self.sub(x)\n'
INNER = '  File "/home/me/sub.py", line 21, in forward\n    return x + 1\n'
GENERATED = '  File "<eval_with_key>.12", line 5, in forward\n    cond = ...\n'


@pytest.mark.parametrize(
    ("trace", "source"),
    [
        (None, ""),
        ("", ""),
        (FRAMES, "net.py:7"),
        (FRAMES + INNER, "sub.py:21"),
        (FRAMES + GENERATED, "net.py:7"),
        (GENERATED, ""),
        ('File "C:\\me\\net.py", line 3, in forward', "net.py:3"),
    ],
)
def test_the_source_is_the_users_innermost_line(trace, source):
    assert source_of(node_with(trace)) == source


MISSED = Remark("missed", "acme.x", "true_graph_0", "mul", "layout", "it differs", "net.py:7")
PASSED = Remark("passed", "acme.x", "", "mul", "", "mul became add", "")


def test_one_line_each():
    assert str(MISSED) == (
        "missed acme.x: kept true_graph_0.mul: guard layout: it differs (net.py:7)"
    )
    assert str(PASSED) == "passed acme.x: rewrote mul: mul became add"


def test_fields_are_strings_for_json():
    assert MISSED.to_dict() == {
        "kind": "missed",
        "pass_name": "acme.x",
        "region": "true_graph_0",
        "node": "mul",
        "guard": "layout",
        "reason": "it differs",
        "source": "net.py:7",
    }
    assert Remark(**MISSED.to_dict()) == MISSED
