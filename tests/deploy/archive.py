#!/usr/bin/env python3
"""Packs programs that are built already into an archive as dist/build makes it, for tests.

    tests/deploy/archive.py FOLDER_WITH_THE_PROGRAMS VERSION OUT [--target TRIPLE]

Debugging information is left out: it is most of a debug build.
"""
import pathlib
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(root / "dist"))
from archives import PROGRAMS, tgz, write  # noqa: E402


def pack(programs, version, out, target="x86_64-unknown-linux-gnu", names=PROGRAMS):
    """The path of the archive."""
    top = f"countersign-{version}-{target}"
    members = [(f"{top}/{name}", (root / name).read_bytes(), 0o644) for name in ("LICENSE", "README.md")]
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            stripped = pathlib.Path(folder) / name
            subprocess.run(["strip", "-o", stripped, pathlib.Path(programs) / name], check=True)
            members.append((f"{top}/bin/{name}", stripped.read_bytes(), 0o755))
    path = pathlib.Path(out) / f"{top}.tar.gz"
    write(path, tgz(members, 1_760_000_000, level=1))
    return path


if __name__ == "__main__":
    target = sys.argv[5:6] if sys.argv[4:5] == ["--target"] else []
    print(pack(*sys.argv[1:4], *target))
