"""What recurrent layers are like, in the words that targets state their facts in."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope
from padfix.operators.batches import images_at_once, is_of_another_batch
from padfix.operators.constant_chains import is_constant
from padfix.operators.elementwise import ELEMENTWISE, RESHAPING
from padfix.operators.lists import depends_on_data
from padfix.targets.traits import Traits

RECURRENT = ("GRU", "LSTM", "RNN")

_BIAS, _LENGTHS, _STATE, _PEEPHOLES = 3, 4, 5, 7
"""Which inputs are the bias, tell how long each sequence is, where it starts from, and let gates look at the cell."""

_CELL = 2
"""The output of an LSTM that is its cell's last state."""

_STATES = {"GRU": 1, "LSTM": 2, "RNN": 1}
"""How many states recurrent layers have."""

_DIRECTIONS_LAST = [0, 2, 1, 3]
"""The permutation that puts the axis of directions behind that of the batch."""

_KEEPING_STEPS = ("Clip", "Dropout", "Elu", "Identity", "LeakyRelu", "Relu", "Sigmoid", "Tanh")
"""Operators through which importers see the order of the axes that a recurrent layer wants."""

_JOINING_SEQUENCES = ELEMENTWISE | RESHAPING | {"Concat", "Transpose"}
"""What makes one sequence of those of two directions, or another of one."""

_MOST_BETWEEN = 8
"""Operators that are looked through, as far as the layer."""

_FARTHEST = 16
"""Nodes that are looked at."""

_USUAL = {"GRU": ("sigmoid", "tanh"), "LSTM": ("sigmoid", "tanh", "tanh"), "RNN": ("tanh",)}
"""The activations that recurrent layers have where nothing else is said."""


_OF_ACTIVATIONS = ("activation_alpha", "activation_beta")
"""The attributes that tell what activations multiply by and add."""

_COMMON = frozenset(("relu", "sigmoid", "tanh"))
"""The activations that most runtimes have in layers."""


def is_slice_for_layer(scope: Scope, node: NodeProto) -> bool:
    """Whether a Squeeze takes an axis out of a Slice, and what is joined or computed of it is a layer's sequence."""
    cut = scope.own_producer(node.input[0])
    if cut is None or cut.op_type != "Slice":
        return False
    names = [node.output[0]]
    for _ in range(_MOST_BETWEEN):
        readers = [(each, name) for name in names for each in scope.consumers(name)]
        if any(each.op_type in RECURRENT and each.input[0] == name for each, name in readers):
            return True
        names = [each.output[0] for each, _ in readers if each.op_type in _JOINING_SEQUENCES]
    return False


def activations_of(node: NodeProto, directions: int) -> tuple[str, ...]:
    """Return the activations of a recurrent layer in lower case, those of one direction after the other."""
    listed = attributes.find(node, "activations")
    told = () if listed is None else tuple(each.decode("utf-8", "replace").lower() for each in listed.strings)
    return told or _USUAL[node.op_type] * directions


