"""C = A x B in half precision, 128 x 128 x 64 tiles, as cuda-tile source.

Its arrays are dense and aligned, so from sm_90 on the compiler moves tiles with TMA: the host callback writes three
128-byte descriptors behind the fifteen user parameters. This is what the add kernel's callback does not do.
"""
import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, ConstantConstraint


@ct.kernel
def matmul_kernel(a, b, c, rows: ct.Constant[int], columns: ct.Constant[int], depth: ct.Constant[int]):
    i = ct.bid(0)
    j = ct.bid(1)
    total = ct.full((rows, columns), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(rows, depth))):
        left = ct.load(a, index=(i, k), shape=(rows, depth), padding_mode=ct.PaddingMode.ZERO)
        right = ct.load(b, index=(k, j), shape=(depth, columns), padding_mode=ct.PaddingMode.ZERO)
        total = ct.mma(left, right, total)
    ct.store(c, index=(i, j), tile=ct.astype(total, c.dtype))


def dense(dtype):
    """Rows without gaps, everything a multiple of 16 bytes: what a framework's tensor gives."""
    many = 16 // (dtype.bitwidth // 8)
    return ArrayConstraint(
        dtype, 2, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=[], may_alias_internally=False,
        stride_constant=[None, 1], stride_divisible_by=[many, 1], shape_divisible_by=[many, many], base_addr_divisible_by=16,
    )


def sizes(rows, columns, depth):
    return [ConstantConstraint(rows), ConstantConstraint(columns), ConstantConstraint(depth)]


KERNEL = matmul_kernel
SIGNATURES = {"matmul": [dense(ct.float16)] * 3 + sizes(128, 128, 64)}
