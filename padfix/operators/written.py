"""The attributes of a windowed or transposed node, and where a node stands: what readers work from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from onnx import AttributeProto, NodeProto, defs

from padfix.graph.scopes import DEFAULT_DOMAIN, ValueType, normal_domain
from padfix.operators.refusal import Meaningless, Refusal, TooLong
from padfix.operators.schemas import schema
from padfix.operators.table import Operator

LONGEST = 2**31 - 1
"""The longest window or stride that is read; runtimes count in 32 bits in many places."""

SAME = ("SAME_UPPER", "SAME_LOWER")
PADDING_MODES = frozenset({*SAME, "VALID", "NOTSET", ""})

_LISTS = ("kernel_shape", "strides", "dilations", "pads", "output_shape", "output_padding")
_NUMBERS = ("ceil_mode", "count_include_pad", "storage_order", "group", "channels_last")
_READ = frozenset({"auto_pad", *_LISTS, *_NUMBERS} - {"storage_order", "channels_last"})

Integers = tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """Where a node stands.

    Attributes:
        path: The scope's, for messages.
        opset: The imported version of the node's domain; None where nothing imports one.
        type_of: The type of a value by name.
        constant: The value of a name that can never have another.
        computed: The same, also of what the graph computes from constants alone.
    """

    path: str
    opset: int | None
    type_of: Callable[[str], ValueType | None]
    constant: Callable[[str], np.ndarray | None]
    computed: Callable[[str], np.ndarray | None] = lambda name: None

    def type_at(self, node: NodeProto, position: int | None) -> ValueType | None:
        """Return the type of an input; None where it is omitted or unknown."""
        name = _name(node, position)
        return self.type_of(name) if name else None

    def constant_at(self, node: NodeProto, position: int | None) -> np.ndarray | None:
        """Return the constant value of an input, or None."""
        name = _name(node, position)
        return self.constant(name) if name else None


def _name(node: NodeProto, position: int | None) -> str:
    return node.input[position] if position is not None and position < len(node.input) else ""


@dataclass(frozen=True)
class Written:
    """What the attributes of a node say; a list or text is None where the attribute is absent.

    ``references`` are the attributes that the callers of a function give.
    """

    auto_pad: str | None = None
    kernel_shape: Integers | None = None
    strides: Integers | None = None
    dilations: Integers | None = None
    pads: Integers | None = None
    output_shape: Integers | None = None
    output_padding: Integers | None = None
    ceil_mode: bool = False
    count_include_pad: bool = False
    storage_order: int = 0
    group: int = 1
    channels_last: bool = False
    present: frozenset[str] = field(default=frozenset(), repr=False)
    references: frozenset[str] = frozenset()

    @property
    def mode(self) -> str:
        """``auto_pad``, with ``""`` for what says nothing: NOTSET, and no attribute at all."""
        return "" if self.auto_pad in (None, "NOTSET") else self.auto_pad or ""


def read_attributes(node: NodeProto) -> Written:
    """Return what the attributes of ``node`` say, in one pass."""
    values: dict[str, object] = {}
    references = set()
    for attribute in node.attribute:
        name = attribute.name
        if attribute.ref_attr_name:
            references.add(name)
        if name in _LISTS:
            values[name] = tuple(attribute.ints)
        elif name in _NUMBERS:
            number = int(attribute.i)
            values[name] = number if name in ("group", "storage_order") else number != 0
        elif name == "auto_pad":
            values[name] = attribute.s.decode("utf-8", "replace")
    present = frozenset(values)
    return Written(**values, present=present, references=frozenset(references))  # type: ignore[arg-type]


def refused_attributes(node: NodeProto, operator: Operator, written: Written, place: Place) -> Refusal | None:
    """Return why attributes or the number of inputs can't be read, whatever the family; None where they can."""
    if operator.declined:
        return Refusal(operator.declined)
    given = sorted(_READ & written.references)
    if given:
        return Refusal(
            f"The attribute {given[0]} of this node is given by the callers of {place.path}, and they may differ: "
            "inline the function, or write a value for it in the function's body."
        )
    wrong = wrong_arity(node, place.opset, operator.arity)
    if wrong:
        return Meaningless(wrong)
    if written.auto_pad is not None and written.auto_pad not in PADDING_MODES:
        return Meaningless(
            f"auto_pad={written.auto_pad!r} is no value of the specification: use NOTSET, SAME_UPPER, SAME_LOWER or "
            "VALID."
        )
    if written.group < 1:
        return Meaningless(f"group={written.group} must be 1 or more; correct the node.")
    return None


