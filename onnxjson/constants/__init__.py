"""Constants outside a model: JSON values, base64, .npy and .npz files, and the tensors of a model by name.

A constant is a `document.Tensor` whose elements are in ``raw_data`` (strings: in ``string_data``), whatever it came
from. `values` reads JSON, `encoded` reads base64, `arrays` reads and converts numpy files, `stored` finds a tensor of a
model; `text` and `archives` write. Values that a dtype does not hold are refused, by `exactness`.
"""
