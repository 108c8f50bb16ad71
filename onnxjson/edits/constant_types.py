"""The type of the value that a constant is."""

from onnxjson.document import Dimension, SparseTensor, Tensor, TensorShape, TensorType, Type


def type_of_constant(constant: Tensor | SparseTensor) -> Type:
    """What value_info says of a constant: its dtype and dims."""
    shape = TensorShape(dim=tuple([Dimension(dim_value=size) for size in constant.dims]))
    if isinstance(constant, Tensor):
        return Type(tensor_type=TensorType(elem_type=constant.data_type, shape=shape))
    values = constant.values
    # A value that a sparse initializer defines is a dense tensor for those who take it.
    return Type(tensor_type=TensorType(elem_type=None if values is None else values.data_type, shape=shape))