def refused_versions(node: NodeProto, operator: Operator, written: Written, place: Place) -> Refusal | None:
    """Return which attribute the operator does not have in the version that the model is written for."""
    for name, since in operator.since.items():
        if name in written.present and place.opset is not None and place.opset < since:
            return Refusal(
                f"{node.op_type} has no attribute {name} before opset {since} and this model is written for "
                f"opset {place.opset}, so runtimes ignore or reject it: remove it or raise the model's opset."
            )
    return None


def refused_lists(lists: Mapping[str, tuple[Integers | None, int, int]]) -> Refusal | None:
    """Return which list has a wrong length or a number that can't be.

    ``lists`` has by name the values (None is right), how many there must be, and the least that each may be.
    """
    for name, (values, count, least) in lists.items():
        if values is None:
            continue
        least_of_all = {0: ", none of them negative", 1: ", all of 1 and more"}.get(least, "")
        wrong = f"{name}={list(values)} does not fit: {count} values of up to {LONGEST} are needed{least_of_all}."
        if len(values) != count or min(values, default=least) < least:
            return Meaningless(wrong)
        if max(values, default=0) > LONGEST:
            return TooLong(wrong)
    return None


@lru_cache(maxsize=4096)
def _schema_arity(op_type: str, opset: int) -> tuple[int, int, tuple[int, ...]] | None:
    """Return (least, greatest number of inputs, the positions that must be given) of an operator of ONNX."""
    found = schema(op_type, opset)
    if found is None:
        return None
    single = defs.OpSchema.FormalParameterOption.Single
    required = tuple(position for position, each in enumerate(found.inputs) if each.option == single)
    return found.min_input, found.max_input, required


@lru_cache(maxsize=4096)
def _schema_attributes(op_type: str, opset: int) -> Mapping[str, int]:
    """Return the kinds of the attributes of an operator of ONNX, as ``AttributeProto.AttributeType``."""
    found = schema(op_type, opset)
    return {
        name: AttributeProto.AttributeType.Value(str(each.type).rpartition(".")[2])
        for name, each in (found.attributes if found is not None else {}).items()
    }


def wrong_attribute(node: NodeProto, opset: int | None) -> str:
    """Return which attribute of ``node`` is of another kind than its operator's; empty where none is."""
    if normal_domain(node.domain) != DEFAULT_DOMAIN or not node.attribute:
        return ""
    known = _schema_attributes(node.op_type, opset or defs.onnx_opset_version())
    for attribute in node.attribute:
        wanted = known.get(attribute.name, attribute.type)
        if attribute.type not in (wanted, AttributeProto.UNDEFINED):
            kinds = [AttributeProto.AttributeType.Name(each) for each in (attribute.type, wanted)]
            return f"its attribute {attribute.name} is {kinds[0]} where the specification asks for {kinds[1]}."
    return ""


def is_unnamed_at_end(node: NodeProto) -> bool:
    """Whether the last input or output that a node lists is an omitted one, which it need not list."""
    return any(bool(names) and not names[-1] for names in (node.input, node.output))


def wrong_arity(node: NodeProto, opset: int | None, arity: tuple[int, int] | None = None) -> str:
    """Return what is wrong with the number of inputs of ``node``; empty where nothing is, or nothing tells.

    ``opset`` is the imported version of its domain, None for the newest; ``arity`` the least and the greatest number,
    for operators without a schema.
    """
    required: tuple[int, ...] = ()
    if arity is None:
        if normal_domain(node.domain) != DEFAULT_DOMAIN:
            return ""
        known = _schema_arity(node.op_type, opset or defs.onnx_opset_version())
        if known is None:
            return ""
        least, greatest, required = known
    else:
        least, greatest = arity
        required = tuple(range(least))
    count = len(node.input)
    if not least <= count <= greatest:
        wanted = str(least) if least == greatest else f"{least} to {greatest}"
        return f"{node.op_type} has {count} inputs where the specification asks for {wanted}: correct the model."
    missing = [position for position in required if position < count and not node.input[position]]
    if missing:
        return f"{node.op_type} leaves out input {missing[0]}, which the specification requires: correct the model."
    return ""
