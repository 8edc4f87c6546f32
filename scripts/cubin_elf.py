"""What the MANIFEST records about an image, read from its bytes. Python's standard library only.

Understands just enough ELF for images that our own compilers made; it does not judge other people's files (the tool's own
reader, crates/cubin-image, does that).
"""
import hashlib
import struct

EMBEDDED_HOST = 0x70000087
KPARAM_INFO, CBANK_PARAM_SIZE, REQNTID, KPARAM_INFO_V2 = 0x17, 0x19, 0x10, 0x45


def sections(image):
    """A list of (name, type, bytes) in file order; NOBITS sections are empty."""
    table, = struct.unpack_from("<Q", image, 40)
    size, count, names = struct.unpack_from("<HHH", image, 58)
    raw = [struct.unpack_from("<IIQQQQIIQQ", image, table + i * size) for i in range(count)]
    text = image[raw[names][4] : raw[names][4] + raw[names][5]]
    return [
        (text[r[0] : text.index(0, r[0])].decode(), r[1], b"" if r[1] == 8 else image[r[4] : r[4] + r[5]]) for r in raw
    ]


def records(info):
    """The (attribute, value) records of a .nv.info section."""
    at = 0
    while at + 4 <= len(info):
        form, attribute, half = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == 4:
            yield attribute, info[at : at + half]
            at += (half + 3) & ~3
        else:
            yield attribute, struct.pack("<H", half)


def parameters(info):
    """(number of user parameters, their end, bytes of the parameter bank, required block) of a .nv.info.KERNEL section."""
    count = end = bank = 0
    block = None
    for attribute, value in records(info):
        if attribute == KPARAM_INFO:
            _, _, offset, word = struct.unpack("<IHHI", value)
            count, end = count + 1, max(end, offset + (word >> 18))
        elif attribute == KPARAM_INFO_V2:
            _, _, offset, length, _, _ = struct.unpack("<IHHHBB", value)
            count, end = count + 1, max(end, offset + length)
        elif attribute == CBANK_PARAM_SIZE:
            bank, = struct.unpack("<H", value)
        elif attribute == REQNTID:
            block = list(struct.unpack("<III", value))
    return count, end, bank, block


def callback_names(host):
    """The kernels that a host object has callbacks for: the strings behind its __CUDA_TILEIR_FUNC_NAME* symbols."""
    table, = struct.unpack_from("<Q", host, 40)
    size, count, _ = struct.unpack_from("<HHH", host, 58)
    raw = [struct.unpack_from("<IIQQQQIIQQ", host, table + i * size) for i in range(count)]
    found = []
    for section in (r for r in raw if r[1] == 2):
        strings = raw[section[6]][4]
        for at in range(section[4], section[4] + section[5], 24):
            name, _, _, index, value, _ = struct.unpack_from("<IBBHQQ", host, at)
            start = strings + name
            if host[start : host.index(0, start)].startswith(b"__CUDA_TILEIR_FUNC_NAME"):
                where = raw[index][4] + value
                found.append(host[where : host.index(0, where)].decode())
    return sorted(found)


def describe(image):
    """The facts that stand in the MANIFEST beside an image: host object, and of each kernel its code, parameters, callback."""
    parts = sections(image)
    host = next((data for name, kind, data in parts if name == ".nv.host" and kind == EMBEDDED_HOST), None)
    callbacks = callback_names(host) if host else []
    kernels = []
    for name, _, data in parts:
        if not name.startswith(".nv.info."):
            continue
        kernel = name[len(".nv.info.") :]
        count, end, bank, block = parameters(data)
        code = next(code for other, _, code in parts if other == ".text." + kernel)
        kernels.append({
            "name": kernel,
            "parameters": count,
            "parameter_bytes": end,
            "hidden_parameter_bytes": bank - end,
            "required_block": block,
            "callback": kernel in callbacks,
            "code_bytes": len(code),
            "code_sha256": hashlib.sha256(code).hexdigest(),
        })
    return {"host_object": host is not None, "host_object_bytes": len(host or b""), "kernels": sorted(kernels, key=lambda k: k["name"])}
