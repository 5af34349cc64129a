"""The switches of facts about any operator, off unless they are told."""

GENERAL_MARKS = (
    # Of all: whether some of their data have the channels at the end, and some have not, or a sum has put them back.
    # Of GridSample: whether its places have. Of what works element by element: whether computed data have fewer axes
    # than the result, which inputs have moved or nodes have given.
    "orders-differ",
    "put-back",
    "places-moved",
    "fewer-axes",
    "moves-fewer-axes",
    "computed-fewer-axes",
    # Whether a fed list along the last axis is as long as there are channels, and whether fed data of fewer axes come
    # before others.
    "list-for-channels",
    "fed-fewer-axes-first",
    "scales-negative-part",  # Of Mul: whether by a list of slopes, the negative part of data of three axes and more.
    "scales-window",  # Of Div and Mul: whether by a constant, the places of images as large as the window behind them.
    "scales-a-volume",  # Of Mul: whether an input of the model is before a number, and gets or loses five axes behind.
    # Of Add: whether it adds a number to the product with another one, of five axes, the fourth of one element.
    "shifts-scaled-line",
    # Of all: whether their data are integers of 64 bits.
    "of-longs",
    # Of all: whether they read lists of one where numbers are meant.
    "lists-for-numbers",
    # Of all: whether something reads more than their first output.
    "gives-more",
    "integers-as-result",  # Of all: whether a result of the model holds integers that depend on data.
    # Of all: whether they give what an input, a constant or another result is.
    "of-input",
    "gives-the-same",
    "doubles-of-floats",  # Of all: whether they compute with constants in doubles that a Cast makes of floats.
    # Of all operators: whether the model computes what tells them how (a shape, axes), which others have as constants.
    "steered-by-results",
    # Of all operators: whether they give a result of the model that depends on no data.
    "gives-a-constant",
    # Of all operators: whether data tell them how, and not lengths or constants alone.
    "steered-by-data",
    # Of all operators: whether a node gives one of their constants, where others are initializers.
    "constants-by-nodes",
    "reads-halves",  # Of all: whether they read halves, be they data or constants.
    "constants-again",
    "constants-turned",
    "weights-both-ways",
    "number-again",  # Of all: whether they have a constant of one element for a weight that arithmetic has before.
    "reads-unsigned-bytes",  # Of all: whether it reads a constant of bytes without a sign.
    # Of all: whether it reads lengths as a Shape lists them, whether it alone leaves lengths to run time, or makes a
    # number of what is to be a tensor, and whether what tells it what it does is left to run time.
    "reads-list-of-lengths",
    "makes-lengths-late",
    "told-late",
    "reads-nothing",  # Of all: whether what they compute with is a constant without elements.
)
"""Switches that every operator may have."""
