"""TensorFlow Lite files, read with TensorFlow's own schema and proven against TensorFlow's own interpreter.

tf2onnx has a front end for them. It is handed a copy of the model in which every tensor and every subgraph has a name
of its own, each input and output its public one, and in which what tf2onnx loses is written out; see
:mod:`padfix.sources.tflite_graph`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from padfix.sources import (
    conversion,
    kernel_faults,
    side_effects,
    tflite_custom,
    tflite_graph,
    tflite_hybrid,
    tflite_metadata,
    tflite_schema,
)
from padfix.sources.conversion import Port, unique_names
from padfix.sources.executor import element_type
from padfix.sources.saved_model import chosen_signature
from padfix.sources.settled_names import settle
from padfix.sources.source import Source, SourceOptions
from padfix.sources.tensorflow_runtime import quiet
from padfix.sources.tflite_schema import LiteFile

if TYPE_CHECKING:
    from padfix.files.model import Model
    from padfix.proof.executors import Executor
    from padfix.sources.tflite_inner import LiteInner
    from padfix.sources.tflite_runner import Beside


def open_tflite(tensorflow: Any, path: Path, options: SourceOptions) -> Source:
    """Read a TensorFlow Lite file.

    Raises:
        SourceError: Damaged.
        UsageError: The signature or a shape is not the model's; the hint lists what there is.
        UnsupportedError: The model keeps state, or has a part without an exact ONNX form.
    """
    with quiet():
        from padfix.sources.graph_optimizers import with_passes_to_leave_out
        from padfix.sources.tflite_runner import interpreter

        model = tflite_schema.read(path)
        if not options.trust:
            side_effects.refuse_operators(_borrowed_operators(model), str(path))
        is_changed = tflite_custom.write_out(model)
        slips = kernel_faults.delegate_faults(tensorflow, model)
        kernels = kernel_faults.WITHOUT_DELEGATE if slips else None
        as_it_stands = LiteFile(path, tflite_schema.packed(model) if is_changed else path.read_bytes(), kernels)
        hybrid = tflite_hybrid.write_out(model)
        file = LiteFile(path, tflite_schema.packed(model), kernels) if hybrid else as_it_stands
        loaded = interpreter(tensorflow, file)
        signatures = {item.signatureKey.decode(): item for item in model.signatureDefs or ()}
        signature = signatures.get(chosen_signature(signatures, options.signature, "file") or "")
        index = signature.subgraphIndex if signature else 0
        inputs, outputs = _ports(model.subgraphs[index], signature)
        details = {item["index"]: item for item in loaded.get_tensor_details(index)}
    types = {port.name: _type(tensorflow, details[int(port.tensor)]) for port in inputs}
    pinned = conversion.requested_inputs(options.shapes, list(types))
    for name, shape in pinned.items():
        pinned[name] = conversion.pinned_shape(name, types[name][1], shape)
    shapes = {number: _lengths(item) for number, item in details.items()}
    shapes |= {int(port.tensor): list(pinned[port.name]) for port in inputs if port.name in pinned}
    prepared = tflite_graph.prepare(model, index, inputs, outputs, shapes)

    def convert(left_out: Sequence[str] = ()) -> Model:
        return _convert(prepared, (inputs, outputs), options.opset, path.stem, left_out)

    def executor() -> Executor:
        from padfix.proof.executors import TensorSpec
        from padfix.sources.tflite_runner import LiteExecutor

        specifications = [
            TensorSpec(name, element_type(dtype), pinned.get(name, shape)) for name, (dtype, shape) in types.items()
        ]
        names = _mapped_names(signature, inputs, outputs)
        inner, beside = _inside(tensorflow, (file, as_it_stands), prepared, outputs, hybrid.get(index))
        return LiteExecutor(
            *(file, specifications, names, (inputs, outputs), prepared.steps),
            *(inner, beside, prepared.is_wide),
        )

    faults = partial(kernel_faults.lite_faults, tensorflow, prepared.model)
    return with_passes_to_leave_out(Source("tflite", convert(), executor, slips, faults), convert)


def _borrowed_operators(model: Any) -> Iterator[str]:
    """Yield the operators of TensorFlow that the model calls: it holds them as custom ones called Flex..."""
    for code in model.operatorCodes or ():
        name = (code.customCode or b"").decode("utf-8", "replace")
        if name.startswith("Flex"):
            yield name.removeprefix("Flex")


def _ports(graph: Any, signature: Any) -> tuple[list[Port], list[Port]]:
    """Return inputs and outputs, in the subgraph's order; a port's ``tensor`` is its index."""

    def paired(indices: Any, mappings: Any, taken: list[str]) -> list[Port]:
        keys = {mapping.tensorIndex: mapping.name.decode() for mapping in mappings or ()}
        # A tensor may be several outputs, and then has several keys.
        if signature is not None and len(keys) < len(mappings):
            indices = [mapping.tensorIndex for mapping in mappings]
            names = [mapping.name.decode() for mapping in mappings]
        else:
            names = [keys.get(index) or _plain(graph.tensors[index].name) for index in indices]
        return unique_names([str(index) for index in indices], names, taken)

    inputs = paired(list(graph.inputs), signature.inputs if signature else (), [])
    outputs = paired(list(graph.outputs), signature.outputs if signature else (), [port.name for port in inputs])
    return inputs, outputs


def _inside(
    tensorflow: Any,
    files: tuple[LiteFile, LiteFile],
    prepared: tflite_graph.Prepared,
    outputs: list[Port],
    hybrid: list[tflite_hybrid.Hybrid] | None,
) -> tuple[LiteInner | None, Beside | None]:
    """Return what runs pieces of the first file, and the second, which has quantised weights, where it is another."""
    from padfix.sources.tflite_inner import LiteInner
    from padfix.sources.tflite_runner import Beside

    names = [tensor.name.decode() for tensor in prepared.graph.tensors]
    aliases = {port.name: names[int(port.tensor)] for port in outputs if port.name != names[int(port.tensor)]}
    inner, as_it_stands = (LiteInner(tensorflow, file, prepared.index, names, aliases) for file in files)
    beside = None
    if files[0] is not files[1]:
        beside = Beside(
            files[1],
            lambda feeds: tflite_hybrid.contradicted(hybrid or [], (inner, as_it_stands), names, feeds),
        )
    # Kernels of whole numbers round in three ways, so pieces run by one set of them say little of the whole.
    return (None if prepared.steps else inner), beside


def _plain(name: bytes | None) -> str:
    return (name or b"").decode("utf-8", "replace").removesuffix(":0") or "tensor"


def _type(tensorflow: Any, details: Mapping[str, Any]) -> tuple[Any, tuple[int | None, ...]]:
    shape = tuple(None if length < 0 else length for length in _lengths(details))
    return tensorflow.dtypes.as_dtype(details["dtype"]), shape


def _lengths(details: Mapping[str, Any]) -> list[int]:
    signature = [int(length) for length in details["shape_signature"]]
    return signature or [int(length) for length in details["shape"]]


def _mapped_names(signature: Any, inputs: list[Port], outputs: list[Port]) -> Any:
    """Return a signature's key and its own names by public name; None where the first subgraph is run as it is."""
    if signature is None or signature.subgraphIndex == 0:
        return None
    keys = [
        {str(item.tensorIndex): item.name.decode() for item in side} for side in (signature.inputs, signature.outputs)
    ]
    return (
        signature.signatureKey.decode(),
        {port.name: keys[0][port.tensor] for port in inputs},
        {port.name: keys[1][port.tensor] for port in outputs},
    )


