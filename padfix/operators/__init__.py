"""What there is to know about windowed, transposed and resampling operators."""
