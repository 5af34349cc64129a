"""Pictures of operators: the windows on a padded input, and where a resize samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from padfix.reports.pictures.svg import Picture
from padfix.results.illustration import Illustration, Samples, Sampling, WindowAxis, Windows

CELL = 18.0
GAP = 16.0
MOST_CELLS = 20
"""Of a longer axis both ends are drawn, because that is where the padding is."""
AT_AN_END = 9
MOST_INPUTS = 24
CELLS = {(True, True): "in", (True, False): "un", (False, True): "pr", (False, False): "pu"}
"""Styles of cells, by whether they are inside of the pads and whether a window reads them."""
EXAMPLE = "An example: the size is only known at run time."
NUMBER = 6.6
"""Width of a digit."""


def picture(illustration: Illustration) -> Picture:
    """Return the picture of what a node does."""
    return _windows(illustration) if isinstance(illustration, Windows) else _samples(illustration)


def _windows(illustration: Windows) -> Picture:
    result = Picture(_window_words(illustration))
    result.text(0, 12, _title(illustration), "strong")
    if len(illustration.axes) == 2:
        bottom = _grid(result, illustration.axes[0], illustration.axes[1], 30)
    else:
        bottom = 16.0
        for number, axis in enumerate(illustration.axes):
            bottom = _strip(result, f"axis {number + 2}", axis, bottom + 8)
    _window_legend(result, illustration, bottom + 22)
    return result


def _title(illustration: Windows) -> str:
    kernel = " × ".join(str(axis.kernel) for axis in illustration.axes)
    strides = " × ".join(str(axis.stride) for axis in illustration.axes)
    dilations = " × ".join(str(axis.dilation) for axis in illustration.axes)
    title = f"{illustration.op_type}, kernel {kernel}, strides {strides}"
    return f"{title}, dilations {dilations}" if any(axis.dilation > 1 for axis in illustration.axes) else title


def _window_words(illustration: Windows) -> str:
    sizes = " × ".join(str(axis.size) for axis in illustration.axes)
    counts = " × ".join(str(axis.windows) for axis in illustration.axes)
    begins = ", ".join(str(axis.begin) for axis in illustration.axes)
    ends = ", ".join(str(axis.end) for axis in illustration.axes)
    if illustration.transposed:
        words = (
            f"{_title(illustration)}: {counts} windows are written, {begins} elements are cut off before the output "
        )
        words += f"and {ends} behind it; {sizes} are left"
    else:
        words = (
            f"{_title(illustration)}: {counts} windows on an input of {sizes} with pads of {begins} before and {ends} "
        )
        words += "behind it"
        unread = [axis.end - _read_at_the_end(axis) for axis in illustration.axes]
        if any(unread):
            words += f"; of the pads behind, {', '.join(map(str, unread))} are never read"
    if any(axis.is_example for axis in illustration.axes):
        words += ". The size is only known at run time; this is one that it may have"
    return words + "."


def _read_at_the_end(axis: WindowAxis) -> int:
    return sum(axis.reads(axis.begin + axis.size + position) for position in range(axis.end))


class _Scale:
    """Places of the cells of one axis, with a gap where the middle of a long axis is left out."""

    def __init__(self, axis: WindowAxis, start: float) -> None:
        total = axis.begin + axis.size + axis.end
        self.axis = axis
        self.places: dict[int, float] = {}
        self.gap: float | None = None
        at_begin, at_end = max(AT_AN_END, axis.begin + 2), max(AT_AN_END, axis.end + 2)
        shown = list(range(total))
        if total > max(MOST_CELLS, at_begin + at_end + 1):
            shown = [*range(at_begin), *range(total - at_end, total)]
        place = start
        for before, position in zip([-1, *shown], shown, strict=False):
            if position != before + 1:
                self.gap = place + GAP / 2
                place += GAP
            self.places[position] = place
            place += CELL
        self.end = place

    def span(self, window: int) -> tuple[float, float] | None:
        """Return where a window begins and ends, or None when one of the two is left out."""
        first = window * self.axis.stride
        last = first + (self.axis.kernel - 1) * self.axis.dilation
        if first not in self.places or last not in self.places:
            return None
        return self.places[first], self.places[last] + CELL

    def starts(self) -> Iterator[float]:
        """Yield the middle of each cell at which a window begins."""
        for position, place in self.places.items():
            if position % self.axis.stride == 0 and position // self.axis.stride < self.axis.windows:
                yield place + CELL / 2

    def taps(self, window: int) -> list[float]:
        """Return the middle of each cell that a window reads."""
        positions = (window * self.axis.stride + tap * self.axis.dilation for tap in range(self.axis.kernel))
        return [self.places[position] + CELL / 2 for position in positions if position in self.places]

    def inside(self, position: int) -> bool:
        return self.axis.begin <= position < self.axis.begin + self.axis.size


def _grid(result: Picture, rows: WindowAxis, columns: WindowAxis, top: float) -> float:
    """Draw the padded input of two axes; return where it ends."""
    left = 46.0
    across, down = _Scale(columns, left), _Scale(rows, top)
    columns_read = {column: columns.reads(column) for column in across.places}
    for row, y in down.places.items():
        row_read = rows.reads(row)
        result.text(left - 12, y + 13, str(row - rows.begin), "faint", "end")
        for column, x in across.places.items():
            _cell(result, x, y, down.inside(row) and across.inside(column), row_read and columns_read[column])
    for x in across.starts():
        result.triangle(x, top - 1)
    for y in down.starts():
        result.triangle(left - 1, y, to_the_right=True)
    if across.gap is not None:
        result.text(across.gap, top + 13, "…", "strong", "middle")
    if down.gap is not None:
        result.text(left + CELL / 2, down.gap + 4, "⋮", "strong", "middle")
    last = rows.windows - 1, columns.windows - 1
    for window, name in (((0, 0), "first"), (last, "last")):
        tall, wide = down.span(window[0]), across.span(window[1])
        if tall and wide:
            result.rectangle(wide[0], tall[0], wide[1] - wide[0], tall[1] - tall[0], name)
        if max(rows.dilation, columns.dilation) > 1:
            for y in down.taps(window[0]):
                for x in across.taps(window[1]):
                    result.dot(x, y, "tap" if name == "first" else "dot")
    _numbers(result, across, down.end + 12)
    return down.end + 14


def _numbers(result: Picture, scale: _Scale, y: float) -> None:
    """Write the positions of the cells below them, as many as have room beside each other."""
    free = 0.0
    for position, x in scale.places.items():
        words = str(position - scale.axis.begin)
        half = NUMBER * len(words) / 2
        if x + CELL / 2 - half >= free:
            result.text(x + CELL / 2, y, words, "faint", "middle")
            free = x + CELL / 2 + half + 2


def _strip(result: Picture, name: str, axis: WindowAxis, top: float) -> float:
    """Draw one axis; return where it ends."""
    left = 46.0
    scale = _Scale(axis, left)
    result.text(0, top + 20, name, "faint")
    for position, x in scale.places.items():
        _cell(result, x, top + 8, scale.inside(position), axis.reads(position))
    _numbers(result, scale, top + 8 + CELL + 12)
    for x in scale.starts():
        result.triangle(x, top + 7)
    if scale.gap is not None:
        result.text(scale.gap, top + 20, "…", "strong", "middle")
    for window, style in ((0, "first"), (axis.windows - 1, "last")):
        span = scale.span(window)
        if span:
            result.rectangle(span[0], top + 8, span[1] - span[0], CELL, style)
        if axis.dilation > 1:
            for x in scale.taps(window):
                result.dot(x, top + 8 + CELL / 2, "tap" if style == "first" else "dot")
    return top + 8 + CELL + 14


def _cell(result: Picture, x: float, y: float, inside: bool, read: bool) -> None:
    result.rectangle(x, y, CELL, CELL, CELLS[inside, read])
    if read and not inside:
        result.line(x, y + CELL, x + CELL, y, "hatch")
    elif inside and not read:
        result.line(x + 5, y + CELL / 2, x + CELL - 5, y + CELL / 2, "thin")


def _window_legend(result: Picture, illustration: Windows, top: float) -> None:
    """Explain the cells that there are, two entries a line, and the two windows."""
    verb = "written" if illustration.transposed else "read"
    places = ("output", "cut off") if illustration.transposed else ("input", "pad")
    entries = [kind for kind, name in CELLS.items() if name in result.names]
    for number, (is_inside, is_read) in enumerate(entries):
        x, y = 150.0 * (number % 2), top + 24 * (number // 2)
        _cell(result, x, y, is_inside, is_read)
        words = f"{places[0] if is_inside else places[1]}, {verb if is_read else f'never {verb}'}"
        result.text(x + CELL + 5, y + 13, words)
    below = top + 24 * -(-len(entries) // 2)
    result.rectangle(1, below + 2, CELL - 2, CELL - 4, "first")
    result.text(CELL + 5, below + 13, "first window")
    result.rectangle(106, below + 2, CELL - 2, CELL - 4, "last")
    result.text(105 + CELL + 5, below + 13, "last window")
    result.triangle(218, below + 13)
    result.text(228, below + 13, "a window begins")
    if any(axis.is_example for axis in illustration.axes):
        result.text(0, below + 34, EXAMPLE, "faint")


def _samples(illustration: Samples) -> Picture:
    lanes = [("As written", illustration.written)]
    if illustration.rewritten is not None:
        lanes.append(("As rewritten", illustration.rewritten))
    if illustration.default is not None:
        lanes.append(("For comparison, a Resize of today without attributes", illustration.default))
    result = Picture(_sample_words(illustration, lanes))
    result.text(
        0,
        12,
        f"{illustration.op_type}, axis {illustration.axis}: {illustration.size} elements to {illustration.output}",
        "strong",
    )
    frame = _Frame(illustration.size, [sampling for _, sampling in lanes])
    bottom = 20.0
    for title, sampling in lanes:
        bottom = _lane(result, f"{title}: {sampling.title}", sampling, frame, illustration, bottom + 14)
    result.text(
        0,
        bottom + 18,
        "Above, the input with its indices; below, the output with the input elements it is made of.",
        "faint",
    )
    result.dot(4, bottom + 30, "dot")
    result.text(12, bottom + 34, "position in the input that an output element samples", "faint")
    if illustration.is_example:
        result.text(0, bottom + 50, EXAMPLE, "faint")
    return result


class _Frame:
    """The part of an axis that is drawn, the same for every sampling so that they can be compared."""

    def __init__(self, size: int, samplings: Sequence[Sampling]) -> None:
        both = [
            list(zip(sampling.positions, sampling.reads, strict=True))[: min(len(each.reads) for each in samplings)]
            for sampling in samplings
        ]
        # An axis that shrinks much needs many input elements for a few output elements.
        self.outputs = max(
            (
                count
                for count in range(1, len(both[0]) + 1)
                if count <= 2 or all(max(reads) < MOST_INPUTS for lane in both for _, reads in lane[:count])
            ),
            default=1,
        )
        shown = [pair for lane in both for pair in lane[: self.outputs]]
        self.inputs = min(size, max(max(reads) for _, reads in shown) + 2)
        # Positions may lie outside the input by some elements.
        self.lowest = min(0.0, *(position for position, _ in shown)) - 0.5
        highest = max(self.inputs - 1.0, *(position for position, _ in shown)) + 0.5
        label = max(len(_made_of(reads)) for _, reads in shown)
        self.width = min(max(self.outputs * (6.6 * label + 14), (highest - self.lowest) * 24.0, 240.0), 1000.0)
        self.step = self.width / (highest - self.lowest)

    def place(self, position: float) -> float:
        return (position - self.lowest) * self.step


def _sample_words(illustration: Samples, lanes: Sequence[tuple[str, Sampling]]) -> str:
    parts = [
        f"{title} ({sampling.title}) it reads {', '.join(_made_of(reads) for reads in sampling.reads[:8])}"
        for title, sampling in lanes
    ]
    return (
        f"{illustration.op_type} of {illustration.size} elements to {illustration.output} on axis {illustration.axis}. "
        + ". ".join(parts)
        + "."
    )


def _made_of(reads: Sequence[int]) -> str:
    return "+".join(map(str, reads))


def _lane(result: Picture, title: str, sampling: Sampling, frame: _Frame, illustration: Samples, top: float) -> float:
    """Draw the input, the output below it, and a line from each output element to where it samples."""
    result.text(0, top + 8, title)
    upper, lower = top + 16, top + 16 + CELL + 30
    every = max(1, -int(-22 // frame.step))
    for index in range(frame.inputs):
        result.rectangle(frame.place(index - 0.5), upper, frame.step, CELL, "in")
        if index % every == 0:
            result.text(frame.place(index), upper + 13, str(index), "", "middle")
    if frame.inputs < illustration.size:
        result.text(frame.place(frame.inputs - 0.5) + 8, upper + 13, "…", "strong")
    cell = frame.width / frame.outputs
    pairs = list(zip(sampling.positions, sampling.reads, strict=True))[: frame.outputs]
    for index, (position, reads) in enumerate(pairs):
        middle = (index + 0.5) * cell
        result.line(middle, lower, frame.place(position), upper + CELL + 4, "line")
        result.dot(frame.place(position), upper + CELL + 4, "dot")
        result.rectangle(index * cell, lower, cell, CELL, "un")
        result.text(middle, lower + 13, _made_of(reads), "", "middle")
    if frame.outputs < illustration.output:
        result.text(frame.width + 6, lower + 13, "…", "strong")
    return lower + CELL