def _convert(
    prepared: tflite_graph.Prepared,
    ports: tuple[list[Port], list[Port]],
    opset: int | None,
    name: str,
    left_out: Sequence[str],
) -> Model:
    inputs, outputs = ports

    def build() -> Any:
        from tf2onnx import optimizer, tfonnx

        from padfix.sources import tf_ops, tflite_ops
        from padfix.sources.graph_optimizers import optimizers

        wanted = min(opset or conversion.DEFAULT_OPSET, conversion.DEFAULT_OPSET)
        main, bodies = tflite_graph.graphs(prepared)
        for item in (main, *bodies):
            item.set_config(None, wanted, None)
        with tflite_ops.loops_as_written():
            converted = tfonnx.process_graphs(
                main,
                bodies,
                tf_ops.handlers({}) | tflite_ops.handlers(),
                [],
                [],
                True,
                [*tf_ops.rewriters(), *tflite_ops.rewriters(is_wide=prepared.is_wide)],
                {},
                None,
                is_tflite=True,
                dequantize=False,
            )
        converted = optimizer.optimize_graph(converted, catch_errors=True, optimizers=optimizers(left_out))
        proto = converted.make_model(f"converted from {name}")
        settle(proto, [tensor.name.decode() for tensor in prepared.graph.tensors])
        tflite_graph.hand_on(proto, prepared, outputs)
        tflite_metadata.hand_on(proto, prepared.model, prepared.index, (inputs, outputs))
        return proto

    return conversion.checked(build, [port.name for port in inputs], [port.name for port in outputs])
