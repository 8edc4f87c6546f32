"""export.py SOURCE OUT BYTECODE_VERSION [GPU]: a cuda-tile source to Tile IR bytecode, in an environment with cuda-tile.

The source is run under the name /cubin-stress-src/SOURCE whatever folder it lies in: that name, and no other, ends up in the
line information. No such folder is needed, the source's text is handed to Python's line cache. Without GPU (cuda-tile 1.7
and later) the bytecode is for any architecture.
"""
import linecache
import pathlib
import sys
import types

FOLDER = "/cubin-stress-src"


def load(source):
    """Runs a kernel's source under its neutral name; its module."""
    text = source.read_text(encoding="utf-8")
    name = f"{FOLDER}/{source.name}"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module = types.ModuleType(source.stem)
    module.__file__ = name
    sys.modules[source.stem] = module
    exec(compile(text, name, "exec"), module.__dict__)
    return module


def main(source, out, bytecode_version, gpu=None):
    from cuda.tile.compilation import CallingConvention, KernelSignature, export_kernel

    # Both conventions pass an array as pointer, shapes, strides; v2 came with cuda-tile 1.5.
    convention = getattr(CallingConvention, "cutile_python_v2", CallingConvention.cutile_python_v1)()
    module = load(pathlib.Path(source))
    signatures = [KernelSignature(arguments, convention, symbol=symbol) for symbol, arguments in module.SIGNATURES.items()]
    export_kernel(
        module.KERNEL, signatures, out, gpu_code=gpu, output_format="tileir_bytecode", bytecode_version=bytecode_version
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
