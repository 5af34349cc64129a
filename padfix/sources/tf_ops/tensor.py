"""Arithmetic that is done at once where the operands are known, and becomes ONNX nodes where they are not.

A formula written with :class:`Tensor` serves both kinds of model: with static sizes it leaves a constant, with dynamic
ones a few nodes. Constants are folded in the type that the node would compute in, so both give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Operand = Union["Tensor", Array, float, int]

_BOOL = np.dtype(np.bool_)
FLOAT = np.dtype(np.float32)
INTEGER = np.dtype(np.int64)
TEXT = np.dtype(object)

END = 2**31 - 1
"""A place behind the end of every axis."""

_CHOSEN_AS: dict[str, np.dtype[Any]] = {
    **dict.fromkeys(("bool", "int16", "uint16", "uint64"), INTEGER),
    "bfloat16": FLOAT,
}
"""Types by name that ONNX Runtime has no Where for, and the type that holds each of them."""


class Builder:
    """Adds nodes to a tf2onnx graph, named after the node that they replace."""

    def __init__(self, ctx: Any, stem: str) -> None:
        self.ctx = ctx
        self._stem = stem

    def constant(self, values: Any, dtype: Any) -> Tensor:
        """Return a known tensor; it enters the graph only if a node reads it."""
        return Tensor(self, np.dtype(dtype), array=np.asarray(values, dtype))

    def floats(self, values: Any) -> Tensor:
        """Return a known float32 tensor."""
        return self.constant(values, FLOAT)

    def integers(self, values: Any) -> Tensor:
        """Return a known int64 tensor."""
        return self.constant(values, INTEGER)

    def read(self, output: str) -> Tensor:
        """Return what the node output ``output`` of the graph holds, as a constant where it is one."""
        node = self.ctx.get_node_by_output(output)
        if node is not None and node.is_const():
            array = np.asarray(node.get_tensor_value(as_list=False))
            return Tensor(self, array.dtype, array=array, name=output)
        return Tensor(self, self.type_of(output), name=output)

    def type_of(self, output: str) -> np.dtype[Any]:
        """Return the element type of the node output ``output`` of the graph."""
        from tf2onnx import utils

        found: np.dtype[Any] = np.dtype(utils.map_onnx_to_numpy_type(self.ctx.get_dtype(output)))
        return found

    def rank_of(self, output: str, what: str) -> int:
        """Return how many axes a node output has, which the error calls ``what``.

        Raises:
            ValueError: It is not known.
        """
        rank = self.ctx.get_rank(output)
        if rank is None:
            raise ValueError(f"the number of axes of {what} is not known")
        return int(rank)

    def producer(self, output: str) -> Any:
        """Return the node that computes ``output``, seen through nodes that keep the numbers; None for an input."""
        node = self.ctx.get_node_by_output(output)
        while node is not None and node.type in ("Cast", "Identity", "Squeeze", "Unsqueeze", "Reshape"):
            node = self.ctx.get_node_by_output(node.input[0])
        return node

    def node(
        self,
        operator: str,
        inputs: Sequence[Tensor],
        dtype: np.dtype[Any],
        attributes: Mapping[str, Any] | None = None,
        *,
        domain: str = "",
    ) -> Tensor:
        """Add a node and return its result."""
        return self.nodes(operator, inputs, [dtype], attributes, domain=domain)[0]

    def nodes(
        self,
        operator: str,
        inputs: Sequence[Tensor],
        dtypes: Sequence[np.dtype[Any]],
        attributes: Mapping[str, Any] | None = None,
        *,
        domain: str = "",
        body: Any = None,
    ) -> list[Tensor]:
        """Add a node of several results and return these; ``body`` is the graph that a loop runs in each turn."""
        from tf2onnx import utils

        made = self.ctx.make_node(
            operator,
            [tensor.name for tensor in inputs],
            dict(attributes or {}),
            output_count=len(dtypes),
            name=utils.make_name(f"{self._stem}_{operator}"),
            dtypes=[utils.map_numpy_to_onnx_dtype(dtype) for dtype in dtypes],
            domain=domain,
            branches=None if body is None else {"body": body},
        )
        return [Tensor(self, dtype, name=str(name)) for dtype, name in zip(dtypes, made.output, strict=True)]

    def body(
        self, inputs: Mapping[str, tuple[np.dtype[Any], Sequence[int]]], turn: Callable[..., Sequence[Tensor]]
    ) -> Any:
        """Return the body of a loop, whose ``turn`` takes ``inputs``, of a type and a shape each, as its tensors."""
        from tf2onnx import utils

        graph = self.ctx.create_new_graph_with_same_config()
        graph.parent_graph = self.ctx
        inner, given = Builder(graph, utils.make_name(self._stem)), []
        for stem, (dtype, shape) in inputs.items():
            given.append(Tensor(inner, dtype, name=utils.make_name(stem)))
            graph.add_graph_input(given[-1].name, utils.map_numpy_to_onnx_dtype(dtype), list(shape))
        for result in turn(*given):
            graph.add_graph_output(inner.node("Identity", [result], result.dtype).name)
        return graph

    def finish(self, results: Tensor | Sequence[Tensor], node: Any) -> None:
        """Let ``results`` take the place of the outputs of the TensorFlow node ``node``, and remove that.

        A handler that gives fewer results than the node has outputs leaves out the last ones.
        """
        results = [results] if isinstance(results, Tensor) else results
        outputs = list(node.output)[: len(results)]
        dtypes, shapes = map(self.ctx.get_dtype, outputs), map(self.ctx.get_shape, outputs)
        # A constant enters the graph by its name, while the old node is still in it.
        found = list(zip([result.name for result in results], outputs, dtypes, shapes, strict=True))
        self.ctx.remove_node(node.name)
        for index, (name, output, dtype, shape) in enumerate(found):
            stem = f"{node.name}/padfix_{index}" if index else node.name
            self.ctx.make_node("Identity", [name], name=stem, outputs=[output], dtypes=[dtype], shapes=[shape])

    def choose(self, condition: Tensor, positive: Operand, negative: Operand) -> Tensor:
        """Return elements of ``positive`` where ``condition`` holds, and of ``negative`` elsewhere."""
        dtype = next(side.dtype for side in (positive, negative) if isinstance(side, Tensor))
        sides = [side if isinstance(side, Tensor) else self.constant(side, dtype) for side in (positive, negative)]
        through: np.dtype[Any] = _CHOSEN_AS.get(dtype.name, dtype)
        chosen = self._apply("Where", [condition, *(side.cast(through) for side in sides)], through, np.where)
        return chosen.cast(dtype)

    def _apply(
        self,
        operator: str,
        inputs: Sequence[Tensor],
        dtype: np.dtype[Any],
        fold: Callable[..., Any],
        attributes: Mapping[str, Any] | None = None,
    ) -> Tensor:
        arrays = [tensor.array for tensor in inputs]
        if all(array is not None for array in arrays):
            with np.errstate(all="ignore"):
                return Tensor(self, dtype, array=np.asarray(fold(*arrays), dtype))
        return self.node(operator, inputs, dtype, attributes)

    def _store(self, array: Array) -> str:
        from tf2onnx import utils

        name = utils.make_name(f"{self._stem}_constant")
        return str(self.ctx.make_const(name, np.ascontiguousarray(array).reshape(array.shape)).output[0])


def _unary(operator: str, fold: Callable[..., Any]) -> Callable[[Tensor], Tensor]:
    return lambda tensor: tensor.builder._apply(operator, [tensor], tensor.dtype, fold)


def _binary(
    operator: str, fold: Callable[..., Any], dtype: np.dtype[Any] | None = None
) -> Callable[[Tensor, Operand], Tensor]:
    def computed(left: Tensor, other: Operand) -> Tensor:
        right = other if isinstance(other, Tensor) else left.builder.constant(other, left.dtype)
        return left.builder._apply(operator, [left, right], dtype or left.dtype, fold)

    return computed


def _quotient(left: Any, right: Any) -> Any:
    return np.floor_divide(left, right) if left.dtype.kind == "i" else np.divide(left, right)


class Tensor:
    """A tensor with its values where they are known (``array``), or computed by a node.

    Operands of arithmetic take the type of the tensor they meet. Division of integers is for numbers that are not
    negative.
    """

    def __init__(
        self, builder: Builder, dtype: np.dtype[Any], *, array: Array | None = None, name: str | None = None
    ) -> None:
        self.builder, self.dtype, self.array, self._name = builder, dtype, array, name

    __add__ = _binary("Add", np.add)
    __sub__ = _binary("Sub", np.subtract)
    __mul__ = _binary("Mul", np.multiply)
    __truediv__ = _binary("Div", _quotient)
    __and__ = _binary("And", np.logical_and, _BOOL)
    __or__ = _binary("Or", np.logical_or, _BOOL)
    less = _binary("Less", np.less, _BOOL)
    greater = _binary("Greater", np.greater, _BOOL)
    equal = _binary("Equal", np.equal, _BOOL)
    minimum = _binary("Min", np.minimum)
    maximum = _binary("Max", np.maximum)
    matmul = _binary("MatMul", np.matmul)
    floor = _unary("Floor", np.floor)
    ceil = _unary("Ceil", np.ceil)
    absolute = _unary("Abs", np.abs)
    sine = _unary("Sin", np.sin)
    cosine = _unary("Cos", np.cos)
    exponential = _unary("Exp", np.exp)
    logarithm = _unary("Log", np.log)
    root = _unary("Sqrt", np.sqrt)
    negated = _unary("Not", np.logical_not)
    modulo = _binary("Mod", np.mod)
    """What is left of a division of integers that rounds down, with the sign of the divisor."""
    round_even = _unary("Round", np.rint)
    """The nearest integer as a float, halves to the even one."""

    @property
    def name(self) -> str:
        """The name in the graph; a constant is stored when first asked for."""
        if self._name is None:
            assert self.array is not None
            self._name = self.builder._store(self.array)
        return self._name

    @property
    def known(self) -> int | None:
        """The value of an integer tensor of one element, where it is known."""
        return None if self.array is None else int(self.array.reshape(-1)[0])

    def is_negative(self) -> Tensor:
        """Return whether the sign of each float is negative, that of a zero included."""
        one = self.builder.constant(1, self.dtype)
        return self.less(0) | (self.equal(0) & (one / self).less(0))

    def round_away(self) -> Tensor:
        """Return the nearest integer as a float, halves away from zero, as C's ``roundf``. For numbers above -0.5."""
        whole = self.floor()
        # Not floor(x + 0.5): the sum can round up to the next integer.
        return whole + (self - whole).less(0.5).negated().cast(self.dtype)

    def remainder(self, other: Operand) -> Tensor:
        """Return what is left of a division that cuts off, with the sign of the dividend, as C's ``fmod``."""
        right = other if isinstance(other, Tensor) else self.builder.constant(other, self.dtype)
        return self.builder._apply("Mod", [self, right], self.dtype, np.fmod, {"fmod": 1})

    def cast(self, dtype: Any) -> Tensor:
        """Return the elements as ``dtype``."""
        from tf2onnx import utils

        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return self
        to = utils.map_numpy_to_onnx_dtype(dtype)
        return self.builder._apply("Cast", [self], dtype, lambda array: array.astype(dtype), {"to": to})

    def take(self, indices: Operand, axis: int = 0) -> Tensor:
        """Return the entries at ``indices`` along ``axis``."""
        index = indices if isinstance(indices, Tensor) else self.builder.integers(indices)
        return self.builder._apply(
            "Gather", [self, index], self.dtype, lambda array, at: np.take(array, at, axis), {"axis": axis}
        )

    def part(self, start: Operand, end: Operand, axis: int) -> Tensor:
        """Return the entries from ``start`` up to ``end`` along ``axis``, as ONNX's Slice from opset 10 on."""
        given = [each if isinstance(each, Tensor) else self.builder.integers(each) for each in (start, end, axis)]
        return self.builder.node("Slice", [self, *(each.reshape([1]) for each in given)], self.dtype)

    def reshape(self, shape: Sequence[int | Tensor]) -> Tensor:
        """Return the elements in another shape. Lengths may be tensors; 0 keeps a length and -1 takes the rest."""
        wanted = join(self.builder, shape)
        return self.builder._apply("Reshape", [self, wanted], self.dtype, _reshaped)

    def shaped(self, *lengths: Tensor) -> Tensor:
        """Return the elements in the shape that int64 vectors behind each other are, where 0 is a length; opset 14."""
        shape = lengths[0] if len(lengths) == 1 else concatenated(lengths)
        return self.builder.node("Reshape", [self, shape], self.dtype, {"allowzero": 1})

    def unsqueeze(self, axes: Sequence[int]) -> Tensor:
        """Return the elements with further axes of length one, which are at ``axes`` of the result."""
        places = list(axes)
        if self.builder.ctx.opset < 13:
            return self.builder._apply(
                "Unsqueeze", [self], self.dtype, lambda array: np.expand_dims(array, tuple(places)), {"axes": places}
            )
        return self.builder._apply(
            "Unsqueeze",
            [self, self.builder.integers(places)],
            self.dtype,
            lambda array, at: np.expand_dims(array, tuple(at)),
        )

    def scattered(self, places: Tensor, given: Tensor, reduction: str = "", *, axis: int = 0) -> Tensor:
        """Return the tensor with what is ``given`` at places along an axis, in order, as ONNX's ScatterElements."""
        attributes = {"axis": axis, **({"reduction": reduction} if reduction else {})}
        return self.builder.node("ScatterElements", [self, places, given], self.dtype, attributes)

    def expand(self, shape: Tensor) -> Tensor:
        """Return the elements repeated along axes of length one, to ``shape``, an int64 vector."""
        return self.builder._apply("Expand", [self, shape], self.dtype, np.broadcast_to)

    def transpose(self, permutation: Sequence[int]) -> Tensor:
        """Return the tensor with its axes in another order."""
        order = list(permutation)
        return self.builder._apply(
            "Transpose", [self], self.dtype, lambda array: np.transpose(array, order), {"perm": order}
        )

    def shape(self) -> Tensor:
        """Return the lengths that the graph knows before it runs where it knows all of them, else those of the run."""
        if self.array is not None:
            return self.builder.integers(self.array.shape)
        return self.builder.node("Shape", [self], INTEGER)

    def lengths(self, axes: Sequence[int]) -> list[Tensor]:
        """Return the length of each axis in ``axes`` as a scalar, known ones as constants."""
        shape = self.builder.ctx.get_shape(self.name) if self.array is None else self.array.shape
        unknown = None if shape is not None and all(shape[axis] >= 0 for axis in axes) else self.shape()
        lengths = []
        for axis in axes:
            known = shape[axis] if shape is not None else -1
            if known >= 0:
                lengths.append(self.builder.integers(known))
            else:
                assert unknown is not None
                lengths.append(unknown.take(axis))
        return lengths


