"""What a model declares of its outputs, corrected by shape inference, held against a run of the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from padfix.errors import PadfixError
from padfix.files.model import Model
from padfix.graph.scopes import ValueType
from padfix.graph.types import contradicts, value_type


def restore_contradicted(original: Model, model: Model, shapes: Mapping[str, Sequence[int]]) -> list[str]:
    """Give outputs their old declarations back where running the original contradicts a corrected one.

    Nothing is run where no declaration was corrected. A model that can't be run contradicts nothing. ``model`` is
    edited in place; ``shapes`` are those that the user fixed.

    Returns:
        A sentence for each declaration that stays as it was.
    """
    before = {value.name: value for value in original.proto.graph.output}
    corrected = [
        (before[value.name], value)
        for value in model.proto.graph.output
        if value.name in before and before[value.name].type != value.type
    ]
    if not corrected:
        return []
    found = _shapes_of_a_run(original, shapes)
    notes = []
    for old, new in corrected:
        claimed, shape = value_type(new.type), found.get(new.name)
        if claimed is None or shape is None or not contradicts(ValueType(claimed.elem_type, shape), claimed):
            continue
        new.type.CopyFrom(old.type)
        notes.append(f"What is declared of the output {new.name!r} stays as it is: running gives {list(shape)}.")
    return notes


def _shapes_of_a_run(original: Model, shapes: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each output in one run of the original; nothing where it does not run."""
    from padfix.proof.executors import ExecutionFailed, OnnxRuntimeExecutor
    from padfix.proof.probes import dynamic_sizes, make_probe, with_shapes

    try:
        executor = OnnxRuntimeExecutor(original.path or original.proto.SerializeToString(), optimised=False)
        inputs = with_shapes(executor.inputs, shapes)
        for sizes in dynamic_sizes(inputs, "ramp"):
            try:
                results = executor.run(make_probe(inputs, sizes, "ramp").arrays)
            except ExecutionFailed:
                continue  # another size may run
            return {name: tuple(array.shape) for name, array in results.items()}
    except (ExecutionFailed, PadfixError):
        pass
    return {}
