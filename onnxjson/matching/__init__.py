"""Which node of one model is which of another, by structure: `aligning.align` is the door, `alignment` what comes out.

Modules of this package import numpy, `alignment`, `contents` and `interface` excepted; load them when they are needed.
"""
