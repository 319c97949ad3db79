#!/usr/bin/env python3
"""Installs the hosts of versions.json from npm, each into a folder of its own in the cache: tests/agents/install.py [HOST ...]

What is there stays; a folder gets its name only when its installation is complete.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

from host import CACHE, VERSIONS
from hosts import HOSTS


def size(folder):
    """In megabytes, as the disk has it."""
    found = {}
    for parent, _, files in os.walk(folder):
        for name in files:
            status = os.lstat(os.path.join(parent, name))
            found[status.st_ino] = status.st_blocks * 512
    return sum(found.values()) / 1e6


def install(word):
    folder = HOSTS[word].folder()
    if HOSTS[word].program().exists():
        return
    wanted = VERSIONS[word]
    print(f"agents: npm install {wanted['package']} {wanted['version']} …", file=sys.stderr, flush=True)
    begun = time.monotonic()
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent)
    try:
        subprocess.run(
            ["npm", "install", "--prefix", unfinished, "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=5",
             "--loglevel=error", f"{wanted['package']}@{wanted['version']}"], check=True, stdout=sys.stderr,
        )
        # Tests start hosts as another user, too.
        os.chmod(unfinished, 0o755)
        os.rename(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    seconds = time.monotonic() - begun
    print(f"agents: {wanted['package']} is there: {seconds:.0f} s, {size(folder):.0f} MB", file=sys.stderr, flush=True)


def main():
    begun = time.monotonic()
    words = sys.argv[1:] or list(HOSTS)
    for word in words:
        install(word)
    megabytes = sum(size(HOSTS[word].folder()) for word in words)
    print(f"agents: {len(words)} hosts in {CACHE / 'agents'}: {time.monotonic() - begun:.0f} s, {megabytes:.0f} MB", file=sys.stderr)


main()
