"""The constants that a scope holds, by what of them a target may mind whoever reads them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, TensorProto, helper, numpy_helper

from padfix.graph.scopes import Scope

_Container = GraphProto | FunctionProto

_TYPED = ("float_data", "double_data", "int32_data", "int64_data", "uint64_data")
"""The fields that hold elements one by one."""


@dataclass(frozen=True)
class ConstantKind:
    """Constants of one kind.

    Attributes:
        mark: What a fact calls the kind.
        of: What such a constant is, in one word.
        says: What is said of one, with room for its name.
        hint: What can be done, with room for the target's name.
        tensors: Each one's name and type of elements.
        mend: Sets those of these names right; None where nobody but who calls the model can.
        moves: Whether that adds nodes before others.
    """

    mark: str
    of: str
    says: str
    hint: str
    tensors: tuple[tuple[str, int], ...]
    mend: Callable[[Collection[str]], None] | None
    moves: bool = False


def constant_kinds(scope: Scope, container: _Container) -> Iterator[ConstantKind]:
    """Yield the defaults of inputs, the initializers that nothing reads, and others by what they hold, and how."""
    held = () if isinstance(container, FunctionProto) else tuple(container.initializer)
    defaults = tuple((each.name, each.data_type) for each in held if not scope.is_fixed(each.name))
    unread = [each for each in held if scope.is_fixed(each.name) and not scope.is_used(each.name)]

    def forget(names: Collection[str]) -> None:
        entries = () if isinstance(container, FunctionProto) else (container.initializer, container.input)
        for listed in entries:
            for index in reversed(range(len(listed))):
                if listed[index].name in names:
                    del listed[index]

    def as_bytes(names: Collection[str]) -> None:
        for name, tensor in _written_apart(scope, held):
            if name in names:
                told = numpy_helper.from_array(numpy_helper.to_array(tensor)).raw_data
                for field in _TYPED:
                    tensor.ClearField(field)
                tensor.raw_data = told

    yield ConstantKind(
        "default-of-input",
        "input",
        "The default of the input {!r} can't be one.",
        "Leave out the default, or the input: a constant that no caller can replace is written otherwise.",
        defaults,
        None,
    )
    out = "padfix convert --target {} leaves it out."
    types = tuple((each.name, each.data_type) for each in unread)
    yield ConstantKind("unread-constant", "initializer", "Nothing reads {!r}.", out, types, forget)
    given = _read_constants(scope, held)
    is_integer = {name: not any("Linear" in each.op_type for each in scope.consumers(name)) for name in given}
    integers = tuple(name for name, is_meant in is_integer.items() if is_meant)
    hint = "padfix convert --target {} writes it with 64 bits, and a Cast behind it."
    yield _widened(scope, container, given, integers, ("read-constant", "{!r} can't be one.", hint, np.int64))
    empty = tuple(name for name, tensor in given.items() if 0 in tensor.dims)
    hint = "padfix convert --target {} writes it in single precision, and a Cast behind it."
    yield _widened(scope, container, given, empty, ("empty-constant", "{!r} has no elements.", hint, np.float32))
    apart = tuple((name, tensor.data_type) for name, tensor in _written_apart(scope, held))
    says, hint = "The elements of {!r} are written one by one.", "padfix convert --target {} writes them as bytes."
    yield ConstantKind("elements-apart", "constant", says, hint, apart, as_bytes)


def _read_constants(scope: Scope, held: Collection[TensorProto]) -> dict[str, TensorProto]:
    """Return the constants that something reads."""
    given = {
        node.output[0]: attribute.t
        for node in scope.nodes
        for attribute in node.attribute
        if node.op_type == "Constant" and attribute.name == "value" and node.output
    }
    given |= {each.name: each for each in held if scope.is_fixed(each.name)}
    return {name: tensor for name, tensor in given.items() if scope.consumers(name)}


def _widened(
    scope: Scope,
    container: _Container,
    given: Mapping[str, TensorProto],
    meant: Collection[str],
    said: tuple[str, str, str, type[np.generic]],
) -> ConstantKind:
    """Return the constants that are ``meant`` of those given, each to be held in a wider type with a Cast behind it."""
    mark, says, hint, dtype = said

    def widen(names: Collection[str]) -> None:
        casts = []
        for name in sorted(names):
            tensor, wide = given[name], f"{name}_wide"
            while any(each.defines(wide) for each in (scope, *scope.bodies)):
                wide += "_"
            casts.append(helper.make_node("Cast", [wide], [name], wide, to=tensor.data_type))
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(dtype), wide))
            if (node := scope.producer(name)) is not None:
                node.output[0] = wide
        first = sum(node.op_type == "Constant" for node in container.node)
        kept = sorted(container.node, key=lambda node: node.op_type != "Constant")
        del container.node[:]
        container.node.extend([*kept[:first], *casts, *kept[first:]])

    types = tuple((name, given[name].data_type) for name in meant)
    return ConstantKind(mark, "constant", says, hint, types, widen, moves=True)


def _written_apart(scope: Scope, held: Collection[TensorProto]) -> Iterator[tuple[str, TensorProto]]:
    """Yield each tensor of which a field of its type holds the elements, with its name or that of what a node gives."""
    told = [
        (node.output[0] if node.output else "", attribute.t)
        for node in scope.nodes
        for attribute in node.attribute
        if attribute.type == AttributeProto.TENSOR
    ]
    for name, tensor in [*((each.name, each) for each in held), *told]:
        if tensor.data_location != TensorProto.EXTERNAL and any(len(getattr(tensor, field)) for field in _TYPED):
            yield name, tensor
