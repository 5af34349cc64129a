"""Loop, whose scan outputs onnx.reference 1.23 stacks wrongly, and which it does not enter without a condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from onnx import GraphProto, helper
from onnx.reference.ops.op_loop import Loop as _Loop

from padfix.kernels.windows import Array


class Loop(_Loop):
    """Loop of every version.

    A scan output has one axis more than the body's value, the iterations in front; onnx.reference joins matrices end to
    end and turns numbers into a column. An absent condition is true; there it means not to start.
    """

    op_domain = ""
    before_iteration: ClassVar[Callable[[], None]] = staticmethod(lambda: None)
    """Called before each iteration; what it raises ends the loop."""
    body: Any
    _run_body: Any

    def _run(
        self,
        M: Array | None,
        cond: Array | None,
        *initial: Any,
        context: dict[str, Any] | None = None,
        body: Any = None,
        attributes: dict[str, Any] | None = None,
        bindings: dict[str, Any] | None = None,
    ) -> tuple[Any, ...]:
        names: list[str] = list(self.body.input_names)
        carried: list[Any] = list(initial)
        scanned: list[list[Any]] = [[] for _ in range(self.K)]
        limit = None if M is None else int(np.asarray(M).reshape(()))
        going = True if cond is None else bool(np.asarray(cond).reshape(()))
        iteration = 0
        while going and (limit is None or iteration < limit):
            type(self).before_iteration()
            feeds = dict(context or {})
            feeds.update(zip(names, [np.array(iteration, np.int64), np.array(going), *carried], strict=False))
            outputs = list(self._run_body(feeds, attributes=attributes, bindings=bindings))
            going = bool(np.asarray(outputs[0]).reshape(()))
            carried = outputs[1 : 1 + self.N]
            for row, value in zip(scanned, outputs[1 + self.N :], strict=True):
                row.append(value)
            iteration += 1
        stacked = [np.stack(row) if row else self._nothing(number) for number, row in enumerate(scanned)]
        return self._check_and_fix_outputs((*carried, *stacked))

    def _nothing(self, number: int) -> Array:
        """Return scan output ``number`` of no iteration, of the type that the body declares; unknown lengths are 0."""
        (graph,) = (attribute.g for attribute in self.onnx_node.attribute if attribute.name == "body")
        assert isinstance(graph, GraphProto)
        declared = graph.output[1 + self.N + number].type.tensor_type
        shape = [dimension.dim_value for dimension in declared.shape.dim]
        return np.zeros([0, *shape], dtype=helper.tensor_dtype_to_np_dtype(declared.elem_type))
