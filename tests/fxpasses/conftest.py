"""Random inputs that differ from test to test, and both forms of a graph."""

import zlib

import pytest

from tests.fxpasses.programs import Draw


@pytest.fixture
def draw(request) -> Draw:
    """Random tensors, seeded by the name of the test."""
    return Draw(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture(params=[False, True], ids=["in-place", "functional"])
def functional(request) -> bool:
    """Whether the graph is functionalised before a pass sees it."""
    return request.param
