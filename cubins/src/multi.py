"""Three kernels in one image: three signatures of one function, the sums of a matrix's rows.

`multi_a` and `multi_b` promise dense, aligned arrays, so from sm_90 on they move tiles with TMA and need descriptors from
their host callbacks; `multi_c` promises nothing and needs none. tileiras 13.2 gives a callback to the first kernel only,
13.3 and later to each.
"""
import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, ConstantConstraint


@ct.kernel
def row_sums_kernel(x, y, columns: ct.Constant[int]):
    i = ct.bid(0)
    total = ct.full((1, columns), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(x, axis=1, shape=(1, columns))):
        tile = ct.load(x, (i, k), (1, columns), padding_mode=ct.PaddingMode.ZERO)
        total = total + ct.astype(tile, ct.float32)
    ct.store(y, (i,), ct.reshape(ct.sum(total, axis=1), (1,)))


def array(dtype, dimensions, **promises):
    return ArrayConstraint(
        dtype, dimensions, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=[], may_alias_internally=False, **promises
    )


def dense(dtype):
    """Rows without gaps, everything a multiple of 16 bytes: what a framework's tensor gives."""
    many = 16 // (dtype.bitwidth // 8)
    return array(
        dtype, 2, stride_constant=[None, 1], stride_divisible_by=[many, 1], shape_divisible_by=[many, many],
        base_addr_divisible_by=16,
    )


KERNEL = row_sums_kernel
SUMS = array(ct.float32, 1, stride_constant=[1])
SIGNATURES = {
    "multi_a": [dense(ct.float32), SUMS, ConstantConstraint(256)],
    "multi_b": [dense(ct.float16), SUMS, ConstantConstraint(512)],
    "multi_c": [array(ct.float32, 2), array(ct.float32, 1), ConstantConstraint(256)],
}
