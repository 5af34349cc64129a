"""The user's own data as probes: ``.npz`` and ``.npy`` files, images, and folders of these."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto

from padfix.errors import SourceError, UsageError
from padfix.proof.executors import Array, TensorSpec, numpy_type
from padfix.proof.matching import InputMatch
from padfix.proof.probes import Probe

ARRAYS = (".npz", ".npy")
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")


def given_probes(
    paths: Iterable[Path], inputs: Sequence[TensorSpec], matches: Sequence[InputMatch] = ()
) -> Iterator[Probe]:
    """Yield a probe for each file, under the names and in the layout of ``inputs``; one is in memory at a time.

    The files of a folder are taken in the order of their names. A file may go by the names of the reference or by those
    of the candidate, which ``matches`` tell, and its layout.

    Raises:
        SourceError: A file can't be read, or is an image and Pillow is not installed.
        UsageError: A folder holds nothing to read, or data don't fit the inputs.
    """
    refined = {match.reference.name: match.reference for match in matches}
    inputs = [refined.get(spec.name, spec) for spec in inputs]
    for path in paths:
        for file in _files(path):
            if file.suffix.lower() in IMAGES:
                yield _image(file, inputs)
            else:
                yield Probe(file.name, _named(file, _arrays(file, inputs), inputs, matches))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    try:
        every = sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
    except OSError as error:
        raise SourceError(f"{path} can't be read: {error.strerror or error}.") from error
    found = [each for each in every if each.suffix.lower() in (*ARRAYS, *IMAGES)]
    if not found:
        raise UsageError(
            f"{path} holds no data: no {', '.join(ARRAYS)} file and no image.",
            f"Images are: {', '.join(IMAGES)}.",
        )
    return found


def _arrays(path: Path, inputs: Sequence[TensorSpec]) -> dict[str, Array]:
    """Return the arrays of an ``.npz`` file by name; that of an ``.npy`` file has the name of the only input."""
    hint = "Write it with numpy.savez(file, input_name=array), or numpy.save(file, array) for a model of one input."
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.lib.npyio.NpzFile):
            with loaded as archive:
                arrays = {name: archive[name] for name in archive.files}
        else:
            arrays = {"arr_0": np.asarray(loaded)}
    except FileNotFoundError:
        raise SourceError(f"There is no file {path}.") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, TypeError) as error:
        raise SourceError(f"{path} can't be read as .npz or .npy: {error}.", hint) from None
    if set(arrays) == {"arr_0"} and len(inputs) == 1:  # One array that nobody gave a name.
        return {inputs[0].name: arrays["arr_0"]}
    if path.suffix.lower() == ".npy":
        raise UsageError(
            f"{path} holds one array, and the model has {len(inputs)} inputs.",
            f"Give an .npz file with an array for each of {', '.join(spec.name for spec in inputs)}.",
        )
    return arrays


def _named(
    path: Path, arrays: Mapping[str, Array], inputs: Sequence[TensorSpec], matches: Sequence[InputMatch]
) -> dict[str, Array]:
    """Return the arrays under the reference's names; they may bear the candidate's, or have its layout."""
    by_reference = {match.reference.name: match for match in matches}
    found: dict[str, Array] = {}
    for spec in inputs:
        match = by_reference.get(spec.name)
        if spec.name in arrays:
            array = arrays[spec.name]
            if match is not None and not _fits(spec, array) and _fits(match.candidate, array):
                array = match.back(array)
        elif match is not None and match.candidate.name in arrays:
            array = match.back(arrays[match.candidate.name])
        else:
            raise UsageError(
                f"{path} has no array for input {spec.name!r}.", f"It holds: {', '.join(arrays) or 'nothing'}."
            )
        found[spec.name] = fitting(path, spec, array)
    return found


def _fits(spec: TensorSpec, array: Array) -> bool:
    if spec.shape is None:
        return True
    return len(spec.shape) == array.ndim and all(
        not isinstance(dim, int) or dim == length for dim, length in zip(spec.shape, array.shape, strict=True)
    )


def fitting(path: Path, spec: TensorSpec, array: Array) -> Array:
    """Return ``array`` in the type of ``spec``.

    Raises:
        UsageError: Its shape doesn't fit, or numbers would be lost.
    """
    if not _fits(spec, array):
        raise UsageError(
            f"{path}: array {spec.name!r} has shape {list(array.shape)}, the input is {list(spec.shape or ())}."
        )
    dtype = numpy_type(spec.elem_type)
    if spec.elem_type == TensorProto.STRING:
        return array.astype(object)
    if array.dtype == dtype:
        return array
    whole_numbers = np.issubdtype(array.dtype, np.integer) and np.issubdtype(dtype, np.number)
    if whole_numbers or np.can_cast(array.dtype, dtype, "same_kind"):
        cast = array.astype(dtype)
        if not whole_numbers or np.array_equal(cast, array):
            return cast
    raise UsageError(f"{path}: array {spec.name!r} is {array.dtype}, the input wants {dtype}.")


def _image(path: Path, inputs: Sequence[TensorSpec]) -> Probe:
    """Return an image as the model's only input: values of 0 to 255 for whole numbers, of 0 to 1 for floats."""
    images = [spec for spec in inputs if spec.shape is not None and len(spec.shape) in (3, 4)]
    if len(inputs) != 1 or len(images) != 1:
        raise UsageError(
            f"{path} is an image, and the model doesn't take one image as its only input.",
            "Give the inputs as an .npz file with an array for each name.",
        )
    (spec,) = images
    shape = list(spec.shape or ())
    batched = shape if len(shape) == 4 else [1, *shape]
    last = _channels_last(path, spec.name, batched)
    channels, height, width = (batched[3], batched[1], batched[2]) if last else (batched[1], batched[2], batched[3])
    pixels = _pixels(path, channels if isinstance(channels, int) else 3, height, width)
    if not last:
        pixels = pixels.transpose(2, 0, 1)
    values: Array = pixels if len(shape) == 3 else np.stack([pixels] * (shape[0] if isinstance(shape[0], int) else 1))
    dtype: np.dtype[Any] = numpy_type(spec.elem_type)
    if np.issubdtype(dtype, np.integer):
        # Signed 8-bit images are the unsigned ones less 128.
        values = values.astype(np.int64) - (128 if dtype == np.int8 else 0)
    else:
        values = values / 255
    free = replace(spec, shape=None)
    return Probe(path.name, {spec.name: fitting(path, free, np.ascontiguousarray(values.astype(dtype)))})


