"""Where TensorFlow's CPU kernels compute something else than TensorFlow documents.

A conversion follows the documentation, so at these nodes a right result differs from TensorFlow's numbers. Each known
fault is tried on the machine before it is blamed, because which kernel runs depends on the processor and the type.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from padfix.geometry.padding import effective_kernel, same_output_size
from padfix.proof.executors import Array
from padfix.sources.tensorflow_runtime import quiet
from padfix.sources.tflite_schema import constant_of, operators, type_name

WITHOUT_DELEGATE = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
"""TensorFlow Lite's own kernels, without XNNPACK, to which it hands most of a model of floats by itself."""

_CONVOLUTIONS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D"})
_VOLUMES = frozenset({"Conv3D", "MaxPool3D", "AvgPool3D"})
_FUSED = frozenset({"FusedPadConv2D", "FusedResizeAndPadConv2D"})
_MIXED = "it gives the first image's result for every image of a batch"
_LITE = "TensorFlow Lite's own kernel contradicts TensorFlow's documentation"
_PLAIN = "TensorFlow's own CPU kernel contradicts TensorFlow's documentation"


def suspects(graph_def: Any) -> Any:
    """Return the nodes of a GraphDef that the functions below look at, without the weights."""
    found = type(graph_def)()
    constants = {}
    for node in graph_def.node:
        if node.op == "Const":
            constants[node.name] = node
        elif node.op in _FUSED | _VOLUMES:
            found.node.add().CopyFrom(node)
    for function in graph_def.library.function:
        found.node.extend(node for node in function.node_def if node.op in _FUSED | _VOLUMES)
    kernels = {node.input[1].split(":")[0] for node in found.node if node.op == "Conv3D"}
    for name in sorted(kernels & constants.keys()):
        kernel = found.node.add(name=name, op="Const")
        kernel.attr["value"].tensor.tensor_shape.CopyFrom(constants[name].attr["value"].tensor.tensor_shape)
    return found


def mixes_images(tensorflow: Any, graph_def: Any) -> list[str]:
    """Return a sentence for each node that is only right for batches of one image."""
    if not any(node.op in _FUSED for node in graph_def.node):
        return []
    return [sentence for sentence in faults(tensorflow, graph_def) if _MIXED in sentence]


def faults(tensorflow: Any, graph_def: Any) -> list[str]:
    """Return one sentence for each node of a GraphDef that TensorFlow runs against its own documentation here."""
    found = []
    looked_at = suspects(graph_def).node
    constants = {node.name: node for node in looked_at if node.op == "Const"}
    for node in looked_at:
        with contextlib.suppress(Exception), tensorflow.init_scope(), tensorflow.device("/cpu:0"):
            if node.op in _FUSED and _mixes_images(tensorflow, node.attr["T"].type):
                found.append(f"{_PLAIN} at {node.op} {node.name!r}: {_MIXED}.")
            elif node.op in _VOLUMES and node.attr["padding"].s == b"SAME":
                found.extend(_volume_faults(tensorflow, node, constants))
    return found


def lite_faults(tensorflow: Any, model: Any) -> list[str]:
    """Return the same for the operators of a TensorFlow Lite file, a ``ModelT``, and its interpreter."""
    found = []
    for graph in model.subgraphs:
        for operator, name in operators(model, graph):
            result = f"{name} {graph.tensors[operator.outputs[0]].name.decode()!r}"
            sizes = constant_of(model, graph.tensors[operator.inputs[1]]) if name == "RFFT2D" else None
            if sizes is not None and sizes[-1] == 1 and _doubles_single_numbers(tensorflow):
                found.append(
                    f"{_LITE} at {result}: what it makes of single numbers (a transform of length 1) has each as its "
                    "imaginary part too, which is zero."
                )
            options = operator.builtinOptions
            if name == "CONV_3D_TRANSPOSE" and options.padding == 0:
                taps = [int(length) for length in graph.tensors[operator.inputs[1]].shape[:3]]
                strides = [options.strideD, options.strideH, options.strideW]
                if _misplaces_depth(tensorflow, taps, strides):
                    found.append(
                        f"{_LITE} at {result}: with SAME padding, a window of {taps} and strides of {strides}, it "
                        "adds to other places than documented; its reference kernel does not."
                    )
    return found


