"""Loads an image of the add kernel through NVIDIA's Python bindings, launches it, checks the sums and unloads it.

usage: bindings.py IMAGE BLOCK
"""
import ctypes
import sys

from cuda.bindings import driver as cuda

COUNT = 128 * 128


def done(answer):
    """The values of an answer; ends the program where the call failed."""
    code, *values = answer
    if code != cuda.CUresult.CUDA_SUCCESS:
        sys.exit(f"{code!r}")
    return values[0] if len(values) == 1 else values


def floats(values):
    return (ctypes.c_float * COUNT)(*values)


def sums_right(function, block, device, host):
    done(cuda.cuMemsetD32(device[2], 0, COUNT))
    values, types = [], []
    for address in device:
        values += [int(address), 128, 128, 128, 1]
        types += [ctypes.c_void_p] + [ctypes.c_int32] * 4
    done(cuda.cuLaunchKernel(function, 1, 1, 1, block, 1, 1, 0, 0, (tuple(values), tuple(types)), 0))
    done(cuda.cuCtxSynchronize())
    sums = floats([0.0] * COUNT)
    done(cuda.cuMemcpyDtoH(ctypes.addressof(sums), device[2], 4 * COUNT))
    return all(sums[i] == host[0][i] + host[1][i] for i in range(COUNT))


def main(path, block):
    image = open(path, "rb").read()
    done(cuda.cuInit(0))
    context = done(cuda.cuCtxCreate(None, 0, done(cuda.cuDeviceGet(0))))
    host = [floats(float(i % 31 + k) for i in range(COUNT)) for k in range(2)]
    device = [done(cuda.cuMemAlloc(4 * COUNT)) for _ in range(3)]
    for address, values in zip(device, host):
        done(cuda.cuMemcpyHtoD(address, ctypes.addressof(values), 4 * COUNT))

    module = done(cuda.cuModuleLoadData(image))
    function = done(cuda.cuModuleGetFunction(module, b"repro_kernel"))
    print("sums", "right" if sums_right(function, block, device, host) else "wrong")
    done(cuda.cuModuleUnload(module))
    code = cuda.cuModuleGetFunction(module, b"repro_kernel")[0]
    print("stale", int(code), done(cuda.cuGetErrorName(code)).decode())

    library = done(cuda.cuLibraryLoadData(image, [], [], 0, [], [], 0))
    kernel = done(cuda.cuLibraryGetKernel(library, b"repro_kernel"))
    function = done(cuda.cuKernelGetFunction(kernel))
    right = sums_right(function, block, device, host)
    print("library kernel", done(cuda.cuKernelGetName(kernel)).decode(), "sums", "right" if right else "wrong")
    done(cuda.cuLibraryUnload(library))

    for address in device:
        done(cuda.cuMemFree(address))
    done(cuda.cuCtxDestroy(context))
    print("done")


main(sys.argv[1], int(sys.argv[2]))
