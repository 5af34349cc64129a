"""MNN's adapter: it feeds what MNN makes of the types of inputs."""

from __future__ import annotations

import importlib.util

import numpy as np
import onnx.parser
import pytest

from padfix.runtimes.adapter import open_runtime

if importlib.util.find_spec("MNN") is None:  # beside other libraries in one process it has crashed
    pytest.skip("MNN is not installed", allow_module_level=True)


@pytest.mark.parametrize("name", ["float16", "double", "uint8", "int8", "int64", "bool"])
def test_inputs_of_other_types_are_fed(name: str) -> None:
    dtype = np.dtype({"double": "float64"}.get(name, name))
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        main ({name}[2,3] X) => (float[2,3] Y) {{ wide = Cast <to = 1> (X) Y = Abs (wide) }}""")
    data = np.array([[0, 1, 2], [1, 0, 3]]).astype(dtype)
    (found,) = open_runtime("mnn").run(model.SerializeToString(), {"X": data}, [(2, 3)])
    np.testing.assert_array_equal(found, data.astype(np.float32))
