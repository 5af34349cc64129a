"""What rules build their rewrites from: fragments, and the shape cases to prove them on."""
