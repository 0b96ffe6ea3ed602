"""torch_file: writes files as torch.save does, without PyTorch: a zip archive of a pickle and of storages."""
import struct
import zipfile

STORAGES = {"F32": "Float", "F16": "Half", "BF16": "BFloat16", "F64": "Double", "I64": "Long"}
DICT = b"ccollections\nOrderedDict\n)R"


def integer(n):
    return b"J" + struct.pack("<i", n) if n < 1 << 31 else b"\x8a\x08" + struct.pack("<q", n)


def text(s):
    return b"X" + struct.pack("<I", len(s.encode())) + s.encode()


def numbers(values):
    return b"(" + b"".join(map(integer, values)) + b"t"


def tensor(dtype, shape, key, count, offset=0, strides=None):
    """The instructions of a view of storage `key`; without strides, of numbers one after the other."""
    if strides is None:
        strides = [1] * len(shape)
        for i in range(len(shape) - 2, -1, -1):
            strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    storage = (b"(" + text("storage") + f"ctorch\n{STORAGES[dtype]}Storage\n".encode() + text(key) + text("cpu")
               + integer(count) + b"tQ")
    return (b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + integer(offset) + numbers(shape) + numbers(strides)
            + b"\x89" + DICT + b"tR")


def write(path, tensors, inside=None):
    """`tensors`: name -> (dtype, shape, bytes), each with a storage of its own; in the member `inside` of a
    dictionary, if it is given."""
    size = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8, "I64": 8}
    state = DICT + b"("
    for key, (name, (dtype, shape, data)) in enumerate(tensors.items()):
        state += text(name) + tensor(dtype, shape, str(key), len(data) // size[dtype])
    state += b"u"
    if inside:
        state = b"}" + text(inside) + state + b"s"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        file.writestr("archive/data.pkl", b"\x80\x02" + state + b".")
        file.writestr("archive/byteorder", "little")
        for key, (_, _, data) in enumerate(tensors.values()):
            with file.open(f"archive/data/{key}", "w", force_zip64=True) as member:
                member.write(data)
        file.writestr("archive/version", "3\n")


def write_arrays(path, arrays, inside=None):
    """The same of NumPy's arrays of float32."""
    write(path, {name: ("F32", list(x.shape), x.astype("<f4").tobytes()) for name, x in arrays.items()}, inside)