def join(builder: Builder, parts: Sequence[int | Tensor]) -> Tensor:
    """Return one int64 vector of numbers and tensors of one element."""
    known = [part if isinstance(part, int) else part.known for part in parts]
    if all(value is not None for value in known):
        return builder.integers(known)
    pieces = [builder.integers([part]) if isinstance(part, int) else part.cast(INTEGER).reshape([1]) for part in parts]
    return concatenated(pieces)


def concatenated(parts: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Return tensors of one type behind each other."""
    return parts[0].builder.node("Concat", parts, parts[0].dtype, {"axis": axis})


def filled(value: Any, dtype: Any, shape: Tensor) -> Tensor:
    """Return a tensor of ``shape``, an int64 vector, with ``value`` everywhere."""
    from onnx import numpy_helper

    single = np.asarray([value], dtype)
    return shape.builder._apply(
        "ConstantOfShape",
        [shape],
        single.dtype,
        lambda lengths: np.full(lengths, value),
        {"value": numpy_helper.from_array(single)},
    )


def count_up(builder: Builder, stop: Tensor, dtype: np.dtype[Any] = FLOAT) -> Tensor:
    """Return 0, 1, ... below ``stop``, a scalar, as float32, which is exact below 2**24, or as ``dtype``."""
    if stop.known is not None:
        return builder.constant(np.arange(stop.known), dtype)
    inputs = [builder.integers(0), stop.cast(INTEGER), builder.integers(1)]
    return builder.node("Range", inputs, INTEGER).cast(dtype)


def _reshaped(array: Array, lengths: Array) -> Array:
    return array.reshape([length or array.shape[axis] for axis, length in enumerate(lengths)])
