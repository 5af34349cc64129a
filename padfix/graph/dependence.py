"""What depends on what: all that follows from something, and inputs and outputs that nothing ties to each other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from onnx import GraphProto

from padfix.graph.scopes import names_of, outer_names_of, weights_of

Item = TypeVar("Item", bound=Hashable)


def reached(start: Iterable[Item], following: Callable[[Item], Iterable[Item]]) -> dict[Item, None]:
    """Return ``start`` and all that follows from it, each once, in the order in which it was found."""
    found: dict[Item, None] = {}
    pending = list(start)
    while pending:
        item = pending.pop()
        if item not in found:
            found[item] = None
            pending.extend(following(item))
    return found


def loose_ends(graph: GraphProto) -> list[str]:
    """Return a sentence on inputs that no output depends on and one on outputs that depend on no input.

    Inputs with a default (an initializer of the same name) are left out, and a graph without other inputs altogether.
    """
    given = set(names_of(weights_of(graph)))
    inputs = [name for name in names_of(graph.input) if name not in given]
    outputs = names_of(graph.output)
    if not inputs:
        return []
    reads = [{*node.input, *outer_names_of(node)} for node in graph.node]
    fed, needed = set(inputs), set(outputs)
    for node, names in zip(graph.node, reads, strict=True):
        if not fed.isdisjoint(names):
            fed.update(node.output)
    for node, names in zip(reversed(graph.node), reversed(reads), strict=True):
        if not needed.isdisjoint(node.output):
            needed.update(names)
    sentences = []
    unused = [name for name in inputs if name not in needed]
    if unused:
        sentences.append(f"No output depends on the {_listed('input', unused)}.")
    fixed = [name for name in outputs if name not in fed]
    if fixed:
        depends = "depends" if len(fixed) == 1 else "depend"
        sentences.append(f"The {_listed('output', fixed)} {depends} on none of the inputs.")
    return sentences


def _listed(what: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"{what} {shown}" if len(names) == 1 else f"{what}s {shown}"
