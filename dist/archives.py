"""Reads the archives of a release: OUT/countersign-VERSION-TARGET.tar.gz, with one folder of the same name in it."""
import gzip
import io
import os
import pathlib
import re
import sys
import tarfile
import tempfile
import zipfile

PROGRAMS = ("countersign", "countersign-hook", "countersign-gateway")
ARCHIVE = re.compile(r"countersign-(?P<version>\d+\.\d+\.\d+[\w.+-]*?)-(?P<target>(?:x86_64|aarch64)-[a-z]\S*)\.(?:tar\.gz|zip)")


class Archive:
    """The programs for one system."""

    def __init__(self, path, version):
        self.path = pathlib.Path(path)
        named = ARCHIVE.fullmatch(self.path.name)
        if named is None or named["version"] != version:
            sys.exit(f"{self.path}: an archive of {version} is called countersign-{version}-TARGET.tar.gz; give those that dist/build {version} has made")
        self.version, self.target = version, named["target"]
        self.ending = ".exe" if "windows" in self.target else ""
        self.time = 0
        """When it was made: the newest time of a file in it, in seconds."""
        self.files = dict(self._files())
        if not self.programs():
            sys.exit(f"{self.path}: there is no bin/countersign{self.ending} in it")

    def _files(self):
        top = f"countersign-{self.version}-{self.target}/"
        if self.path.suffix == ".zip":
            with zipfile.ZipFile(self.path) as archive:
                for member in archive.namelist():
                    if not member.endswith("/"):
                        yield member.removeprefix(top), archive.read(member)
        else:
            with tarfile.open(self.path) as archive:
                for member in archive:
                    if member.isfile():
                        self.time = max(self.time, int(member.mtime))
                        yield member.name.removeprefix("./").removeprefix(top), archive.extractfile(member).read()

    def programs(self):
        """Name and bytes of each program; not every system has the gateway."""
        found = {f"{name}{self.ending}": self.files.get(f"bin/{name}{self.ending}") for name in PROGRAMS}
        return {name: data for name, data in found.items() if data is not None}


def write(path, data):
    """Replaces a file completely or not at all."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def tgz(members, at, level=6):
    """A .tar.gz of (name, bytes, mode), the same bytes each time."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", filename="", mtime=0, compresslevel=level) as packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data, mode in members:
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = len(data), mode, at
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()