def recurrent_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return what a recurrent layer is like."""
    told, usual = activations_of(node, 1), _USUAL[node.op_type]
    half = len(told) // 2
    given = [bool(name) for name in node.output] + [False] * 3
    return {
        "direction": attributes.text(node, "direction", "forward") or "forward",
        "resets-before": attributes.integer(node, "linear_before_reset", 0) == 0,
        "activations": _kind_of_activations(told, usual),
        "activations-written": attributes.find(node, "activations") is not None,
        "activations-scaled": any(attributes.find(node, name) is not None for name in _OF_ACTIVATIONS),
        "directions-alike": len(told) <= len(usual) or told[:half] == told[half:],
        "clipped": attributes.find(node, "clip") is not None,
        "couples-gates": attributes.integer(node, "input_forget", 0) != 0,
        "open-batch": _leaves_batch_open(scope, node),
        "batch-first": attributes.integer(node, "layout", 0) != 0,
        "lengths-given": len(node.input) > _LENGTHS and bool(node.input[_LENGTHS]),
        "lengths-beside-constants": _reads_lengths_beside_constants(scope, node),
        "peepholes": len(node.input) > _PEEPHOLES and bool(node.input[_PEEPHOLES]),
        "gives-state": given[1] or given[2],
        "gives-cell-alone": given[2] and not given[1],
        "gives-cell-too": _gives_cells_of_several(scope, node),
        "cell-unnamed": node.op_type == "LSTM" and not given[_CELL],
        "sequence-unnamed": not given[0],
        "steps-open-alone": _are_steps_alone_open(scope, node),
        "initial-state": _initial_state(node),
        "leaves-inputs-out": leaves_inputs_out(node.op_type, node.input),
        "states-differ": len({is_constant(scope, name) for name in _states(node)}) > 1,
        "state-of-few": _starts_a_few(scope, node),
        "state-computed": not all(is_constant(scope, name) for name in _states(node)),
        "weights-computed": any(depends_on_data(scope, name) for name in node.input[1 : _BIAS + 1] if name),
        "biased": len(node.input) > _BIAS and bool(node.input[_BIAS]),
        "bias-computed": any(depends_on_data(scope, name) for name in node.input[_BIAS : _BIAS + 1] if name),
        "squeezed": _is_squeezed(scope, node),
        "over-batch": _is_over_batch(scope, node),
        "numbers-images": _starts_each_image(scope, node),
    }


def _kind_of_activations(told: Sequence[str], usual: Sequence[str]) -> str:
    """Return whether activations are the usual ones, a HardSigmoid is among them, or others that few runtimes have."""
    if all(each == usual[place % len(usual)] for place, each in enumerate(told)):
        return "usual"
    if "hardsigmoid" in told:
        return "hard-sigmoid"
    return "other" if _COMMON.issuperset(told) else "odd"


def _batch(scope: Scope, node: NodeProto) -> tuple[Dimension, ...]:
    """Return how many sequences there are, as a shape of one axis; of none where it is not known to be one."""
    return _length(scope, node, 0 if attributes.integer(node, "layout", 0) else 1)


def _steps(scope: Scope, node: NodeProto) -> tuple[Dimension, ...]:
    """Return of how many steps a sequence is, likewise."""
    return _length(scope, node, 1 if attributes.integer(node, "layout", 0) else 0)


def _length(scope: Scope, node: NodeProto, axis: int) -> tuple[Dimension, ...]:
    known = scope.type_of(node.input[0])
    return () if known is None or known.shape is None else known.shape[axis : axis + 1]


def _reads_lengths_beside_constants(scope: Scope, node: NodeProto) -> bool:
    """Whether a layer of constant weights is told by constants or data how long open sequences, or open numbers, are.

    What shapes tell is taken for all steps.
    """
    lengths = node.input[_LENGTHS] if len(node.input) > _LENGTHS else ""
    if not lengths or not (depends_on_data(scope, lengths) or is_constant(scope, lengths)):
        return False
    known = scope.type_of(node.input[0])
    is_open = known is None or known.shape is None or not all(isinstance(each, int) for each in known.shape[:2])
    return is_open and all(is_constant(scope, name) for name in node.input[1:_LENGTHS] if name)


def _leaves_batch_open(scope: Scope, node: NodeProto) -> bool:
    """Whether how many sequences there are is left open."""
    return not all(isinstance(each, int) for each in _batch(scope, node))


def _starts_a_few(scope: Scope, node: NodeProto) -> bool:
    """Whether a state that a layer of an open batch starts from is a constant, which is of so many sequences."""
    return _leaves_batch_open(scope, node) and any(is_constant(scope, name) for name in _states(node))


def _gives_cells_of_several(scope: Scope, node: NodeProto) -> bool:
    """Whether the cell is read beside the sequence, or the last of several states, of more than one batch."""
    has_sequence, has_state, has_cell = (
        len(node.output) > place and scope.is_used(node.output[place]) for place in range(_CELL + 1)
    )
    is_beside = has_sequence or (has_state and _steps(scope, node) != (1,))
    return has_cell and is_beside and _batch(scope, node) != (1,)


def _are_steps_alone_open(scope: Scope, node: NodeProto) -> bool:
    """Whether steps are open that a converter takes for one, as it does the first axis of an input alone.

    Of an input itself the batch may be open as well; behind other operators that ends what the converter knows.
    """
    known = scope.type_of(node.input[0])
    if known is None or known.shape is None or len(known.shape) < 2 or attributes.integer(node, "layout", 0):
        return False
    if isinstance(known.shape[0], int):
        return False
    while scope.parent is not None:
        scope = scope.parent
    names = [each.name for each in scope.container.input if scope.constant(each.name) is None]
    if node.input[0] in names:
        return True
    types = [scope.type_of(name) for name in names]
    shapes = [each.shape for each in types if each is not None and each.shape]
    return isinstance(known.shape[1], int) and any(
        not isinstance(first, int) and all(isinstance(each, int) for each in rest) for first, *rest in shapes
    )


def leaves_inputs_out(op_type: str, names: Sequence[str]) -> bool:
    """Whether inputs of a recurrent layer have no name where others come behind, or end in ones without a name.

    That of the lengths of sequences, which most layers leave out, does not count. One of an LSTM's states counts as the
    other left out.
    """
    told = [bool(name) for name in names]
    states = told[_STATE : _STATE + _STATES[op_type]]
    is_some = any(states) and sum(states) != _STATES[op_type]
    return is_some or not all([*told[_BIAS:_LENGTHS], *states, *told[-1:]])


def _initial_state(node: NodeProto) -> str:
    count, given = _STATES[node.op_type], len(_states(node))
    return "none" if not given else "all" if given == count else "some"


def _states(node: NodeProto) -> list[str]:
    return [name for name in node.input[_STATE : _STATE + _STATES[node.op_type]] if name]


def _starts_each_image(scope: Scope, node: NodeProto) -> bool:
    """Whether states that it starts from are written for each of several images."""
    batch, axis = images_at_once(scope), 0 if attributes.integer(node, "layout", 0) else 1
    told = [scope.type_of(name) for name in _states(node) if not depends_on_data(scope, name)]
    return batch is not None and any(
        each is not None and (each.shape or ())[axis : axis + 1] == (batch,) for each in told
    )


def _is_squeezed(scope: Scope, node: NodeProto) -> bool:
    """Whether the sequence alone is read, and by what takes the axis of directions out of it alone."""
    sequence, *states = node.output
    readers = scope.consumers(sequence) if sequence else []
    if len(readers) != 1 or scope.is_output(sequence):
        return False
    if any(map(scope.is_used, states)):
        return False
    if readers[0].op_type == "Squeeze":
        axes = scope.constant(readers[0].input[1]) if len(readers[0].input) > 1 else None
        listed = attributes.integers(readers[0], "axes") if axes is None else axes.reshape(-1).tolist()
        return list(listed or ()) in ([1], [-3])
    behind = scope.consumers(readers[0].output[0])
    if attributes.integers(readers[0], "perm") != _DIRECTIONS_LAST or [each.op_type for each in behind] != ["Reshape"]:
        return False
    known = scope.constant(behind[0].input[1])
    shape = [] if known is None else known.reshape(-1).tolist()
    # With the number of directions and units left to be worked out, the batch has to be copied.
    return len(shape) == 3 and (shape[2] != -1 or shape[1] == 0)


def _is_over_batch(scope: Scope, node: NodeProto) -> bool | None:
    """Whether the axis that it runs over is the model's batch, as far as lengths tell, or its own batch is not."""
    known = scope.type_of(node.input[0])
    shape = None if known is None else known.shape
    if not shape or len(shape) < 2:
        return None
    if shape[1] == 1 and not attributes.integer(node, "layout", 0) and _is_read_as_steps(scope, node.input[0]):
        return False
    is_other = is_of_another_batch(scope, node.input[0])
    return None if is_other is None else (not is_other and shape[0] != 1) or not _is_batch(scope, shape[1])


