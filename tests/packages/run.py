#!/usr/bin/env python3
"""Packages of given programs, without a clean system: what install.sh refuses, and what the scripts of the deb do.

Usage: tests/packages/run.py FOLDER_WITH_THE_PROGRAMS

Needs root, minisign, bubblewrap and dpkg. demo/install.sh installs the same packages on clean systems, with systemd.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VERSION = "0.0.7"
TARGET = "x86_64-unknown-linux-gnu"
PROGRAMS = ["countersign", "countersign-hook", "countersign-gateway"]
TOOLS = "sh cat cp curl cut env grep gzip head ls mkdir mktemp mv openssl rm sed sha256sum tail tar uname wc".split()
"""What install.sh may use. Without minisign: the check with OpenSSL is ours."""
failed = []


def check(what, held, seen=""):
    print(f"{'✓' if held else '✗'} {what}" + ("" if held else f": {seen}"), flush=True)
    if not held:
        failed.append(what)


def run(*argv, **more):
    return subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=120, **more)


def must(*argv, **more):
    ran = run(*argv, **more)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(str(word) for word in argv)}: {ran.stdout}{ran.stderr}")
    return ran.stdout


def new_key(folder, name):
    must("minisign", "-G", "-W", "-p", folder / f"{name}.pub", "-s", folder / f"{name}.key")
    return folder / f"{name}.key"


def build(programs, out, key):
    must(ROOT / "dist/build", VERSION, "--programs", programs, "--out", out, "--sign", key, "--download-url", f"file://{out}", "--only", "archive,deb")


# --- install.sh --------------------------------------------------------------------------------------------------------


class Person:
    """Somebody with an empty home, who runs install.sh on a copy of what is offered."""

    def __init__(self, scratch, offered, name):
        self.home = scratch / name
        self.home.mkdir()
        self.offered = self.home / "offered"
        shutil.copytree(offered, self.offered, copy_function=os.link)
        self.bin = self.home / "tools"
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))

    def tool(self, name, text):
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.bin / name).chmod(0o755)

    def rewrite(self, name, change):
        """A file of the offer becomes another; those of others stay."""
        file = self.offered / name
        content = change(file.read_bytes())
        file.unlink()
        file.write_bytes(content)

    def installs(self, script=None, **environment):
        offered = {"COUNTERSIGN_DOWNLOAD_URL": f"file://{self.offered}", "HOME": str(self.home), "PATH": str(self.bin), **environment}
        ran = run(self.bin / "sh", script or self.offered / "install.sh", env=offered)
        return ran.returncode == 0, ran.stdout + ran.stderr

    def refused(self, what, says, script=None, **environment):
        done, said = self.installs(script, **environment)
        is_clean = not (self.home / ".local").exists()
        check(f"refused: {what}", not done and says in said and "Nothing was installed." in said and is_clean, said)


def flip(content):
    """One bit in the middle is another."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def installer(scratch, out, other):
    def person(name):
        return Person(scratch, out, name)

    archive = f"countersign-{VERSION}-{TARGET}.tar.gz"
    good = person("good")
    done, said = good.installs()
    version = must(good.home / ".local/bin/countersign", "--version")
    check("installed, checked with OpenSSL; it says that PATH lacks the folder, and what is next",
          done and f"✓ Countersign {VERSION}" in said and "not in your PATH" in said and "Next: countersign up" in said and version, said)
    good.tool("minisign", f'exec {shutil.which("minisign")} "$@"')
    done, said = good.installs(PATH=f"{good.bin}:{good.home}/.local/bin")
    check("installed again, checked with minisign", done and "not in your PATH" not in said, said)

    for how in ("OpenSSL", "minisign"):
        def checker(name, how=how):
            made = person(f"{name}-{how}")
            if how == "minisign":
                made.tool("minisign", f'exec {shutil.which("minisign")} "$@"')
            return made

        stranger = checker("stranger")
        stranger.rewrite("SHA256SUMS.minisig", lambda _: b"")
        (stranger.offered / "SHA256SUMS.minisig").unlink()
        must("minisign", "-S", "-s", other, "-m", stranger.offered / "SHA256SUMS")
        stranger.refused(f"a signature by another key ({how})", "not signed by the key")
        broken = checker("broken")
        broken.rewrite("SHA256SUMS.minisig", lambda text: b"\n".join([text.split(b"\n")[0], b"QUJD", *text.split(b"\n")[2:]]))
        broken.refused(f"a signature that is none ({how})", "not signed by the key")
        sums = checker("sums")
        sums.rewrite("SHA256SUMS", lambda text: (b"1" if text[:1] == b"0" else b"0") + text[1:])
        sums.refused(f"checksums that were altered ({how})", "not signed by the key")

    altered = person("altered")
    altered.rewrite(archive, flip)
    altered.refused("an archive that was altered", "is not what was signed")
    gone = person("gone")
    (gone.offered / "SHA256SUMS.minisig").unlink()
    gone.refused("checksums without a signature", "can't download")
    without = person("without")
    (without.bin / "openssl").unlink()
    without.refused("neither minisign nor OpenSSL", "the signature can't be checked")
    old = person("old")
    old.tool("openssl", f'[ "$2" = -help ] && {{ echo "Usage: pkeyutl"; exit 0; }}; exec {shutil.which("openssl")} "$@"')
    old.refused("an OpenSSL that is too old", "no OpenSSL 3")
    strange = person("strange")
    strange.tool("uname", '[ "$1" = -s ] && echo Plan9 || echo mips')
    strange.refused("an unknown system", "no programs for Plan9/mips")
    arm = person("arm")
    arm.tool("uname", '[ "$1" = -s ] && echo Linux || echo aarch64')
    arm.refused("a system that this release has no programs for", "this release has no programs for aarch64-unknown-linux-gnu")
    person("source").refused("the script of the source", "without a key", ROOT / "dist/install.sh")
    person("nowhere").refused("an address where nothing is", "can't download", COUNTERSIGN_DOWNLOAD_URL="file:///nonexistent")
    half = person("half")
    text = (half.offered / "install.sh").read_bytes()
    half.rewrite("install.sh", lambda _: text[: text.index(b"# All of it has arrived")])
    done, said = half.installs()
    check("half a script does nothing", done and not said and not (half.home / ".local").exists(), said)


