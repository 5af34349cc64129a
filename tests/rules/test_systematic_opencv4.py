"""What OpenCV 4.14 and TVM get wrong of layers of images, by their pads and axes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.proven import operators_for

ONE_TAP = """(float[1,2,4,5] X) => (float[1,2,a,b] Y) <float[2,2,1,1] w = {1, 2, 3, 4}>
{ Y = Conv <kernel_shape = [1, 1], pads = %s, strides = %s> (X, w) }"""
EACH = """(float[1,2,%s,5] X) => (float[1,2,a,b] Y)
<float[2,1,3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1}>
{ Y = Conv <group = 2, kernel_shape = [3, 3], pads = %s, strides = %s, dilations = %s> (X, w) }"""
PLACES = """(float[1,1,12,12] X) => (float[1,1,14,14] Y, int64[1,1,14,14] Z)
{ Y, Z = MaxPool <kernel_shape = [3, 3], pads = [2, 2, 2, 2]> (X) }"""
GROUPS = """(float[2,4] X) => (float[2,4] Y) <float[4] s = {1, 2, 3, 4}>
{ Y = GroupNormalization <num_groups = 2> (X, s, s) }"""
LIST = """(float[3] X) => (float[3] Y) <float[1] s = {2}> { Y = BatchNormalization (X, s, s, s, s) }"""

KEPT = {"Conv": 1}
PADDED = {"Pad": 1, "Conv": 1}


@pytest.mark.parametrize(
    ("graph", "written"),
    [
        (ONE_TAP % ("[0, 0, 0, 1]", "[1, 1]"), PADDED),
        (ONE_TAP % ("[0, 0, 0, 1]", "[1, 2]"), KEPT),
        (ONE_TAP % ("[0, 1, 0, 1]", "[1, 1]"), KEPT),
        (EACH % ("4", "[0, 0, 2, 0]", "[1, 1]", "[1, 1]"), PADDED),
        (EACH % ("4", "[0, 0, 1, 2]", "[1, 1]", "[1, 1]"), KEPT),
        (EACH % ("4", "[2, 0, 2, 0]", "[1, 1]", "[1, 1]"), KEPT),
        (EACH % ("5", "[1, 1, 2, 1]", "[2, 2]", "[1, 1]"), KEPT),
        (EACH % ("4", "[1, 1, 2, 1]", "[2, 2]", "[1, 1]"), PADDED),
        (EACH % ("7", "[0, 0, 3, 2]", "[1, 1]", "[2, 1]"), PADDED),
        (EACH % ("7", "[0, 0, 3, 2]", "[1, 2]", "[1, 2]"), KEPT),
        (EACH % ("H", "[0, 0, 2, 0]", "[1, 1]", "[1, 1]"), PADDED),
        (EACH % ("H", "[0, 0, 2, 0]", "[2, 1]", "[1, 1]"), PADDED),
    ],
)
def test_convolutions_are_padded_before_them_where_taps_lie_below(
    graph: str, written: dict[str, int], tmp_path: Path
) -> None:
    assert operators_for(graph, "opencv@4.14.0", tmp_path, 17, 8) == Counter(written)


def test_taps_multiply_no_extremes(tmp_path: Path) -> None:
    found = operators_for(PLACES, "opencv@4.14.0", tmp_path, 17, 8)
    assert (found["Pad"], found["Conv"], found["MaxPool"]) == (1, 1, 0)


def test_norms_of_one_element_each(tmp_path: Path) -> None:
    found = operators_for(GROUPS, "opencv@4.14.0", tmp_path, 21, 10)
    assert found == Counter(Reshape=2, InstanceNormalization=1, Mul=1, Add=1)
    assert operators_for(LIST, "tvm", tmp_path, 17, 8) == Counter(Mul=1, Add=1)
