"""A node becomes a value, once: what rules, shape inference, ``inspect``, pictures, probes and costs ask.

A reading depends on the node, on the types of its inputs and on their constant values. It is kept in the scope for as
long as the types are the same, so that each node is read once however many rules ask for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from onnx import NodeProto

from padfix.errors import SourceError
from padfix.graph.scopes import DEFAULT_DOMAIN, Scope, ValueType, label, normal_domain
from padfix.graph.types import TypeOf
from padfix.operators.constant_chains import worked_out
from padfix.operators.refusal import Meaningless, Refusal
from padfix.operators.resample import Resample, read_resample_node
from padfix.operators.table import OPERATORS, Family, Operator
from padfix.operators.transposed import TransposedWindow, read_transposed_node
from padfix.operators.window import Window, read_window_node
from padfix.operators.written import SAME, Place, Written, read_attributes, wrong_arity, wrong_attribute

Reading = Window | TransposedWindow | Resample | Refusal


@dataclass(frozen=True)
class _Kept:
    """A reading, with the node (which so keeps its identity) and the types that it was read with."""

    node: NodeProto
    types: tuple[ValueType | None, ...]
    reading: Reading


@dataclass(frozen=True)
class _KeptAttributes:
    node: NodeProto
    written: Written


def operator_of(node: NodeProto) -> Operator | None:
    """Return what there is to know of the node's operator; None where padfix knows nothing."""
    return OPERATORS.get((normal_domain(node.domain), node.op_type))


def _without_version(node: NodeProto, place: Place) -> Refusal | None:
    """Return a refusal for an operator of ONNX in a model that imports no version of them."""
    if place.opset is not None or normal_domain(node.domain) != DEFAULT_DOMAIN:
        return None
    return Refusal(
        f"The model imports no version of ONNX's own operators, so that runtimes guess which {node.op_type} is meant: "
        "add the version that it was made for to the model's opset_import."
    )


def is_resampling(node: NodeProto) -> bool:
    """Whether the node is a Resize or an Upsample."""
    operator = operator_of(node)
    return operator is not None and operator.family is Family.RESAMPLE


def read(scope: Scope, node: NodeProto, type_of: TypeOf | None = None) -> Reading | None:
    """Return what a node says, or why it can't be read; None where its operator is not in the table.

    ``type_of`` tells the types of its inputs where they differ from the scope's own.
    """
    operator = operator_of(node)
    if operator is None:
        return None
    given = type_of or scope.type_of
    types = tuple(given(name) if name else None for name in node.input)
    kept = scope.readings.get(id(node))
    if isinstance(kept, _Kept) and kept.types == types:
        return kept.reading
    written = Written() if operator.family is Family.RESAMPLE else read_attributes_of(scope, node)
    place = place_in(scope, node, given)
    reading = _without_version(node, place) or read_at(node, place, written)
    assert reading is not None
    scope.readings[id(node)] = _Kept(node, types, reading)
    return reading


def read_at(node: NodeProto, place: Place, written: Written | None = None) -> Reading | None:
    """Return what a node says at a place that need not be in a scope; as :func:`read`, and nothing is kept."""
    operator = operator_of(node)
    if operator is None:
        return None
    if operator.family is Family.RESAMPLE:
        return read_resample_node(node, place)
    written = read_attributes(node) if written is None else written
    reader = read_window_node if operator.family is Family.WINDOW else read_transposed_node
    return reader(node, operator, written, place)


def read_attributes_of(scope: Scope, node: NodeProto) -> Written:
    """Return what the attributes of a node of ``scope`` say, whether or not the node can be read."""
    kept = scope.readings.get(-id(node))
    if isinstance(kept, _KeptAttributes):
        return kept.written
    written = read_attributes(node)
    scope.readings[-id(node)] = _KeptAttributes(node, written)
    return written


def asks_for_same(written: Written) -> bool:
    """Whether a node asks for SAME and has no ``pads`` that contradict it."""
    return written.auto_pad in SAME and not written.pads


def place_in(scope: Scope, node: NodeProto, type_of: TypeOf | None = None) -> Place:
    """Return where ``node`` stands, for :func:`read_at`."""
    opset = scope.opsets.get(normal_domain(node.domain))
    known = partial(worked_out, scope, type_of=type_of)
    return Place(scope.path, opset, type_of or scope.type_of, scope.constant, known)


def read_window(scope: Scope, node: NodeProto) -> Window | Refusal:
    """Return the window of a convolution or pool, or why it can't be read."""
    reading = read(scope, node)
    assert isinstance(reading, Window | Refusal)
    return reading


def read_transposed(scope: Scope, node: NodeProto) -> TransposedWindow | Refusal:
    """Return the window of a transposed convolution, or why it can't be read."""
    reading = read(scope, node)
    assert isinstance(reading, TransposedWindow | Refusal)
    return reading


def read_resample(scope: Scope, node: NodeProto) -> Resample | Refusal:
    """Return what a Resize or Upsample says, or why it can't be understood."""
    reading = read(scope, node)
    assert isinstance(reading, Resample | Refusal)
    return reading


def window_assumed(scope: Scope, node: NodeProto, rank: int) -> Window | Refusal:
    """Return the window of a node of which nothing tells the number of axes, if it had ``rank`` spatial ones."""
    operator = operator_of(node)
    assert operator is not None
    return read_window_node(node, operator, read_attributes_of(scope, node), place_in(scope, node), rank)


def why_meaningless(scope: Scope, node: NodeProto) -> str:
    """Return why a node of ``scope`` has no meaning; empty where it may have one."""
    opset = scope.opsets.get(normal_domain(node.domain))
    wrong = wrong_attribute(node, opset)
    if wrong:
        return wrong
    reading = read(scope, node)
    if reading is None:
        return wrong_arity(node, opset)
    return reading.reason if isinstance(reading, Meaningless) else ""


def require_meaning(scopes: Iterable[Scope]) -> None:
    """Make sure that every node of a model can have a meaning.

    Raises:
        SourceError: Naming the first node that can't, and why.
    """
    for scope in scopes:
        for index, node in enumerate(scope.nodes):
            reason = why_meaningless(scope, node)
            if reason:
                raise SourceError(
                    f"{node.op_type} {label(node, index)!r} in {scope.path} has no meaning: {reason}",
                    "No runtime can run it; export the model again.",
                )
