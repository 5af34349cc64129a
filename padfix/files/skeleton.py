"""Reads an ONNX file as a skeleton: everything but the large tensor payloads, which stay where they are in the file.

The reader walks the wire format and copies all fields but the payloads longer than :data:`LARGE`. In place of each it
writes external-data entries (location, offset, length) that point into the very file, so that the skeleton is a valid
model that ONNX Runtime can load as it stands, and a *mark* among the tensor's metadata properties that says how to
put the payload back. (A mark among the external-data entries would be tidier, but ONNX Runtime refuses keys that it
does not know there.) Memory and time depend on the graph, never on the weights.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from google.protobuf.message import DecodeError  # type: ignore[import-untyped,unused-ignore]
from onnx import FunctionProto, GraphProto, ModelProto, StringStringEntryProto, TensorProto

from padfix.errors import SourceError
from padfix.files import detection, wire_format
from padfix.files.external_data import check_location, location_of
from padfix.files.model import Model
from padfix.files.payloads import DAMAGED, MARK, has_mark, load_payload, read_mark, reason_of, remove_pointer
from padfix.files.stores.access import opened
from padfix.files.tensors import iterate_tensors
from padfix.files.urls import Place, Url
from padfix.files.wire_format import LENGTH_DELIMITED, ByteSource, Field, WireError, iterate_fields
from padfix.results import Identity

LARGE = 2048
"""Payloads of more bytes than this stay in the file."""


def read_model(path: Place) -> Model:
    """Read the ONNX file at ``path`` and leave its large payloads where they are.

    Those of a file in a store can't be read later on: whoever needs them copies the file first.

    Raises:
        SourceError: There is no such file, or it is not a whole ONNX model.
    """
    try:
        with opened(path) as source:
            detection.require_onnx(path, source)
            reader = _Reader(source, path.name)
            skeleton, marked = reader.skeleton()
        proto = ModelProto()
        proto.ParseFromString(skeleton)
    except (WireError, DecodeError) as error:
        raise SourceError(f"{path} is not a whole ONNX model: {reason_of(error)}.", DAMAGED) from error
    except RecursionError as error:
        raise SourceError(f"{path} is not a whole ONNX model: its messages are nested too deep.", DAMAGED) from error
    except SystemError as error:  # protobuf's own want of memory
        raise MemoryError(str(error)) from error
    except OSError as error:
        raise SourceError(f"{path} can't be read: {error.strerror}.", "Check the disk and the file.") from error
    try:
        _check(path, proto, marked)
    except WireError as error:
        raise SourceError(f"{path} is not an ONNX model: {error}.", DAMAGED) from error
    if isinstance(path, Url):
        return Model(proto, identity=reader.identity)
    absolute = path.absolute()
    return Model(proto, absolute, absolute.parent, reader.identity)


def identity_of(path: Place) -> Identity:
    """Return what tells this state of an ONNX file from others, which costs much less than to read it.

    Raises:
        SourceError: There is no such file, or its messages are cut.
    """
    try:
        with opened(path) as source:
            reader = _Reader(source, path.name)
            reader.skeleton()
            return reader.identity
    except (WireError, RecursionError, OSError) as error:
        raise SourceError(f"{path} is not a whole ONNX model: {error}.", DAMAGED) from error


def read_to_run(path: Path) -> Model:
    """Read the ONNX file at ``path`` as a runtime takes it: large weights stay where they are, as external data.

    Runtimes follow pointers of the main graph's initializers to elements as they are in memory; every other payload
    is put back.

    Raises:
        SourceError: As :func:`read_model`; or a payload can't be read.
    """
    model = read_model(path)
    graph = model.proto.graph
    weights = list(graph.initializer)
    del graph.initializer[:]
    for tensor in iterate_tensors(model.proto):
        if has_mark(tensor):
            _put_back(model, tensor)
    for tensor in weights:
        if has_mark(tensor) and read_mark(tensor).field not in wire_format.FIXED_WIDTH_PAYLOADS:
            _put_back(model, tensor)
    graph.initializer.extend(weights)
    return model


def load_whole(path: Path) -> ModelProto:
    """Read the ONNX file at ``path`` with all weights, external data included, into memory.

    Raises:
        SourceError: It, or a file of its data, can't be read, or is not safe to.
    """
    model = read_model(path)
    for tensor in iterate_tensors(model.proto):
        if tensor.data_location == TensorProto.EXTERNAL:
            _put_back(model, tensor)
    return model.proto


def _put_back(model: Model, tensor: TensorProto) -> None:
    """Replace a tensor's pointer by its payload."""
    data = load_payload(model, tensor)
    remove_pointer(tensor)
    tensor.raw_data = data


