"""Data to run models on: kinds that reveal padding and index slips, and sizes for inputs that take several.

Six kinds, because each hides what another shows: normal data has negatives (a pool that pads with 0 differs from one
that pads with minus infinity only where everything in sight is negative, so there is also all-negative data); an
integer ramp gives every position its own value, so that an index slip of one can't hide in a tolerance; impulses in
the corners light up the borders alone; ones show how many elements a border window counts; uniform [0, 1] is what
image models are made for. No probe holds infinities or not-a-number: runtimes disagree about those for reasons that
have nothing to do with padding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from onnx import TensorProto

from padfix.errors import UsageError
from padfix.graph.lengths import length_of
from padfix.proof.executors import Array, ExecutionFailed, TensorSpec, numpy_type
from padfix.proof.facts import Control

KINDS = ("normal", "negative", "ramp", "impulses", "ones", "image")

Shapes = Mapping[str, tuple[int, ...]]

Ranges = Mapping[str, tuple[float, float]]
"""The lowest and the highest number of an input, both included, by its name."""


@dataclass(frozen=True)
class Probe:
    """One set of input arrays.

    Attributes:
        name: What reports call it, for example ``"ramp"`` or the file it came from.
        arrays: Every required input by name.
    """

    name: str
    arrays: Mapping[str, Array]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every array."""
        return {name: tuple(array.shape) for name, array in self.arrays.items()}


# (batch, sizes of axis 1, 2, 3...) for each kind: odd and even, primes and powers of two, unequal on purpose so that
# swapped axes show; one of them with a batch of 2.
_FIRST_SIZES: dict[str, tuple[int, tuple[int, ...]]] = {
    "normal": (1, (37, 41, 35, 33)),
    "negative": (1, (32, 48, 40, 36)),
    "ramp": (2, (33, 32, 39, 34)),
    "impulses": (1, (64, 97, 50, 31)),
    "ones": (1, (41, 43, 41, 32)),
    "image": (1, (47, 64, 36, 39)),
}

_SINGLE = ("impulses", "ones")
"""Kinds of which a table has but one row."""

# Tried in turn when a model refuses those: multiples of 32 first (networks that halve five times), then the input
# sizes of well-known networks, then small and long ones (token sequences, audio), then 3 or 1 channels on an axis
# that is dynamic.
_OTHER_SIZES: tuple[tuple[int, ...], ...] = (
    (64, 96, 64),
    (96, 64, 96),
    (128, 128, 128),
    (224, 224, 224),
    (256, 256, 256),
    (299, 299, 299),
    (320, 320, 320),
    (32, 32, 32),
    (16, 16, 16),
    (8, 8, 8),
    (7, 7, 7),
    (5, 5, 5),
    (4, 4, 4),
    (3, 3, 3),
    (2, 2, 2),
    (1, 1, 1),
    (512, 512, 512),
    (1024, 1024, 1024),
    (4096,),
    (16000,),
    (44100,),
    (64, 64, 3),
    (3, 64, 64),
    (64, 64, 1),
    (1, 64, 64),
    (224, 224, 3),
    (3, 224, 224),
)

_MOST_ELEMENTS = 20_000_000
_LARGEST_INPUT = 1 << 25


def with_shapes(inputs: Sequence[TensorSpec], shapes: Mapping[str, Sequence[int]] | None) -> list[TensorSpec]:
    """Return the specs with the user's shapes put in; entries below 1 leave an axis as it was declared.

    Raises:
        UsageError: A name that is no input, or a rank that contradicts the declared one.
    """
    known = {spec.name for spec in inputs}
    for name in shapes or {}:
        if name not in known:
            raise UsageError(f"There is no input {name!r}.", f"The inputs are: {', '.join(sorted(known)) or 'none'}.")
    fixed = []
    for spec in inputs:
        given = (shapes or {}).get(spec.name)
        if given is None:
            fixed.append(spec)
            continue
        if spec.shape is not None and len(spec.shape) != len(given):
            raise UsageError(f"Input {spec.name!r} has {len(spec.shape)} axes, --shape gives {len(given)}.")
        declared = spec.shape or (None,) * len(given)
        fixed.append(
            replace(spec, shape=tuple(new if new > 0 else old for new, old in zip(given, declared, strict=True)))
        )
    return fixed