def _is_read_as_steps(scope: Scope, name: str) -> bool:
    """Whether data with a batch of one behind the steps reach recurrent layers alone on their way from the input.

    What lies between goes element by element; the sequence that another such layer gives keeps its order.
    """
    for _ in range(_FARTHEST):
        if not all(each.op_type in (*RECURRENT, *_KEEPING_STEPS) for each in scope.consumers(name)):
            return False
        node = scope.own_producer(name)
        if node is None or node.op_type not in _KEEPING_STEPS:
            return name in scope.inputs if node is None else _is_of_sequence(scope, node)
        name = node.input[0]
    return False


def _is_of_sequence(scope: Scope, node: NodeProto) -> bool:
    """Whether a node gives what a recurrent layer gives, without its axis of directions."""
    while node.op_type in (*_KEEPING_STEPS, "LayerNormalization"):
        before = scope.own_producer(node.input[0])
        if before is None:
            return False
        node = before
    turned = scope.own_producer(node.input[0]) if node.op_type in ("Reshape", "Squeeze") else None
    if turned is not None and turned.op_type == "Transpose" and node.op_type == "Reshape":
        turned = scope.own_producer(turned.input[0])
    return turned is not None and turned.op_type in RECURRENT and _is_squeezed(scope, turned)


def _is_batch(scope: Scope, length: object) -> bool:
    while scope.parent is not None:
        scope = scope.parent
    types = [scope.type_of(each.name) for each in scope.container.input if scope.constant(each.name) is None]
    batches = [each.shape[0] if each is not None and each.shape else None for each in types]
    return length == 1 or length in batches or (not isinstance(length, int) and None in batches)