class _Reader:
    """Copies a model's bytes without the large payloads."""

    def __init__(self, source: ByteSource, location: str) -> None:
        self._source = source
        self._fingerprint = f"{source.size} {source.time}"
        self._location = location
        self._copied = 0
        self._marked = 0
        self._digest = hashlib.sha256()

    @property
    def identity(self) -> Identity:
        """The file, once the skeleton was read."""
        return Identity(self._source.size, self._digest.hexdigest())

    def skeleton(self) -> tuple[bytes, int]:
        """Return the compact bytes of the model, and how many tensors were marked."""
        chunks, _ = self._message(0, self._source.size, wire_format.MODEL, 0)
        return b"".join(chunks), self._marked

    def _copy(self, start: int, end: int) -> bytes:
        self._copied += end - start
        if self._copied > wire_format.MAXIMUM_MESSAGE_BYTES:
            raise WireError("it holds more than 2 GiB beside the weights")
        data = self._source.read(start, end)
        self._digest.update(data)
        return data

    def _message(self, start: int, end: int, kind: str, depth: int) -> tuple[list[bytes], int]:
        """Return the compact bytes of one message in chunks, and their length."""
        if depth > wire_format.MAXIMUM_DEPTH:
            raise WireError(f"messages are nested more than {wire_format.MAXIMUM_DEPTH} deep")

        def compact(field: Field, child: str) -> tuple[list[bytes], int] | None:
            if field.end - field.start <= LARGE:
                return None
            if child == wire_format.TENSOR:
                return self._tensor(field.start, field.end)
            return self._message(field.start, field.end, child, depth + 1)

        return wire_format.rewritten(self._source, start, end, kind, compact, self._copy)

    def _tensor(self, start: int, end: int) -> tuple[list[bytes], int]:
        """Return the bytes of one tensor, with a pointer in place of its payload if that is a single large span."""
        payload: Field | None = None
        location: Field | None = None
        simple = True
        for field in iterate_fields(self._source, start, end):
            if field.number in wire_format.PAYLOADS:
                # Elements in several runs, or not packed at all, are legal but nobody writes them: they are copied.
                simple = simple and payload is None and field.wire_type == LENGTH_DELIMITED
                payload = field
            elif field.number == wire_format.DATA_LOCATION:
                simple = simple and location is None
                location = field
        if payload is None or not simple or payload.end - payload.start <= LARGE:
            return [self._copy(start, end)], end - start
        chunks: list[bytes] = []
        unchanged = start
        for field in sorted((field for field in (payload, location) if field), key=lambda field: field.tag):
            chunks.append(self._copy(unchanged, field.tag))
            unchanged = field.end
        chunks.append(self._copy(unchanged, end))
        data_location = -1
        if location is not None:
            data_location = wire_format.read_varint(self._source.read(location.start, location.end), 0)[0]
        offset, length = payload.start, payload.end - payload.start
        self._digest.update(b"%d elements' bytes" % length)
        pointer = TensorProto(data_location=TensorProto.EXTERNAL)
        for key, text in (("location", self._location), ("offset", str(offset)), ("length", str(length))):
            pointer.external_data.append(StringStringEntryProto(key=key, value=text))
        mark = f"{payload.number} {offset} {length} {data_location} {self._fingerprint}"
        pointer.metadata_props.append(StringStringEntryProto(key=MARK, value=mark))
        chunks.append(pointer.SerializeToString())
        self._marked += 1
        return chunks, sum(map(len, chunks))


def _check(path: Place, model: ModelProto, marked: int) -> None:
    """Make sure that the bytes that parsed are a model, and one that is safe to work on."""
    if not model.HasField("graph"):
        raise SourceError(f"{path} is not an ONNX model: it holds no graph.", detection.ONNX_HINT)
    if not (model.graph.node or model.graph.output or model.graph.initializer):
        raise SourceError(f"{path} is not an ONNX model: its graph is empty.", detection.ONNX_HINT)
    if not model.HasField("ir_version"):
        raise SourceError(f"{path} is not a valid ONNX model: it has no ir_version.", detection.ONNX_HINT)
    if not model.opset_import:
        raise SourceError(
            f"{path} is not a valid ONNX model: it imports no operator set (opset_import).",
            "Set opset_import to the version that the model was made for; without it no operator has a meaning.",
        )
    _check_names(model)
    found = 0
    for tensor in iterate_tensors(model):
        marks = sum(entry.key == MARK for entry in tensor.metadata_props)
        found += marks
        if not marks and tensor.data_location == TensorProto.EXTERNAL:
            check_location(tensor.name, location_of(tensor))
    if found != marked:
        raise SourceError(
            f"{path} holds tensors with the metadata property {MARK!r}, which padfix keeps for itself.",
            "Remove that property from the tensors' metadata_props.",
        )


def _check_names(model: ModelProto) -> None:
    """Make sure that every name that the rest of padfix reads is text: protobuf hands out bytes for what is not UTF-8.

    Raises:
        WireError: A name is not.
    """
    _check_text(*(entry.domain for entry in model.opset_import))
    for function in model.functions:
        _check_container_names(function)
    _check_container_names(model.graph)
    for tensor in iterate_tensors(model):
        _check_text(tensor.name)
        for entry in tensor.external_data:
            _check_text(entry.key, entry.value)


def _check_container_names(container: GraphProto | FunctionProto) -> None:
    _check_text(container.name)
    if isinstance(container, GraphProto):
        for value in (*container.input, *container.output, *container.value_info):
            _check_text(value.name)
            for dimension in value.type.tensor_type.shape.dim:
                _check_text(dimension.dim_param)
    else:
        _check_text(*container.input, *container.output, *container.attribute, container.domain, container.overload)
        _check_text(*(entry.domain for entry in container.opset_import))
    for node in container.node:
        _check_text(node.name, node.op_type, node.domain, node.overload, *node.input, *node.output)
        for attribute in node.attribute:
            _check_text(attribute.name, attribute.ref_attr_name)
            if attribute.HasField("g"):
                _check_container_names(attribute.g)
            for graph in attribute.graphs:
                _check_container_names(graph)


def _check_text(*values: str) -> None:
    for value in values:
        if not isinstance(value, str):
            raise WireError(f"the name {value!r} in it is not UTF-8 text")