def require_ranges(inputs: Sequence[TensorSpec], ranges: Ranges) -> None:
    """Refuse ranges that an input's type does not hold.

    Raises:
        UsageError: A name that is no input, an input that holds no numbers, or a bound beyond its type.
    """
    specs = {spec.name: spec for spec in inputs}
    for name, (low, high) in ranges.items():
        if name not in specs:
            raise UsageError(f"There is no input {name!r}.", f"The inputs are: {', '.join(specs) or 'none'}.")
        dtype = numpy_type(specs[name].elem_type)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            if not (int(low) == low and int(high) == high and limits.min <= low and high <= limits.max):
                raise UsageError(
                    f"The range {low:g}..{high:g} of input {name!r} is not one of {dtype} numbers.",
                    f"Give whole numbers from {limits.min} to {limits.max}.",
                )
        elif dtype.kind in "bOSU":
            raise UsageError(f"Input {name!r} holds no numbers, so it has no range.")


def within(array: Array, bounds: tuple[float, float] | None) -> Array:
    """Return numbers clipped to a range where there is one."""
    return array if bounds is None else np.clip(array, *np.array(bounds, array.dtype))


def is_dynamic(inputs: Sequence[TensorSpec]) -> bool:
    """Whether some axis of some input is symbolic or unknown."""
    return not all(spec.is_fixed for spec in inputs)


