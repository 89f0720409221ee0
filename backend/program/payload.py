"""The payload of one method: a JSON object in the delegate's processed bytes.

    payload = Payload.from_bytes(data, "model.pte")
    payload.device, payload.pipeline, [str(spec) for spec in payload.inputs]

It describes; the native library and the weights are blobs in ExecuTorch's named data, found by
content hash. Read strictly: what is missing, of another type, from the future or changed by a
single bit is refused before anything is believed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from backend.errors import InvalidProgram
from backend.program.fields import Fields
from backend.program.tensor_spec import TensorSpec

FORMAT_VERSION = 1
BLOB_KINDS = ("library", "weights", "extern_kernels")


@dataclass(frozen=True)
class Blob:
    """Where a blob lies (a key of the named data) and what it must be."""

    key: str
    sha256: str
    size: int

    @classmethod
    def of(cls, kind: str, data: bytes) -> Blob:
        """The entry for `data`."""
        digest = hashlib.sha256(data).hexdigest()
        return cls(f"{digest}_{kind}", digest, len(data))

    @classmethod
    def from_json(cls, fields: Fields) -> Blob:
        """Read one entry of "blobs"."""
        return cls(fields.text("key"), fields.text("sha256"), fields.integer("size"))

    def check(self, kind: str, data: bytes | None) -> bytes:
        """`data`, if it is the blob that lowering wrote.

        Raises:
            InvalidProgram: it is missing, or changed.
        """
        if data is None:
            raise InvalidProgram(f"the {kind} blob {self.key[:12]}... is missing")
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise InvalidProgram(f"the {kind} blob is damaged: its sha256 is not the recorded one")
        return data


@dataclass(frozen=True)
class Payload:
    """All that a file says about one compiled method; docs/program-format.md lists the fields."""

    torch_version: str
    executorch_version: str
    device: str
    pipeline: str
    method: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    mutated_buffers: tuple[str, ...]
    host_weights: tuple[str, ...]
    remarks: tuple[dict[str, Any], ...]
    blobs: dict[str, Blob]

    def to_json(self) -> dict[str, Any]:
        """The object as written, "format_version" and "checksum" apart."""
        return asdict(self) | {
            "inputs": [spec.to_json() for spec in self.inputs],
            "outputs": [spec.to_json() for spec in self.outputs],
        }

    def to_bytes(self) -> bytes:
        """The sealed JSON, in UTF-8."""
        return seal(self.to_json() | {"format_version": FORMAT_VERSION})

    @classmethod
    def from_bytes(cls, data: bytes, path: str = "payload") -> Payload:
        """Read what `to_bytes` wrote.

        Raises:
            InvalidProgram: no JSON, another format version, a changed byte, or a field that is
                missing or of the wrong type; the message starts with `path`.
        """
        fields = Fields(parse(data, path), path)
        version = fields.integer("format_version")
        if version != FORMAT_VERSION:
            raise InvalidProgram(
                f"{path}: format version {version}, this runtime reads {FORMAT_VERSION}; "
                "use the fxpasses that wrote the file, or lower again"
            )
        if fields.text("checksum") != checksum(fields.value):
            raise InvalidProgram(f"{path}: the payload is damaged: its checksum differs")
        return cls.from_json(fields)

    @classmethod
    def from_json(cls, fields: Fields) -> Payload:
        """Read the fields of format version 1."""
        blobs = fields.object("blobs")
        kinds = [kind for kind in BLOB_KINDS if kind in blobs.value or kind != "extern_kernels"]
        return cls(
            torch_version=fields.text("torch_version"),
            executorch_version=fields.text("executorch_version"),
            device=fields.text("device"),
            pipeline=fields.text("pipeline"),
            method=fields.text("method"),
            inputs=tuple(map(TensorSpec.from_json, fields.objects("inputs"))),
            outputs=tuple(map(TensorSpec.from_json, fields.objects("outputs"))),
            mutated_buffers=texts(fields, "mutated_buffers"),
            host_weights=texts(fields, "host_weights"),
            remarks=tuple(item.mapping() for item in fields.objects("remarks")),
            blobs={kind: Blob.from_json(blobs.object(kind)) for kind in kinds},
        )


def parse(data: bytes, path: str) -> Any:
    """The JSON value in `data`."""
    try:
        return json.loads(data.decode())
    except ValueError:
        raise InvalidProgram(f"{path}: the payload is no JSON; it is damaged") from None


def seal(content: dict[str, Any]) -> bytes:
    """`content` with its checksum, as bytes."""
    return canonical(content | {"checksum": checksum(content)})


def checksum(content: dict[str, Any]) -> str:
    """sha256 of the canonical JSON of `content` without the field "checksum"."""
    rest = {name: value for name, value in content.items() if name != "checksum"}
    return hashlib.sha256(canonical(rest)).hexdigest()


def canonical(content: dict[str, Any]) -> bytes:
    """JSON with sorted names and no spaces, so that equal contents are equal bytes."""
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def texts(fields: Fields, name: str) -> tuple[str, ...]:
    """The list of strings in field `name`."""
    values = fields.values(name)
    if not all(isinstance(value, str) for value in values):
        raise fields.wrong(name, "a list of strings")
    return tuple(values)
