"""ONNX Runtime Web (WebAssembly, one thread) in Node, from the folder ``node_modules`` that an environment names."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from padfix.runtimes.adapter import Request
from padfix.runtimes.node_packages import package_folder

_SCRIPT = """
const fs = require("fs"), ort = require(process.argv[1]), folder = process.argv[2] + "/";
const arrays = { float32: Float32Array, float64: Float64Array, float16: Uint16Array, int8: Int8Array, uint8: Uint8Array,
  int16: Int16Array, uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array,
  uint64: BigUint64Array, bool: Uint8Array };
(async () => {
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  const session = await ort.InferenceSession.create(new Uint8Array(fs.readFileSync(folder + "model.onnx")));
  const feeds = {};
  for (const [number, { name, type, dims }] of JSON.parse(fs.readFileSync(folder + "feeds.json")).entries()) {
    const bytes = new Uint8Array(fs.readFileSync(folder + "feed" + number));
    feeds[name] = new ort.Tensor(type, new arrays[type](bytes.buffer), dims);
  }
  const results = await session.run(feeds), told = [];
  for (const [number, name] of session.outputNames.entries()) {
    const { type, dims, data } = results[name];
    fs.writeFileSync(folder + "result" + number, Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    told.push({ type, dims });
  }
  fs.writeFileSync(folder + "results.json", JSON.stringify(told));
})().catch((error) => { console.error(String(error && error.message || error)); process.exit(1); });
"""
"""What Node runs: the package and the folder of a request are its arguments."""


def load() -> Callable[[Request], list[Any]]:
    """Return what runs a model."""
    package = package_folder("onnxruntime-web")

    def run(request: Request) -> list[Any]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "model.onnx").write_bytes(request.model)
            told = []
            for number, (given, array) in enumerate(request.feeds.items()):
                told.append({"name": given, "type": array.dtype.name, "dims": array.shape})
                (folder / f"feed{number}").write_bytes(np.ascontiguousarray(array).tobytes())
            (folder / "feeds.json").write_text(json.dumps(told), encoding="utf-8")
            words = ["node", "-e", _SCRIPT, str(package), name]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stderr)
            results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
            return [
                np.frombuffer((folder / f"result{number}").read_bytes(), each["type"]).reshape(each["dims"])
                for number, each in enumerate(results)
            ]

    return run
