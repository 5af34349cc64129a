"""The spectra of what a window takes from a signal, as ONNX defines STFT."""

from __future__ import annotations

import numpy as np

from padfix.kernels.windows import Array

_WITH_PARTS = 3
"""Axes of a signal that has one for its real and imaginary parts; a real signal may do without."""


def stft(
    signal: Array, frame_step: Array, window: Array | None = None, frame_length: Array | None = None, onesided: int = 1
) -> Array:
    """Return the spectrum of each frame of ``signal``, real and imaginary parts last.

    onnx.reference takes the batch of a signal of two axes for its time, and both sides where nothing is said.
    """
    parts = np.asarray(signal if signal.ndim == _WITH_PARTS else signal[..., None], np.float64)
    if window is None and frame_length is None:
        raise ValueError("STFT has neither a window nor a length of frames.")
    length = int(frame_length) if frame_length is not None else len(window if window is not None else ())
    weights = np.ones(length) if window is None else np.asarray(window, np.float64)
    data = parts[..., 0] if parts.shape[-1] == 1 else parts[..., 0] + 1j * parts[..., 1]
    frames = np.lib.stride_tricks.sliding_window_view(data, length, axis=1)[:, :: int(frame_step)] * weights
    spectrum = np.fft.fft(frames, axis=-1)[..., : length // 2 + 1 if onesided else length]
    return np.stack([spectrum.real, spectrum.imag], axis=-1).astype(signal.dtype)
