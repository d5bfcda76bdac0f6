"""Compile the text of a .proto file, without a protoc: grpcio-tools has the compiler as a library."""

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_tools import protoc

from lockstep.formats.errors import SchemaInvalid

_FILE = "schema.proto"


def compiled(schema: str) -> FileDescriptor:
    """The file's descriptor, in a pool of its own. It may import ``google/protobuf/*.proto`` and ``google/type/*.proto``.

    Raises:
        SchemaInvalid: the compiler refuses the text. The message is the compiler's.
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / _FILE).write_text(schema)
        output = Path(folder) / "descriptors"
        command = ["protoc", f"-I{folder}", *(f"-I{path}" for path in _known()), "--include_imports"]
        command += [f"--descriptor_set_out={output}", _FILE]
        if protoc.main(command):
            raise SchemaInvalid(f"its .proto file cannot be compiled: {_reason(folder, command)}")
        found = FileDescriptorSet.FromString(output.read_bytes())
    pool = DescriptorPool()
    for file in found.file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool.FindFileByName(_FILE)


def _known() -> list[str]:
    """The folders with the files that every .proto file may import."""
    folders = [Path(protoc.__file__).parent / "_proto"]
    common = find_spec("google.type")
    folders += [Path(one).parents[1] for one in (common.submodule_search_locations if common else None) or []]
    return [str(folder) for folder in folders]


def _reason(folder: str, command: list[str]) -> str:
    """What the compiler says of the file. As a library, it says so to the standard error of the process."""
    said = subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", *command[1:]], capture_output=True, text=True, check=False
    )
    lines = [line.removeprefix(f"{folder}/") for line in said.stderr.splitlines()]
    return " ".join(line for line in lines if line.startswith(_FILE)) or lines[-1]
