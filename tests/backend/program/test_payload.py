"""A payload reads back as it was written, and a wrong field is named."""

import json

import pytest

from backend.errors import InvalidProgram
from backend.program.payload import Blob, Payload, seal
from backend.program.sizes import Dynamic
from backend.program.tensor_spec import TensorSpec

PAYLOAD = Payload(
    torch_version="2.14.1",
    executorch_version="1.5.1",
    device="cpu",
    pipeline="remove-async-asserts",
    method="decode",
    inputs=(TensorSpec("x", "float32", (Dynamic("s0", 0, 20), 3), (0, 1), "cpu"),),
    outputs=(TensorSpec("rows", "int64", (), (), "cpu", "int"),),
    mutated_buffers=("cache",),
    host_weights=("initialized",),
    remarks=({"kind": "missed", "reason": "two masks"},),
    blobs={"library": Blob.of("library", b"code"), "weights": Blob.of("weights", b"numbers")},
)
CONTENT = json.loads(PAYLOAD.to_bytes())


def changed(path: tuple, value: object) -> bytes:
    """The sealed payload with one field set; `...` takes the field out."""
    content = json.loads(PAYLOAD.to_bytes())
    place = content
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return seal(content)


def refused(data: bytes, *words: str) -> None:
    with pytest.raises(InvalidProgram) as caught:
        Payload.from_bytes(data, "m.pte")
    message = str(caught.value)
    assert message.startswith("m.pte")
    assert "\n" not in message
    for word in words:
        assert word in message


def test_a_payload_reads_back_as_it_was_written() -> None:
    assert Payload.from_bytes(PAYLOAD.to_bytes()) == PAYLOAD


def test_equal_payloads_are_equal_bytes() -> None:
    assert PAYLOAD.to_bytes() == Payload.from_bytes(PAYLOAD.to_bytes()).to_bytes()


@pytest.mark.parametrize("name", sorted(set(CONTENT) - {"format_version", "checksum"}))
def test_a_missing_field_is_named(name) -> None:
    refused(changed((name,), ...), f'field "{name}" is missing')


@pytest.mark.parametrize("name", sorted(set(CONTENT) - {"checksum"}))
def test_a_field_of_another_type_is_named(name) -> None:
    refused(changed((name,), True), f'field "{name}" is not')


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("inputs", 0, "dtype"), "float31", 'm.pte.inputs[0]: field "dtype" is not a dtype'),
        (("inputs", 0, "dtype"), "nn", 'm.pte.inputs[0]: field "dtype" is not a dtype'),
        (("inputs", 0, "shape"), [None], 'm.pte.inputs[0]: field "shape" is not a list of sizes'),
        (("inputs", 0, "dim_order"), [0], 'm.pte.inputs[0]: field "dim_order" is not an order'),
        (("inputs", 0, "dim_order"), ["0", 1], 'm.pte.inputs[0]: field "dim_order" is not an'),
        (("inputs", 0, "name"), ..., 'm.pte.inputs[0]: field "name" is missing'),
        (("inputs", 0), 3, "m.pte.inputs[0] is not an object"),
        (("outputs", 0, "kind"), "list", 'm.pte.outputs[0]: field "kind" is not a kind'),
        (("mutated_buffers",), [1], 'field "mutated_buffers" is not a list of strings'),
        (("remarks",), ["text"], "m.pte.remarks[0] is not an object"),
        (("blobs", "library"), ..., 'm.pte.blobs: field "library" is missing'),
        (("blobs", "weights", "size"), "7", 'm.pte.blobs.weights: field "size" is not an integer'),
    ],
)
def test_a_wrong_value_is_named(path, value, message) -> None:
    refused(changed(path, value), message)


@pytest.mark.parametrize("version", [0, 2, 99])
def test_another_format_version_names_both(version) -> None:
    refused(changed(("format_version",), version), f"format version {version}", "reads 1")


def test_the_version_is_read_before_anything_else() -> None:
    refused(b'{"format_version": 2}', "format version 2")


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"{", b"a_so_blob\na_weights_blob"])
def test_what_is_no_json_is_refused(data) -> None:
    refused(data, "is no JSON")


@pytest.mark.parametrize("data", [b"[]", b"3", b'"text"'])
def test_what_is_no_object_is_refused(data) -> None:
    refused(data, "is not an object")


def test_a_changed_byte_is_noticed() -> None:
    refused(PAYLOAD.to_bytes().replace(b"float32", b"float64"), "checksum differs")


def test_a_blob_checks_its_bytes() -> None:
    blob = Blob.of("library", b"code")
    assert blob.check("library", b"code") == b"code"
    with pytest.raises(InvalidProgram, match="library blob is damaged"):
        blob.check("library", b"cobe")
    with pytest.raises(InvalidProgram, match=r"library blob .* is missing"):
        blob.check("library", None)
