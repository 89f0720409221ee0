"""The partitioner inside plain ExecuTorch: it carries text, and tags."""

import pytest
import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.backend.partitioner import Partitioner

import backend
import fxpasses
from backend._executorch import CompileSpec, quietly
from backend.settings import Settings


class Plain(torch.nn.Module):
    """What ExecuTorch's dialect writes in its own way: layouts, numbers, views, a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, image, double):
        self.count.add_(1)
        image = image.to(torch.float64).to(memory_format=torch.channels_last)
        return image.flatten(1)[:, ::2] + self.count, double * 0.1, self.count, image.clone()


class Ends(torch.nn.Module):
    def forward(self, x):
        return (x.cos() + 1).sin()


class AllButSin(backend.CudaPartitioner):
    """Leaves one operator to ExecuTorch."""

    def partition(self, program):
        result = super().partition(program)
        for node in program.graph.nodes:
            if "sin" in str(node.target):
                del node.meta["delegation_tag"]
        return result


def lower(program: torch.export.ExportedProgram, partitioner: backend.CudaPartitioner) -> bytes:
    with quietly():
        return (
            to_edge_transform_and_lower(program, partitioner=[partitioner]).to_executorch().buffer
        )


def specs_of(*args: object, **kwargs: object) -> dict[str, str]:
    specs = backend.CudaPartitioner(*args, **kwargs).delegation_spec.compile_specs
    return {spec.key: bytes(spec.value).decode() for spec in specs}


@pytest.mark.skipif(
    not hasattr(Partitioner, "transform_for_pre_decomposition"),
    reason="this ExecuTorch gives a partitioner no say before its dialect",
)
def test_plain_executorch_lowers_and_the_result_equals_eager() -> None:
    inputs = torch.randn(2, 3, 4, 4), torch.randn(5, dtype=torch.float64)
    program = torch.export.export(Plain(), inputs)
    module = Plain()
    with backend.load(lower(program, backend.CudaPartitioner(device="cpu"))) as loaded:
        for _ in range(3):
            inputs = torch.randn(2, 3, 4, 4), torch.randn(5, dtype=torch.float64)
            results = loaded["forward"](*inputs)
            for result, expected in zip(results, module(*inputs), strict=True):
                assert torch.equal(result, expected)


def test_a_method_that_is_not_one_whole_delegate_is_refused_by_name_and_operator() -> None:
    program = torch.export.export(Ends(), (torch.randn(3),))
    data = lower(program, AllButSin("", "cpu"))
    with pytest.raises(backend.NotSupported) as caught:
        backend.load(data)
    message = str(caught.value)
    assert 'method "forward" is not one whole delegate of FxCudaBackend' in message
    assert "it calls aten::sin.out outside of the delegate" in message


def test_a_program_without_a_delegate_is_refused() -> None:
    program = torch.export.export(Ends(), (torch.randn(3),))
    with quietly():
        data = to_edge_transform_and_lower(program).to_executorch().buffer
    with pytest.raises(backend.BackendError, match=r"no segments|it calls aten::cos.out"):
        backend.load(data)


def test_the_pipeline_travels_as_its_full_text() -> None:
    assert specs_of("default", "cpu")["passes"] == str(fxpasses.Pipeline.parse("default"))


def test_a_pipeline_object_is_as_good_as_its_text() -> None:
    pipeline = fxpasses.Pipeline.parse("remove-async-asserts")
    assert specs_of(pipeline, "cpu")["passes"] == "remove-async-asserts"


def test_an_unknown_pass_is_refused_at_construction() -> None:
    with pytest.raises(fxpasses.UnknownPass, match="remove-async-asserts"):
        backend.CudaPartitioner("remove-async-assert")


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("cpu", "cpu"),
        ("cpu:0", "cpu"),
        ("cuda", "cuda"),
        ("cuda:1", "cuda:1"),
        (torch.device("cuda", 1), "cuda:1"),
        (None, "cuda" if torch.cuda.is_available() else "cpu"),
    ],
)
def test_the_device_travels_by_name(device, expected) -> None:
    assert specs_of(device=device)["device"] == expected


@pytest.mark.parametrize("device", ["tpu", "meta", "cuda:x", ""])
def test_an_unknown_device_is_refused_at_construction(device) -> None:
    with pytest.raises(backend.InvalidArgument, match='neither "cpu" nor "cuda"'):
        backend.CudaPartitioner(device=device)


def test_a_compile_spec_of_the_caller_wins() -> None:
    spec = CompileSpec("device", b"cuda:3")
    assert Settings.from_specs(
        backend.CudaPartitioner("", "cpu", [spec]).delegation_spec.compile_specs
    ) == Settings("", "cuda:3")


def test_a_missing_compile_spec_is_named() -> None:
    with pytest.raises(backend.InvalidArgument, match="'device' is missing"):
        Settings.from_specs([CompileSpec("passes", b"")])


def test_building_one_says_nothing(recwarn) -> None:
    backend.CudaPartitioner()
    assert not list(recwarn)
