"""Says what a file is that was given for an ONNX model and is none, as far as its first bytes tell."""

from __future__ import annotations

from pathlib import Path

from padfix.errors import SourceError

HINT = "Give the .onnx file that the exporter wrote; padfix convert also reads SavedModel, GraphDef and Keras files."

_BEGINNINGS: tuple[tuple[bytes, str, str], ...] = (
    (
        b"version https://git-lfs",
        "is a Git LFS pointer: the model itself was not downloaded",
        "Run git lfs pull in the repository that it comes from.",
    ),
    (b"PK\x03\x04", "is a zip archive (a .keras or PyTorch file is one), not an ONNX model", HINT),
    (b"\x1f\x8b", "is compressed with gzip, not an ONNX model", "Unpack it first."),
    (b"\x89HDF\r\n", "is an HDF5 file (an old Keras model is one), not an ONNX model", HINT),
    (b"\x80\x02", "is a Python pickle, not an ONNX model", HINT),
    (b"\x80\x03", "is a Python pickle, not an ONNX model", HINT),
    (b"\x80\x04\x95", "is a Python pickle, not an ONNX model", HINT),
    (b"\x80\x05\x95", "is a Python pickle, not an ONNX model", HINT),
    (b"BZh", "is compressed with bzip2, not an ONNX model", "Unpack it first."),
    (b"\xfd7zXZ", "is compressed with xz, not an ONNX model", "Unpack it first."),
)
_MARKUP = (b"<!doctype", b"<html", b"<?xml")


def refuse(path: Path, beginning: bytes, size: int) -> None:
    """Raise if the first bytes of a file show that it is not an ONNX model.

    Args:
        path: The file, for the message.
        beginning: Its first few thousand bytes.
        size: Its size.

    Raises:
        SourceError: Saying what it is instead.
    """
    if size == 0:
        raise SourceError(f"{path} is empty.", "Export or download the model again.")
    for start, what, hint in _BEGINNINGS:
        if beginning.startswith(start):
            raise SourceError(f"{path} {what}.", hint)
    if beginning.lstrip().lower().startswith(_MARKUP):
        raise SourceError(
            f"{path} is a web page or XML, not an ONNX model.",
            "The download probably answered with an error page; open it in a browser to see.",
        )
    if beginning[4:8] == b"TFL3":
        raise SourceError(f"{path} is a TensorFlow Lite model, not an ONNX model.", HINT)
    if beginning[4:8] == b"ORTM":
        raise SourceError(
            f"{path} is in ONNX Runtime's own ORT format, not an ONNX model.",
            "Give the .onnx file that it was made from.",
        )
    if _is_text(beginning):
        raise SourceError(f"{path} is a text file, not an ONNX model.", HINT)
    if _is_saved_model(beginning):
        raise SourceError(f"{path} is a TensorFlow SavedModel, not an ONNX model.", HINT)
    if beginning[0] == 0x0A:
        # Field 1 of an ONNX model is a number; of a GraphDef it is a node, length-delimited.
        raise SourceError(f"{path} is not an ONNX model; it looks like a TensorFlow GraphDef.", HINT)


def _is_text(beginning: bytes) -> bool:
    try:
        text = beginning.decode("ascii")
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character in "\t\r\n" for character in text)


def _is_saved_model(beginning: bytes) -> bool:
    """Whether it starts as a SavedModel does: schema version 1, then a meta graph with its meta information.

    An ONNX model of the same first bytes would have a producer name that starts with a line feed.
    """
    if not beginning.startswith(b"\x08\x01\x12"):
        return False
    after_length = 3
    while after_length < len(beginning) and beginning[after_length] & 0x80:
        after_length += 1
    return beginning[after_length + 1 : after_length + 2] == b"\x0a"
