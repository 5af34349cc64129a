"""ncnn's adapter: its converter, which takes longer than the network, runs no more often than it has to."""

from __future__ import annotations

import subprocess
from typing import Any

import numpy as np
import onnx.parser
import pytest

from padfix.runtimes.adapter import Request

pytest.importorskip("ncnn")
pytest.importorskip("pnnx")


def test_a_model_is_converted_once_for_all_data_and_images(monkeypatch: pytest.MonkeyPatch) -> None:
    from padfix.runtimes import on_ncnn

    calls = []
    honest = subprocess.run

    def counted(*words: Any, **options: Any) -> Any:
        calls.append(words)
        return honest(*words, **options)

    monkeypatch.setattr(on_ncnn.subprocess, "run", counted)
    run = on_ncnn.load()
    for lengths, times in (((3, 2, 4, 5), 1), ((3, 2, 6, 5), 2)):
        shape = ",".join(map(str, lengths))
        model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
            main (float[{shape}] X) => (float[{shape}] Y) {{ kept = Relu (X) Y = Sin (kept) }}""")
        for seed in range(2):
            data = np.random.default_rng(seed).standard_normal(lengths).astype(np.float32)
            (found,) = run(Request(model.SerializeToString(), {"X": data}, [lengths]))
            np.testing.assert_allclose(found, np.sin(np.maximum(data, 0)), atol=1e-5)
        assert len(calls) == times
