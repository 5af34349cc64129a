"""What no rewrite touches is byte-identical, in a model that holds one of everything."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import FunctionProto, GraphProto, ModelProto

import padfix

SOURCE = Path(__file__).parents[1].parent / "fixtures" / "lossless" / "before.onnx"


def without_nodes(container: GraphProto | FunctionProto) -> bytes:
    copy = type(container)()
    copy.CopyFrom(container)
    del copy.node[:]
    return bytes(copy.SerializeToString(deterministic=True))


def without_bodies(model: ModelProto) -> bytes:
    copy = ModelProto()
    copy.CopyFrom(model)
    copy.ClearField("graph")
    del copy.functions[:]
    return bytes(copy.SerializeToString(deterministic=True))


def compare_nodes(before: GraphProto | FunctionProto, after: GraphProto | FunctionProto, place: str) -> int:
    """Return how many nodes differ; each may differ in its padding attributes alone."""
    assert without_nodes(before) == without_nodes(after), place
    assert len(before.node) == len(after.node), place
    changed = 0
    for old, new in zip(before.node, after.node, strict=True):
        if old.SerializeToString(deterministic=True) == new.SerializeToString(deterministic=True):
            continue
        kept = [
            {
                each.name: each.SerializeToString(deterministic=True)
                for each in node.attribute
                if each.name not in ("auto_pad", "pads") and each.type != onnx.AttributeProto.GRAPH
            }
            for node in (old, new)
        ]
        assert kept[0] == kept[1]
        bodies = [[each for each in node.attribute if each.type == onnx.AttributeProto.GRAPH] for node in (old, new)]
        for inner, outer in zip(*bodies, strict=True):
            changed += compare_nodes(inner.g, outer.g, f"{place}/{old.name}")
        changed += not bodies[0]
        for node in (old, new):
            del node.attribute[:]
        assert old.SerializeToString(deterministic=True) == new.SerializeToString(deterministic=True)
    return changed


def test_only_what_a_rewrite_touches_differs(tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    report = padfix.convert(SOURCE, output)
    before, after = onnx.load(SOURCE), onnx.load(output)
    assert without_bodies(before) == without_bodies(after)
    assert [function.name for function in before.functions] == [function.name for function in after.functions]
    changed = compare_nodes(before.graph, after.graph, "main")
    for old, new in zip(before.functions, after.functions, strict=True):
        changed += compare_nodes(old, new, old.name)
    assert changed == len(report.rewrites) > 0


def test_without_a_rewrite_the_file_is_the_same(tmp_path: Path) -> None:
    once, twice = tmp_path / "once.onnx", tmp_path / "twice.onnx"
    padfix.convert(SOURCE, once)
    padfix.convert(once, twice)
    assert once.read_bytes() == twice.read_bytes()