def _channels_last(path: Path, name: str, shape: Sequence[object]) -> bool:
    counts = (1, 3, 4)
    last, first = shape[3] in counts, shape[1] in counts
    if last == first:
        raise UsageError(
            f"{path}: input {name!r} of shape {list(shape)} doesn't say where an image has its channels.",
            f"Fix it with --shape {name}=..., or give the data as an .npy file.",
        )
    return last


def _pixels(path: Path, channels: int, height: object, width: object) -> Array:
    """Return the image ``[height, width, channels]`` in 8 bits, stretched where the model has a fixed size."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise SourceError(
            f"{path} is an image, and Pillow, which reads images, is not installed.",
            "Install it with: pip install 'padfix[images]'; or give the data as an .npy file.",
        ) from None
    try:
        with Image.open(path) as image:
            decoded = image.convert({1: "L", 3: "RGB", 4: "RGBA"}[channels])
            size = (
                width if isinstance(width, int) else decoded.width,
                height if isinstance(height, int) else decoded.height,
            )
            if size != decoded.size:
                decoded = decoded.resize(size, Image.Resampling.BILINEAR)
            return np.asarray(decoded, np.uint8).reshape(size[1], size[0], channels)
    except UnidentifiedImageError:
        raise SourceError(f"{path} can't be read as an image.") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise SourceError(f"{path} can't be read as an image: {error}.") from None