def delegate_faults(tensorflow: Any, model: Any) -> list[str]:
    """Return a sentence for each convolution of a ``ModelT`` that XNNPACK runs against TensorFlow's documentation here.

    Where strides are longer than the window along one axis, SAME padding cuts the end off there. XNNPACK (TensorFlow
    2.21) gives zeros then, unless it cuts along both axes.
    """
    found = []
    tried: dict[tuple[Any, ...], bool] = {}
    for graph in model.subgraphs:
        for operator, name in operators(model, graph):
            window = _cutting_window(graph, operator) if name in _CONVOLUTIONS else None
            if window is None:
                continue
            taps, strides, lengths = window
            key = (name, *taps, *strides, lengths)
            if key not in tried:
                sizes = [lengths] if lengths else _uneven(strides)
                tried[key] = any(_is_zero_on_delegate(tensorflow, name, taps, strides, size) for size in sizes)
            if tried[key]:
                result = graph.tensors[operator.outputs[0]].name.decode()
                found.append(
                    f"TensorFlow Lite hands {name} {result!r} to XNNPACK, which gives zeros for it: SAME padding of a "
                    f"window of {taps} with strides of {strides} cuts an end off. The original was run without XNNPACK."
                )
    return found


def _cutting_window(graph: Any, operator: Any) -> tuple[list[int], list[int], tuple[int, ...] | None] | None:
    """Return taps, strides and the lengths where they are known, if SAME padding may cut an end off float32 images."""
    options = operator.builtinOptions
    image, kernel = (graph.tensors[position] for position in operator.inputs[:2])
    strides = [options.strideH, options.strideW]
    spread = [options.dilationHFactor, options.dilationWFactor]
    taps = [effective_kernel(int(length), step) for length, step in zip(kernel.shape[1:3], spread, strict=True)]
    is_padded = options.padding == 0 and type_name(image.type) == "float32"
    if not is_padded or all(window >= stride for window, stride in zip(taps, strides, strict=True)):
        return None
    is_open = len(image.shape) != 4 or (image.shapeSignature is not None and -1 in image.shapeSignature)
    return taps, strides, None if is_open else tuple(int(each) for each in image.shape[1:3])


def _uneven(strides: Sequence[int]) -> list[tuple[int, ...]]:
    """Return sizes of which strides cut off an end along one axis alone."""
    first, second = strides
    return [(2 * first, 2 * second + 1), (2 * first + 1, 2 * second)]


def _is_zero_on_delegate(
    tensorflow: Any, name: str, taps: Sequence[int], strides: Sequence[int], sizes: Sequence[int]
) -> bool:
    """Whether the interpreter gives zeros for a convolution of ones."""
    ones = np.ones([*taps, 1, 1], np.float32)

    def convolved(x: Any) -> Any:
        if name == "CONV_2D":
            return tensorflow.nn.conv2d(x, ones, list(strides), "SAME")
        return tensorflow.nn.depthwise_conv2d(x, ones, [1, *strides, 1], "SAME")

    return not _interpreted(tensorflow, convolved, np.ones([1, *sizes, 1], np.float32)).any()


def _doubles_single_numbers(tensorflow: Any) -> bool:
    """Whether the transform of one number is another number."""
    ones = np.ones([1, 4], np.float32)
    found = _interpreted(tensorflow, lambda x: tensorflow.abs(tensorflow.signal.rfft(x, [1])), ones)
    return not np.allclose(found, 1)


