"""The regular twin of a Tile image: the PTX that the image carries, compiled by ptxas alone.

It has the same kernels and parameters, no host object, and (for the add kernel) the same machine code: what is left of the
difference between the two is how the driver treats them. The MANIFEST records its code, so that a machine without ptxas
can still say whether a twin is right.
"""
import hashlib
import re

import cubin_elf


def regular_ptx(image):
    """The image's PTX without what marks it as Tile IR; its target. None if the image carries no PTX."""
    text = next((data for name, _, data in cubin_elf.sections(image) if name == ".nv_debug_ptx_txt"), None)
    if text is None:
        return None
    text = text.replace(b"\0", b"\n").decode("utf-8", "replace")
    text = text.partition(".nv_intermediate_source_section")[0]
    text = re.sub(r"^.*\b___NV_TILE_LAUNCH_META_DATA___\b.*;\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\.language .*\n", "", text, flags=re.MULTILINE)
    target = re.search(r"^\.target\s+(\w+)", text, flags=re.MULTILINE).group(1)
    return text, target


def describe(image, facts, tools, folder):
    """What the MANIFEST says of an image's twin: how it is made and whether its machine code is the image's own."""
    needy = [k for k in facts["kernels"] if k["hidden_parameter_bytes"]]
    if needy:
        return {"refused": "; ".join(f"{k['name']} reads {k['hidden_parameter_bytes']} bytes behind its parameters that only a host object writes" for k in needy)}
    found = regular_ptx(image)
    if found is None:
        return {"refused": "the image carries no PTX"}
    text, target = found
    source, out = folder / "twin.ptx", folder / "twin.cubin"
    source.write_text(text, encoding="utf-8", newline="\n")
    flags = [f"-arch={target}", "-O3"]
    tools.run(tools.bin / "ptxas", *flags, source, "-o", out)
    twin = cubin_elf.describe(out.read_bytes())
    own = {k["name"]: k["code_sha256"] for k in facts["kernels"]}
    return {
        "compiler": "ptxas",
        "compiler_version": tools.version("nvidia-cuda-nvcc"),
        "flags": flags,
        "ptx_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "host_object": twin["host_object"],
        "kernels": [{"name": k["name"], "parameters": k["parameters"], "code_sha256": k["code_sha256"], "code_equal": k["code_sha256"] == own.get(k["name"])} for k in twin["kernels"]],
    }