# --- the scripts of the deb --------------------------------------------------------------------------------------------

LIFE = """
set -eu
G=/mnt/gateway/DEBIAN T=/mnt/tool/DEBIAN
sh $G/postinst configure >/tmp/said && sh $T/postinst configure
grep -q 'systemctl enable --now countersign-gateway' /tmp/said
echo "accounts: $(id -un countersign) $(id -un countersign-keeper)"
echo "settings: $(stat -c '%a %U:%G' /etc/countersign/gateway.toml)"
echo "folders: $(stat -c '%a %U' /var/lib/countersign /var/lib/countersign-keeper | tr '\\n' ' ')"
setpriv --reuid countersign --regid countersign --clear-groups countersign-gateway check --config /etc/countersign/gateway.toml
sh $G/postinst configure 0.0.1 >/tmp/said && [ ! -s /tmp/said ] && echo "upgrade: nothing to say"
touch /var/lib/countersign/kept
sh $G/prerm upgrade && sh $G/prerm remove && sh $T/prerm remove && sh $G/postrm remove && sh $T/postrm remove
echo "after remove: $(ls /var/lib/countersign) $(id -un countersign)"
sh $G/postrm purge && sh $T/postrm purge
ls -d /var/lib/countersign* /etc/countersign 2>/dev/null || echo "after purge: no folder"
id -un countersign countersign-keeper 2>/dev/null || echo "after purge: no account"
"""
SAID = """accounts: countersign countersign-keeper
settings: 640 root:countersign
folders: 700 countersign 711 countersign-keeper \n"""


