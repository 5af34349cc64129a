"""What TensorFlow's switches of a resize are called in ONNX."""

from __future__ import annotations


def coordinates(*, align_corners: bool, half_pixel_centers: bool) -> str:
    """Return what the switches of a resize mean, in the words of ONNX."""
    if align_corners:
        return "align_corners"
    return "half_pixel" if half_pixel_centers else "asymmetric"
