"""All passes by name."""

from typing import Final

from onnxjson.passes.declaration import Pass, name_of
from onnxjson.passes.edits import EditPass, ScriptPass
from onnxjson.passes.extract_adapters import ExtractAdapters
from onnxjson.passes.fix_dims import FixDims
from onnxjson.passes.float16 import Float16
from onnxjson.passes.mixed_precision import MixedPrecision
from onnxjson.passes.onnxoptimizer import Onnxoptimizer
from onnxjson.passes.onnxruntime import Onnxruntime
from onnxjson.passes.onnxscript import Onnxscript
from onnxjson.passes.onnxsim import Onnxsim
from onnxjson.passes.onnxslim import Onnxslim
from onnxjson.passes.peephole import Peephole
from onnxjson.passes.qnn_preprocess import QnnPreprocess
from onnxjson.passes.quantization import QuantizeDynamic, QuantizeStatic
from onnxjson.passes.symbolic_shapes import SymbolicShapes
from onnxjson.passes.transformers import Transformers
from onnxjson.passes.user import PluginPass, UserPass

PASSES: Final[tuple[type[Pass], ...]] = (
    Onnxoptimizer,
    Onnxsim,
    Onnxslim,
    Onnxscript,
    Onnxruntime,
    Transformers,
    Float16,
    MixedPrecision,
    QuantizeDynamic,
    QuantizeStatic,
    SymbolicShapes,
    FixDims,
    ExtractAdapters,
    Peephole,
    QnnPreprocess,
)
"""Every pass, in the order of the help."""

KINDS: Final[tuple[type[Pass], ...]] = (*PASSES, EditPass, ScriptPass, UserPass, PluginPass)
"""Everything that a pipeline runs."""

NAMES: Final[dict[str, type[Pass]]] = {name_of(each): each for each in PASSES}
"""Every pass by its name."""
