"""cutile_export.py --gpu=sm_NN SOURCE -o OUT: compiles the kernels of a cuda-tile source to one cubin.

A source may say what to compile: KERNEL, and SIGNATURES, a dict of symbol -> list of parameter constraints. One that does
not must hold one kernel whose parameters are all arrays: they become two-dimensional arrays of 32-bit floats, and the
symbol is repro_kernel.
"""
import argparse
import inspect
import runpy
import sys


def plain_matrix(ct, compilation):
    return compilation.ArrayConstraint(
        ct.float32, 2, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=[], may_alias_internally=False
    )


def only_kernel(names):
    is_kernel = lambda value: type(value).__name__ == "kernel" and type(value).__module__.startswith("cuda.tile")
    kernels = {id(value): value for value in names.values() if is_kernel(value)}
    if len(kernels) != 1:
        sys.exit(f"the source has {len(kernels)} kernels: say which with KERNEL and SIGNATURES = {{symbol: [constraints]}}")
    return next(iter(kernels.values()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", required=True)
    parser.add_argument("source")
    parser.add_argument("-o", dest="out", required=True)
    arguments = parser.parse_args()

    import cuda.tile as ct
    from cuda.tile import compilation

    names = runpy.run_path(arguments.source)
    kernel = names.get("KERNEL") or only_kernel(names)
    signatures = names.get("SIGNATURES")
    if signatures is None:
        parameters = inspect.signature(kernel._pyfunc).parameters.values()
        if any(p.annotation is not inspect.Parameter.empty for p in parameters):
            sys.exit("a parameter is not a plain array: say what they are with SIGNATURES = {symbol: [constraints]}")
        signatures = {"repro_kernel": [plain_matrix(ct, compilation) for _ in parameters]}
    convention = compilation.CallingConvention
    convention = getattr(convention, "cutile_python_v2", convention.cutile_python_v1)()
    made = [compilation.KernelSignature(each, convention, symbol=symbol) for symbol, each in signatures.items()]
    compilation.export_kernel(kernel, made, arguments.out, gpu_code=arguments.gpu, output_format="cubin")


if __name__ == "__main__":
    main()
