"""The executable specification: windowed and resampling operators in NumPy, written from the ONNX specification.

ONNX's own reference evaluator is wrong for many of these operators (dilated SAME pools, SAME_LOWER, kernels shorter
than the stride, fractional align_corners), and has no Upsample-7 or Resize-10 at all.
"""
