"""The file of JSON lines counts what is in it, whenever a run is stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from padfix.checking.lines import Lines


@pytest.mark.parametrize(("written", "number"), [(0, 1), (5, 1), (None, 2)])
def test_a_model_counts_when_all_of_it_is_written(written: int | None, number: int, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    lines = Lines(file, "settings", resumed=False)
    lines.add("first", ["{}\n"])

    class Stream:
        def __init__(self, stream: object) -> None:
            self._stream = stream

        def __getattr__(self, name: str) -> object:
            return getattr(self._stream, name)

        def write(self, data: bytes) -> int:
            self._stream.write(data[:written])  # type: ignore[attr-defined]
            raise KeyboardInterrupt

    lines._stream = Stream(lines._stream)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        lines.add("second", ["{1234567}\n"])
    lines.close()
    lines.close()
    assert lines.number == number
    assert file.read_bytes().count(b"\n") == number
