"""The switches of facts about what a model declares or holds, off unless they are told."""

DECLARED_MARKS = (
    # Of constants: whether an input has it as its default; whether nothing reads it, or something does that quantizes
    # nothing; whether its elements are written one by one and not as bytes.
    "default-of-input",
    "unread-constant",
    "read-constant",
    "elements-apart",
    "empty-constant",  # Of constants: whether one that something reads has no elements.
    "nameless-copied",  # Of inputs of the model: whether open lengths have no name that a Reshape copies or tells.
    "beside-numbers",  # Of windows: whether an input or a result of the model has a number for its name.
    "of-nothing",  # Of inputs and outputs of the model: whether they have no elements.
    "holds-constants",  # Of If: whether its branch has initializers, or a Constant among several nodes without names.
    "counts-alone",  # Of Loop: whether it has no condition, and hands nothing from one turn to the next.
    # Of a Constant of numbers that are no tensor: whether one is an index, given axes or computed with others alone;
    # whether whole ones are taken together with other integers.
    "number-among-numbers",
    "meets-integers",
    "beyond-32-bits",  # Of a Constant of whole numbers that are no tensor: whether one is beyond 32 bits.
    "counts-no-blocks",  # Of SpaceToDepth: whether an open length, taken for 0, is padded to no multiple of blocks.
    "ends-past-axes",  # Of Slice: whether it goes backwards to an end behind more elements than its data have axes.
    "squares-for-whole-norm",  # Of Pow: whether it is part of a norm of all axes, or of all behind the first.
    "drops-batch",  # Of reductions: whether the first axis is gone behind them, and a layer works on images.
    "open-rows-by-several",  # Of MatMul: whether several constant matrices multiply rows of open length.
    # Of what joins inputs element by element: whether a constant matrix of several rows comes before open rows.
    "rows-before-open",
    "open-images-alone",  # Of NonMaxSuppression: whether how many boxes is told, and of how many images is not.
    "gives-short-floats",  # Of Cast and CastLike: whether they give bfloat16 or floats of 8 bits.
    "tuples-open",  # Of GatherND: whether how long its tuples are is left open.
    "adds-lent-row",  # Of Gemm and Add: whether a product adds a row that the model is fed or gives, and uses for more.
    "counts-beyond-halves",  # Of Add: whether it adds whole numbers above 2048 in floats, of which integers are made.
    "by-node",  # Of a sparse constant: whether a Constant holds it.
)
"""Switches of constants, inputs and outputs, of bodies, and of a few operators by what they hold."""
