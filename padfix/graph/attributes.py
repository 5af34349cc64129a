"""Reading and editing the attributes of one node, everything else of it left as it is."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import AttributeProto, NodeProto


def find(node: NodeProto, name: str) -> AttributeProto | None:
    """Return the attribute called ``name``, or None."""
    found: AttributeProto | None = next((each for each in node.attribute if each.name == name), None)
    return found


def integers(node: NodeProto, name: str) -> list[int] | None:
    """Return an INTS attribute as a list, or None when absent."""
    attribute = find(node, name)
    return None if attribute is None else list(attribute.ints)


def integer(node: NodeProto, name: str, default: int) -> int:
    """Return an INT attribute, or ``default`` when absent."""
    attribute = find(node, name)
    return default if attribute is None else int(attribute.i)


def text(node: NodeProto, name: str, default: str = "") -> str:
    """Return a STRING attribute, or ``default`` when absent; bytes that are not UTF-8 are replaced."""
    attribute = find(node, name)
    return default if attribute is None else attribute.s.decode("utf-8", "replace")


def is_reference(node: NodeProto, name: str) -> bool:
    """Whether the attribute's value is given by the caller of the function that holds the node."""
    attribute = find(node, name)
    return attribute is not None and bool(attribute.ref_attr_name)


def remove(node: NodeProto, *names: str) -> None:
    """Delete the attributes called ``names``; those that are absent are ignored."""
    for index in reversed(range(len(node.attribute))):
        if node.attribute[index].name in names:
            del node.attribute[index]


def set_integers(node: NodeProto, name: str, values: Sequence[int]) -> None:
    """Set an INTS attribute, in place when it is there."""
    _emptied(node, name, AttributeProto.INTS).ints.extend(values)


def set_integer(node: NodeProto, name: str, value: int) -> None:
    """Set an INT attribute, in place when it is there."""
    _emptied(node, name, AttributeProto.INT).i = value


def set_text(node: NodeProto, name: str, value: str) -> None:
    """Set a STRING attribute, in place when it is there."""
    _emptied(node, name, AttributeProto.STRING).s = value.encode()


def _emptied(node: NodeProto, name: str, kind: AttributeProto.AttributeType) -> AttributeProto:
    """Return the attribute called ``name``, made where it is absent, without a value and of a type."""
    attribute = find(node, name) or node.attribute.add(name=name)
    attribute.ClearField("ref_attr_name")
    attribute.ClearField("ints")
    attribute.type = kind
    return attribute
