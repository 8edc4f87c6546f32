"""Three kernels in one image: three signatures of one matrix product.

`multi_a` and `multi_b` move tiles with TMA from sm_90 on and need descriptors from their host callbacks; `multi_c` makes no
promise about alignment and needs none. tileiras 13.2 gives a callback to the first kernel only, 13.3 and later to each.
"""
import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, ConstantConstraint


@ct.kernel
def product_kernel(a, b, c, rows: ct.Constant[int], columns: ct.Constant[int], depth: ct.Constant[int]):
    i = ct.bid(0)
    j = ct.bid(1)
    total = ct.full((rows, columns), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(rows, depth))):
        left = ct.load(a, index=(i, k), shape=(rows, depth), padding_mode=ct.PaddingMode.ZERO)
        right = ct.load(b, index=(k, j), shape=(depth, columns), padding_mode=ct.PaddingMode.ZERO)
        total = ct.mma(left, right, total)
    ct.store(c, index=(i, j), tile=ct.astype(total, c.dtype))


def matrix(dtype, **promises):
    return ArrayConstraint(
        dtype, 2, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=[], may_alias_internally=False, **promises
    )


def dense(dtype):
    many = 16 // (dtype.bitwidth // 8)
    return matrix(
        dtype, stride_constant=[None, 1], stride_divisible_by=[many, 1], shape_divisible_by=[many, many],
        base_addr_divisible_by=16,
    )


def sizes(rows, columns, depth):
    return [ConstantConstraint(rows), ConstantConstraint(columns), ConstantConstraint(depth)]


KERNEL = product_kernel
SIGNATURES = {
    "multi_a": [dense(ct.float16)] * 3 + sizes(128, 128, 64),
    "multi_b": [dense(ct.float32)] * 3 + sizes(64, 64, 32),
    "multi_c": [matrix(ct.float16)] * 3 + sizes(64, 64, 32),
}