def deb(scratch, out):
    for name, folder in (("countersign", "tool"), ("countersign-gateway", "gateway")):
        must("dpkg-deb", "-R", out / f"{name}_{VERSION}_amd64.deb", scratch / folder)
    tool, gateway = scratch / "tool", scratch / "gateway"
    fields = must("dpkg-deb", "-f", out / f"countersign-gateway_{VERSION}_amd64.deb", "Depends", "Version")
    check("the deb names the glibc that its programs need", "libc6 (>= 2." in fields and VERSION in fields, fields)
    check("its configuration is kept over upgrades", (gateway / "DEBIAN/conffiles").read_text().split() == ["/etc/countersign/gateway.toml"])
    ours = (ROOT / "packaging/account/countersign-keeper.service").read_text().replace("/usr/lib/countersign/countersign ", "/usr/bin/countersign ")
    packed = (tool / "usr/lib/systemd/system/countersign-keeper.service").read_text()
    check("the keeper's unit is that of packaging/account, with the package's program", set(ours.splitlines()) - set(packed.splitlines()) == {
        line for line in ours.splitlines() if "install.sh" in line} and "ExecStart=/usr/bin/countersign keeper" in packed, packed)
    check("the gateway's unit is that of docs/operating.md", (gateway / "usr/lib/systemd/system/countersign-gateway.service").read_text() in (ROOT / "docs/operating.md").read_text())
    check("the configuration is what `config` prints", must(gateway / "usr/bin/countersign-gateway", "config").strip() == (gateway / "etc/countersign/gateway.toml").read_text().strip())
    pages = {package: {path.name for path in (package / "usr/share/man/man1").iterdir()} for package in (tool, gateway)}
    check("each package has the manual of its program", {"countersign.1.gz", "countersign-up.1.gz"} < pages[tool] and {
        "countersign-gateway.1.gz", "countersign-gateway-serve.1.gz"} < pages[gateway] and not pages[tool] & pages[gateway], str(pages))
    check("completions are in it", all(
        list((tool / "usr/share").glob(f"{folder}/*countersign*")) for folder in ("bash-completion/completions", "zsh/vendor-completions", "fish/vendor_completions.d")))
    shutil.copytree("/etc", scratch / "etc", symlinks=True, ignore_dangling_symlinks=True)
    shutil.copytree(gateway / "etc/countersign", scratch / "etc/countersign")
    machine = [
        "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run", "--tmpfs", "/var/lib", "--tmpfs", "/mnt",
        "--bind", scratch / "etc", "/etc", "--ro-bind", tool, "/mnt/tool", "--ro-bind", gateway, "/mnt/gateway",
        "--unshare-net", "--unshare-pid", "--die-with-parent", "--cap-add", "ALL", "--clearenv",
        "--setenv", "PATH", "/mnt/gateway/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin", "sh", "-c", LIFE,
    ]
    ran = run(*machine)
    said = ran.stdout + ran.stderr
    check("accounts, folders and settings are made, and closed to others", said.startswith(SAID), said)
    check("the gateway's account can use its configuration", "is fine" in said, said)
    check("an upgrade says nothing, a removal leaves data and accounts, a purge nothing", all(
        line in said for line in ("upgrade: nothing to say", "after remove: kept countersign", "after purge: no folder", "after purge: no account")), said)


def main():
    if os.geteuid() != 0:
        sys.exit("tests/packages: it makes accounts, in a copy of /etc: run it as root")
    given = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="countersign-packages-") as scratch:
        scratch = pathlib.Path(scratch)
        programs = scratch / "programs"
        programs.mkdir()
        for name in PROGRAMS:
            must("strip", "--strip-all", "-o", programs / name, given / name)
        key, other = new_key(scratch, "ours"), new_key(scratch, "other")
        out = scratch / "out"
        build(programs, out, key)
        installer(scratch, out, other)
        deb(scratch, out)
        # The same input, the same bytes.
        again = scratch / "again"
        build(programs, again, key)
        same = [file.name for file in out.iterdir() if file.suffix in (".gz", ".deb") and file.read_bytes() != (again / file.name).read_bytes()]
        check("packed twice, the same bytes", not same, json.dumps(same))
    if failed:
        sys.exit(f"{len(failed)} checks failed")


main()