def resolve(
    inputs: Sequence[TensorSpec], batch: int, sizes: Sequence[int], *, lists: bool = False, states: bool = False
) -> dict[str, tuple[int, ...]]:
    """Return a length for every axis: the declared one, else ``batch`` for the first axis and ``sizes`` after it.

    A symbol has one length wherever it stands. Axes without a name take the length of their position, so that inputs
    that are added to each other get the same shape. With ``lists``, inputs of one axis have ``batch`` entries too:
    one for each row of another input. With ``states``, the second of three axes is the batch where it alone is open,
    as in the states of a recurrent network: layers, batch, units.

    Raises:
        ExecutionFailed: The rank of an input is unknown.
    """
    symbols: dict[str, int] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    # Inputs with several axes first: they tell which symbol is the batch.
    for spec in sorted(inputs, key=lambda spec: len(spec.shape or ()) < 2):
        if spec.shape is None:
            unknown = f"The number of axes of input {spec.name!r} is not known"
            if spec.elem_type == TensorProto.BOOL:
                raise ExecutionFailed(f"{unknown}; if it is a switch, fix it with --constant {spec.name}=False")
            raise ExecutionFailed(f"{unknown}; give --shape {spec.name}=...")
        lengths = []
        for axis, dim in enumerate(spec.shape):
            if isinstance(dim, int):
                lengths.append(dim)
                continue
            if (axis == 0 and (lists or len(spec.shape) > 1)) or (states and _may_be_state(spec)):
                length = batch
            else:
                length = sizes[max(axis - 1, 0) % len(sizes)]
                # Volumes: half of the length is an eighth of the work; and so on for each axis more.
                length = max(1, length // 2 ** max(0, len(spec.shape) - 4))
            lengths.append(_symbolic(dim, length, symbols) if dim else length)
        shapes[spec.name] = tuple(lengths)
    return {spec.name: shapes[spec.name] for spec in inputs}


def _is_table(spec: TensorSpec) -> bool:
    return spec.shape is not None and [isinstance(dim, int) for dim in spec.shape] == [False, True]


def _may_be_state(spec: TensorSpec) -> bool:
    return spec.shape is not None and [isinstance(dim, int) for dim in spec.shape] == [True, False, True]


def _symbolic(dim: str, length: int, symbols: dict[str, int]) -> int:
    """Return a length for a symbol, or for an expression such as ``32*k`` one near ``length`` that it can have."""
    form = length_of(dim)
    rest = length - form.constant
    for symbol, factor in form.factors:
        if symbol not in symbols:
            symbols[symbol] = max(1, round(rest / factor)) if factor > 0 else 1
    value = form.value(symbols)
    return value if value > 0 else length


def dynamic_sizes(inputs: Sequence[TensorSpec], kind: str, rows: int = 1) -> Iterator[dict[str, tuple[int, ...]]]:
    """Yield the shapes to try for a probe of ``kind``, best first; one only when every axis is declared.

    A table has so many ``rows`` for each that a batch has.

    Raises:
        ExecutionFailed: The rank of an input is unknown.
    """
    batch, sizes = _FIRST_SIZES[kind]
    turn = KINDS.index(kind) % 4
    others = (*_OTHER_SIZES[turn:4], *_OTHER_SIZES[:turn], *_OTHER_SIZES[4:])
    tried: list[dict[str, tuple[int, ...]]] = []
    choices = [(batch, sizes, False), (1, sizes, False), *((1, other, False) for other in others), (64, sizes, False)]
    # Blocks of a batch of images, 2 by 2 to 4 by 4, or 2 by 3 by 4; and with more axes, which are shorter.
    choices += [(144, (8, 8, 8), False), (144, (24, 24, 24), False)]
    if len(inputs) > 1 and any(spec.shape is not None and len(spec.shape) == 1 for spec in inputs):
        choices.insert(1, (batch, sizes, True))
    if kind not in _SINGLE and all(map(_is_table, inputs)):
        choices.insert(0, (rows * batch, sizes, False))
    layers = [spec.shape[0] for spec in inputs if spec.shape and _may_be_state(spec)] if len(inputs) > 1 else []
    beside = (1 not in layers, 1 in layers) if layers else (False,)  # those of one may be a sequence's encodings
    for (count, lengths, lists), states in product(choices, beside):
        shapes = resolve(inputs, count, lengths, lists=lists, states=states)
        too_big = tried and sum(math.prod(shape) for shape in shapes.values()) > _MOST_ELEMENTS
        if shapes not in tried and not too_big:
            tried.append(shapes)
            yield shapes


_MOST_ROWS = 128
"""Rows of the largest batch that is searched; some models take whole blocks of them."""


def every_small_size(inputs: Sequence[TensorSpec], named: Iterable[int] = ()) -> Iterator[dict[str, tuple[int, ...]]]:
    """Yield every combination of small lengths, for models that accept one size and don't declare it.

    A transposed convolution with a constant output shape is such a model. Lengths that are ``named`` come first, and
    batches last.

    Raises:
        ExecutionFailed: The rank of an input is unknown.
    """
    axes = max((len(spec.shape or ()) for spec in inputs), default=0) - 1
    longest = {1: 256, 2: 24, 3: 24, 4: 12}.get(axes, 0)
    spatial = [range(1, longest + 1)] * max(1, min(axes, 3))
    tried: set[tuple[tuple[str, tuple[int, ...]], ...]] = set()
    lengths = [(1, (length,) * max(1, axes)) for length in named]
    lengths += [(1, each) for each in sorted(product(*spatial), key=sum)]
    lengths += [(batch, (side,) * 3) for batch in (*named, *range(2, _MOST_ROWS + 1)) for side in (32, 8)]
    for batch, sizes in lengths:
        shapes = resolve(inputs, batch, sizes)
        key = tuple(shapes.items())
        if key not in tried:
            tried.add(key)
            yield shapes


def make_probe(
    inputs: Sequence[TensorSpec],
    shapes: Shapes,
    kind: str,
    *,
    seed: int = 0,
    controls: Mapping[str, Control] | None = None,
    ranges: Ranges | None = None,
    texts: Sequence[str] = (),
) -> Probe:
    """Return a probe of ``kind`` at ``shapes``, the inputs of ``ranges`` within these, text also of ``texts``.

    Raises:
        ExecutionFailed: An element type can't be made.
    """
    for spec in inputs:
        if math.prod(shapes[spec.name]) > _LARGEST_INPUT:
            raise ExecutionFailed(
                f"Input {spec.name!r} of shape {list(shapes[spec.name])} is too large to make data for; give your own "
                "with --probe, or smaller sizes with --shape where they are free."
            )
    random = np.random.default_rng([seed, KINDS.index(kind)])
    arrays: dict[str, Array] = {}
    for spec in inputs:
        control = (controls or {}).get(spec.name)
        shape = shapes[spec.name]
        bounds = (ranges or {}).get(spec.name)
        if bounds is not None:
            arrays[spec.name] = _bounded(kind, shape, numpy_type(spec.elem_type), bounds, random)
        elif control is not None and len(shape) == 1:
            arrays[spec.name] = _control_values(control, shape[0], spec.elem_type, shapes, KINDS.index(kind))
        else:
            arrays[spec.name] = fill(kind, shape, spec.elem_type, random, texts)
    return Probe(kind, arrays)


def fill(
    kind: str, shape: Sequence[int], elem_type: int, random: np.random.Generator, texts: Sequence[str] = ()
) -> Array:
    """Return an array of one of :data:`KINDS`; text is any of ``texts``, or but for ones another one.

    Integers are small and not negative (0 to 7) because they may be indices; 8-bit ones use their whole range because
    they are quantized data.

    Raises:
        ExecutionFailed: NumPy has no such element type.
    """
    shape = tuple(shape)
    dtype = numpy_type(elem_type)
    if elem_type == TensorProto.STRING:
        others = [f"text {number}" for number in range(7)]
        if not texts:
            return np.resize(np.array(others, object), shape)
        known = np.array([*texts, *(others if kind != "ones" else ())], object)
        return np.asarray(random.choice(known, shape), object)
    if elem_type == TensorProto.BOOL:
        if kind in ("ones", "negative"):
            return np.full(shape, kind == "ones")
        return np.asarray(random.integers(0, 2, shape), dtype=bool)
    if np.issubdtype(dtype, np.integer):
        return _integers(kind, shape, dtype, random)
    values = _floats(kind, shape, random, small=dtype.itemsize <= 2)
    if np.issubdtype(dtype, np.complexfloating):
        return (values + 1j * values[..., ::-1]).astype(dtype) if shape else values.astype(dtype)
    return values.astype(dtype)


def _integers(kind: str, shape: tuple[int, ...], dtype: np.dtype[Any], random: np.random.Generator) -> Array:
    limits = np.iinfo(dtype)
    values: Array
    low, high = (int(limits.min), int(limits.max)) if dtype.itemsize == 1 else (0, 7)
    match kind:
        case "negative":
            values = random.integers(low, 0, shape) if low < 0 else random.integers(0, min(high, 3) + 1, shape)
        case "ramp":
            values = (np.arange(math.prod(shape)) % (high - low + 1) + low).reshape(shape)
        case "impulses":
            values = _impulses(shape).clip(0, high)
        case "ones":
            values = np.ones(shape)
        case "image":
            values = random.integers(0, (high if dtype.itemsize == 1 else 1) + 1, shape)
        case _:
            values = random.integers(low, high + 1, shape)
    return np.asarray(values).astype(dtype)


def _bounded(
    kind: str, shape: tuple[int, ...], dtype: np.dtype[Any], bounds: tuple[float, float], random: np.random.Generator
) -> Array:
    """Return numbers of a kind that fill a range: its lowest number and its highest are among them."""
    low, high = bounds
    if kind == "ones":
        return np.full(shape, min(max(1.0, low), high)).astype(dtype)
    if dtype.kind in "iu":
        first, last = int(low), int(high)
        match kind:
            case "ramp":
                numbers = np.arange(math.prod(shape)) % min(last - first + 1, 1 << 31)
            case "impulses":
                numbers = _impulses(shape).clip(0, last - first)
            case "negative":
                numbers = random.integers(0, (last - first) // 2 + 1, shape, dtype=np.uint64)
            case _:
                numbers = random.integers(0, last - first, shape, dtype=np.uint64, endpoint=True)
        # Modulo two to the power of the type's bits, which is where the sums are as well.
        return (numbers.astype(np.uint64) + np.uint64(first % (1 << 64))).astype(dtype).reshape(shape)
    values = _floats(kind, shape, random, small=False)
    least, most = values.min(initial=np.inf), values.max(initial=-np.inf)
    share = (values - least) / (most - least) if most > least else np.full(shape, 0.5)
    return within((low + share * (high - low)).astype(dtype), bounds)


def _floats(kind: str, shape: tuple[int, ...], random: np.random.Generator, *, small: bool) -> Array:
    match kind:
        case "negative":
            return np.asarray(-random.uniform(0.5, 4.0, shape))
        case "ramp":
            # A prime period, so that rows of usual lengths don't repeat; short for 16-bit floats, which overflow early.
            period = 61 if small else 251
            return np.asarray((np.arange(math.prod(shape)) % period - period // 4).reshape(shape), dtype=np.float64)
        case "impulses":
            return _impulses(shape)
        case "ones":
            return np.ones(shape)
        case "image":
            return np.asarray(random.uniform(0.0, 1.0, shape))
        case _:
            return np.asarray(random.standard_normal(shape))


def _impulses(shape: tuple[int, ...]) -> Array:
    """Return zeros but for the corners, each with a number of its own."""
    values = np.zeros(shape)
    if values.size:
        ends = [(0,) if length == 1 else (0, -1) for length in shape]
        for number, corner in enumerate(product(*ends), start=1):
            values[corner] = number
    return values


_SCALES = ((2.0, 2.0), (1.5, 2.5), (3.0, 1.0), (2.0, 4.0), (0.5, 0.75), (1.0, 1.25))


def _control_values(control: Control, length: int, elem_type: int, shapes: Shapes, turn: int) -> Array:
    """Return scales, sizes or a region that make sense: batch and channels kept, the last two axes resized."""
    dtype = numpy_type(elem_type)
    if control.kind == "roi":
        return np.array([0.0] * (length // 2) + [1.0] * (length - length // 2), dtype)
    factors = _SCALES[turn % len(_SCALES)]
    kept = 0 if control.axes is not None else min(2, max(length - 1, 0))
    scales = np.array([1.0 if axis < kept else factors[axis % 2] for axis in range(length)])
    if control.kind == "scales":
        return scales.astype(dtype)
    data = shapes.get(control.data or "", ())
    axes = control.axes if control.axes is not None else tuple(range(length))
    if len(data) <= max((axis % max(len(data), 1) for axis in axes), default=0):
        return np.array([1 if axis < kept else 7 + axis for axis in range(length)], dtype)
    sizes = [max(1, int(data[axis] * scale)) for axis, scale in zip(axes, scales, strict=True)]
    return np.array(sizes, dtype)
