"""Types of values as ONNX writes them down, and what two of them have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from onnx import NodeProto, TypeProto, ValueInfoProto

from padfix.graph import lengths
from padfix.graph.lengths import is_expression, is_made_up
from padfix.graph.scopes import Dimension, Scope, ValueType

Types = dict[str, TypeProto]

TypeOf = Callable[[str], ValueType | None]
"""Returns the type of a name, as far as it is known."""


@dataclass(frozen=True)
class OperatorTypes:
    """What is known of operators beyond ONNX's own inference; whoever reads operators gives it.

    Attributes:
        covered: (Normalised domain, operator) of the nodes that ``result`` is asked about.
        result: Returns the type of a node's first output, or None when it can't be told; ``elem_type`` 0 leaves the
            element type open. Given the scope, the node of the scope, the node with the attributes that a caller gives
            (the same object where it refers to none), and the types of names.
        alone: Returns the types of all that a node of ONNX without bodies gives, as ONNX's inference has them, None for
            what can't be told. Given the scope, the node, and the types of names.
        put_stand_in: Turns a node into one of ONNX whose first output has the same type; returns whether it did.
    """

    covered: frozenset[tuple[str, str]]
    result: Callable[[Scope, NodeProto, NodeProto, TypeOf], ValueType | None]
    alone: Callable[[Scope, NodeProto, TypeOf], Sequence[ValueType | None]]
    put_stand_in: Callable[[NodeProto], bool]


def value_type(proto: TypeProto) -> ValueType | None:
    """Return the :class:`ValueType` of a tensor type; None for sequences, maps, optionals and untyped values.

    Values of one type share one, because a graph has few types and may have a million values.
    """
    return _value_type(proto.SerializeToString())


@lru_cache(maxsize=4096)
def _value_type(data: bytes) -> ValueType | None:
    proto = TypeProto.FromString(data)
    kind = proto.WhichOneof("value")
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return None
    tensor = getattr(proto, kind)
    if not tensor.HasField("shape"):
        return ValueType(tensor.elem_type, None) if tensor.elem_type else None
    return ValueType(tensor.elem_type, tuple(_dimension(each) for each in tensor.shape.dim))


def contradicts(known: ValueType, claimed: ValueType) -> bool:
    """Whether two types of one value can't both be right: another element type, rank, or known length."""
    if known.elem_type and claimed.elem_type and known.elem_type != claimed.elem_type:
        return True
    if known.shape is None or claimed.shape is None:
        return False
    if len(known.shape) != len(claimed.shape):
        return True
    pairs = zip(known.shape, claimed.shape, strict=True)
    return any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)


def _dimension(proto: object) -> int | str | None:
    if proto.HasField("dim_value"):  # type: ignore[attr-defined]
        value = int(proto.dim_value)  # type: ignore[attr-defined]
        return value if value >= 0 else None
    return proto.dim_param or None  # type: ignore[attr-defined]


def tensor_type(known: ValueType) -> TypeProto:
    """Return a known type as ONNX writes it."""
    proto = TypeProto()
    proto.tensor_type.elem_type = known.elem_type
    if known.shape is not None:
        proto.tensor_type.shape.SetInParent()
        for dimension in known.shape:
            entry = proto.tensor_type.shape.dim.add()
            if isinstance(dimension, int):
                if dimension < 2**63:  # what a product of absurd attributes comes to is no length
                    entry.dim_value = dimension
            elif isinstance(dimension, str):
                entry.dim_param = dimension
    return proto


def declared_types(values: Iterable[ValueInfoProto]) -> Types:
    """Return what a model declares of values, by name; the texts of dimensions are names, whatever they read as."""
    types = {}
    for value in values:
        known = value_type(value.type)
        if known is None or known.shape is None or not value.type.HasField("tensor_type"):
            types[value.name] = value.type
        else:
            shape = tuple(lengths.declared(dimension) for dimension in known.shape)
            types[value.name] = value.type if shape == known.shape else tensor_type(ValueType(known.elem_type, shape))
    return types


def without_shape(proto: TypeProto) -> TypeProto:
    """Return the type with its element type alone."""
    bare = TypeProto()
    if proto.HasField("tensor_type") and proto.tensor_type.elem_type:
        bare.tensor_type.elem_type = proto.tensor_type.elem_type
    elif not proto.HasField("tensor_type"):
        bare.CopyFrom(proto)
    return bare


def common_type(first: TypeProto | None, second: TypeProto | None) -> TypeProto | None:
    """Return what two types agree on; None when that is nothing."""
    if first is None or second is None:
        return None
    if first == second:
        return first
    a, b = value_type(first), value_type(second)
    if a is None or b is None or a.elem_type != b.elem_type:
        return None
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return tensor_type(ValueType(a.elem_type, None))
    return tensor_type(
        ValueType(a.elem_type, tuple(x if x == y else None for x, y in zip(a.shape, b.shape, strict=True)))
    )


def as_seen_outside(proto: TypeProto) -> TypeProto:
    """Return the type as another graph may see it: without made-up symbols."""
    known = value_type(proto)
    if known is None or known.shape is None:
        return proto
    shape = tuple(None if is_made_up(each) else each for each in known.shape)
    return proto if shape == known.shape else tensor_type(ValueType(known.elem_type, shape))


def scalar(elem_type: int) -> TypeProto:
    """Return the type of a single number."""
    return tensor_type(ValueType(elem_type, ()))


def slice_of(proto: TypeProto, axis: int) -> TypeProto:
    """Return the type of what is left of a tensor when one axis goes."""
    known = value_type(proto)
    if known is None or known.shape is None or not -len(known.shape) <= axis < len(known.shape):
        return without_shape(proto)
    axis %= len(known.shape)
    return tensor_type(ValueType(known.elem_type, known.shape[:axis] + known.shape[axis + 1 :]))


def is_more_static(new: TypeProto, old: TypeProto | None) -> bool:
    """Whether more of the lengths are numbers."""
    return _numbers_in(new) > (0 if old is None else _numbers_in(old))


def _numbers_in(proto: TypeProto) -> int:
    known = value_type(proto)
    return 0 if known is None or known.shape is None else sum(isinstance(length, int) for length in known.shape)


def is_lasting(length: Dimension) -> bool:
    """Whether a length is a number, or has a name that the next inference gives it as well."""
    return length is not None and (isinstance(length, int) or not is_made_up(length))


def _says_more(new: Dimension, old: Dimension) -> bool:
    """Whether one way to name an open length says more than another."""
    return is_expression(new) or (new is not None and not is_made_up(new) and is_made_up(old))


def improvement_of(inferred: TypeProto | None, better: TypeProto) -> TypeProto | None:
    """Return ``better``, completed by ``inferred``, when it says a length that ``inferred`` lacks or contradicts.

    A name of the model's own says more than one that shape inference made up.
    """
    wanted = value_type(better)
    if wanted is None or wanted.shape is None:
        return None
    known = None if inferred is None else value_type(inferred)
    if known is None or known.shape is None or len(known.shape) != len(wanted.shape):
        return better
    shape = tuple(
        new if isinstance(new, int) or (not isinstance(old, int) and _says_more(new, old)) else old
        for new, old in zip(wanted.shape, known.shape, strict=True)
    )
    if shape == known.shape:
        return None
    return tensor_type(ValueType(known.elem_type or wanted.elem_type, shape))
