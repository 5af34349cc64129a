"""The nodes of functions in the place of their calls, for targets that read no functions of a model's own."""

from __future__ import annotations

from padfix.files.model import Model
from padfix.graph.scopes import all_nodes
from padfix.operators.refusal import Refusal


def inline_functions(model: Model) -> Refusal | None:
    """Put the nodes of all functions in the place of their calls; return why that can't be done.

    The model is edited in place, and left as it is where one of its functions has to stay.
    """
    from onnx import inliner

    domains = {function.domain for function in model.proto.functions}
    inlined = inliner.inline_local_functions(model.proto)
    if inlined.functions:
        names = ", ".join(repr(function.name) for function in inlined.functions[:3])
        return Refusal(f"{names} can't take the place of its calls: it is written for another opset than the model.")
    domains -= {node.domain for node in all_nodes(inlined.graph.node)}
    for index in reversed(range(len(inlined.opset_import))):
        if inlined.opset_import[index].domain in domains:
            del inlined.opset_import[index]
    model.proto.CopyFrom(inlined)
    return None
