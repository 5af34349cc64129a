"""What ``padfix inspect`` lists, as an aligned table and as plain configuration blocks."""

from __future__ import annotations

from collections.abc import Sequence

from padfix.reports.characters import printable
from padfix.reports.columns import aligned
from padfix.results import OpRecord

HEAD = ("NAME", "OP", "KERNEL", "STRIDES", "DILATIONS", "PADDING", "PADS", "LAYOUT")
RESAMPLING = "RESAMPLING"
_AXES = ("d", "h", "w")


def table(records: Sequence[OpRecord]) -> str:
    """Return aligned columns, a row an operator.

    PADDING is as written in the model; PADS are resolved for the known size in ONNX order (begins, then ends), ``?`` on
    an axis of unknown size, ``-`` where the operator has no such thing; Pads before the operator count. Where there are
    resizes, the last column has their mode, coordinates, rounding, and sizes or scales.
    """
    if not records:
        return "No windowed or resampling operators.\n"
    rows = [
        (
            _where(record),
            printable(record.op),
            _numbers(record.kernel, "x"),
            _numbers(record.strides, ","),
            _numbers(record.dilations, ","),
            _padding(record),
            _numbers(record.pads, ","),
            record.layout or "-",
            _resampling(record) or "-",
        )
        for record in records
    ]
    if any(record.mode for record in records):
        return aligned([(*HEAD, RESAMPLING), *rows])
    return aligned([HEAD, *(row[:-1] for row in rows)])


def config(records: Sequence[OpRecord]) -> str:
    """Return a block of ``key: value`` lines for each pooling operator, a blank line between blocks.

    The keys: type, kernel_h, kernel_w, padding, stride_h, stride_w, layout. Pools of three axes have kernel_d and
    stride_d first; a pool of one axis is written as one of height 1. An unknown kernel length is ``?``.
    """
    return "\n".join(_block(record) for record in records if is_pool(record))


def is_pool(record: OpRecord) -> bool:
    """Whether the operator is a pool."""
    return "Pool" in record.op and record.kernel is not None


def _block(record: OpRecord) -> str:
    kernel = list(record.kernel or ())
    strides = list(record.strides or [1] * len(kernel))
    if len(kernel) == 1:
        kernel, strides = [1, *kernel], [1, *strides]
    axes = _AXES[-len(kernel) :]
    lines = [f"type: {printable(record.op)}"]
    lines.extend(f"kernel_{axis}: {_number(length)}" for axis, length in zip(axes, kernel, strict=True))
    lines.append(f"padding: {printable(record.padding)}")
    lines.extend(f"stride_{axis}: {stride}" for axis, stride in zip(axes, strides, strict=True))
    lines.append(f"layout: {record.layout}")
    return "\n".join(lines) + "\n"


def _padding(record: OpRecord) -> str:
    written = printable(record.padding) or "-"
    return written if record.pad_before is None else f"{written} behind Pad {_numbers(record.pad_before, ',')}"


def _resampling(record: OpRecord) -> str:
    """Return how a resize samples, in words."""
    words = [record.mode, record.coordinates, record.rounding]
    if record.sizes is not None:
        words.append(f"sizes {_numbers(record.sizes, ',') or '?'}")
    if record.scales is not None:
        words.append(f"scales {','.join('?' if each is None else f'{each:.6g}' for each in record.scales) or '?'}")
    return printable(" ".join(word for word in words if word))


def _where(record: OpRecord) -> str:
    return printable(record.name if record.graph == "main" else f"{record.graph}/{record.name}")


def _number(value: int | None) -> str:
    return "?" if value is None else str(value)


def _numbers(values: Sequence[int | None] | None, separator: str) -> str:
    return "-" if values is None else separator.join(map(_number, values))
