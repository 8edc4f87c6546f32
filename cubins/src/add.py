"""c = a + b on one 128 x 128 tile: the kernel of the report, as cuda-tile source.

One block of one launch computes the whole result. The signature leaves strides and divisibility open, so the compiler
emits fifteen parameters: for each array its pointer, two shapes and two strides (32-bit, in elements).
"""
import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint


@ct.kernel
def add_kernel(a, b, c):
    ct.store(c, (0, 0), ct.load(a, (0, 0), (128, 128)) + ct.load(b, (0, 0), (128, 128)))


def matrix():
    """Two dimensions, nothing promised about alignment or strides."""
    return ArrayConstraint(ct.float32, 2, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=[], may_alias_internally=False)


KERNEL = add_kernel
SIGNATURES = {"repro_kernel": [matrix(), matrix(), matrix()]}