def _misplaces_depth(tensorflow: Any, taps: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether a padded transposed convolution of volumes is another one."""
    kernel = np.arange(1, math.prod(taps) + 1, dtype=np.float32).reshape([*taps, 1, 1])
    data = np.arange(1, 28, dtype=np.float32).reshape([1, 3, 3, 3, 1])
    size = [1, *(3 * stride for stride in strides), 1]

    def undo(x: Any) -> Any:
        return tensorflow.nn.conv3d_transpose(x, kernel, size, list(strides), "SAME")

    return not np.allclose(_interpreted(tensorflow, undo, data), undo(data), rtol=1e-4)


def _interpreted(tensorflow: Any, compute: Callable[[Any], Any], data: Array) -> Array:
    """Return what the interpreter makes of a function."""
    function = tensorflow.function(compute, input_signature=[tensorflow.TensorSpec(data.shape)])
    with quiet():
        converter = tensorflow.lite.TFLiteConverter.from_concrete_functions(
            [function.get_concrete_function()], tensorflow.Module()
        )
        loaded = tensorflow.lite.Interpreter(model_content=converter.convert(), num_threads=1)
        loaded.allocate_tensors()
        loaded.set_tensor(loaded.get_input_details()[0]["index"], data)
        loaded.invoke()
        return np.asarray(loaded.get_tensor(loaded.get_output_details()[0]["index"]))


def _volume_faults(tensorflow: Any, node: Any, constants: dict[str, Any]) -> Iterator[str]:
    first = 2 if node.attr["data_format"].s.startswith(b"NC") else 1
    strides = list(node.attr["strides"].list.i)[first : first + 3]
    if node.op == "Conv3D":
        held = constants[node.input[1].split(":")[0]].attr["value"].tensor
        kernel = [dimension.size for dimension in held.tensor_shape.dim][:3]
    else:
        kernel = list(node.attr["ksize"].list.i)[first : first + 3]
    element = tensorflow.dtypes.as_dtype(node.attr["T"].type)
    for axis, (taps, stride) in enumerate(zip(kernel, strides, strict=True)):
        if taps < stride and _shifts_windows(tensorflow, node.op, element, axis, taps, stride):
            yield (
                f"{_PLAIN} at {node.op} {node.name!r}: with SAME padding and a window of {taps} that moves by {stride} "
                f"along spatial axis {axis}, nothing is to be padded, but the kernel starts inside the input."
            )
            return


def _shifts_windows(tensorflow: Any, operator: str, element: Any, axis: int, taps: int, stride: int) -> bool:
    """Whether the kernel reads other elements than documented, on inputs of one line."""
    window, steps = [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]
    window[axis + 1], steps[axis + 1] = taps, stride
    for size in range(1, 3 * stride + 1):
        shape = [1, 1, 1, 1, 1]
        shape[axis + 1] = size
        line = np.arange(1.0, size + 1)
        data = tensorflow.cast(line.reshape(shape), element)
        if operator == "Conv3D":
            ones = tensorflow.ones([*window[1:4], 1, 1], element)
            result = tensorflow.raw_ops.Conv3D(input=data, filter=ones, strides=steps, padding="SAME")
        else:
            pool = getattr(tensorflow.raw_ops, operator)
            result = pool(input=data, ksize=window, strides=steps, padding="SAME")
        wanted = _documented(line, operator, taps, stride)
        if not np.allclose(np.asarray(tensorflow.cast(result, tensorflow.float64)).ravel(), wanted):
            return True
    return False


def _documented(line: Any, operator: str, taps: int, stride: int) -> list[float]:
    """Return the result along one line by TensorFlow's formula of SAME padding, which is never below zero."""
    size = len(line)
    count = same_output_size(size, stride)
    begin = max(0, (count - 1) * stride + taps - size) // 2
    combine: Any = {"Conv3D": np.sum, "MaxPool3D": np.max, "AvgPool3D": np.mean}[operator]
    starts = [index * stride - begin for index in range(count)]
    return [float(combine(line[max(0, start) : start + taps])) for start in starts]


def _mixes_images(tensorflow: Any, element: int) -> bool:
    """Whether the second image of a batch gets another result than on its own."""
    kind = tensorflow.dtypes.as_dtype(element)
    images = tensorflow.cast(np.arange(8.0).reshape(2, 2, 2, 1), kind)
    arguments = {
        "paddings": np.zeros([4, 2], np.int32),
        "filter": tensorflow.ones([1, 1, 1, 1], kind),
        "mode": "REFLECT",
        "strides": [1, 1, 1, 1],
        "padding": "VALID",
    }
    both = tensorflow.raw_ops.FusedPadConv2D(input=images, **arguments)
    alone = tensorflow.raw_ops.FusedPadConv2D(input=images[1:], **arguments)
    return not np.array_equal(np.asarray(both[1:]), np.asarray(alone))
