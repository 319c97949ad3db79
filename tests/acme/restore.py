#!/usr/bin/env python3
"""A gateway that gets its certificate from an authority, after its store was restored from an old backup.

    tests/acme/restore.py FOLDER    (with countersign-gateway)

Backups and restores take the steps of deploy/backup/sqlite.sh. Each time the gateway must start, serve a certificate that
the authority vouches for, and take the key that was made before; and it orders another certificate where it must, and only
there. Needs Debian's pebble and `cryptography`; a quarter of a minute. Exits 0 only if all held.
"""
import contextlib, pathlib, re, shutil, socket, sqlite3, subprocess, sys, tempfile, time

from pebble import Pebble, free_port

NAME = "gateway.test"
CONFIG = """listen = "127.0.0.1:{port}"
data = "{data}"
[tls.acme]
directory = "https://localhost:{directory}/dir"
names = ["gateway.test"]
ca = "{ca}"
[store]
kind = "sqlite"
"""
# Short, and long enough to be served before it is renewed.
SHORT_LIFE = 6


class Stage:
    def __init__(self, program, home):
        self.program, self.home, self.port, self.data = program, home, free_port(), home / "data"
        self.pebble, self.config, self.process, self.count = Pebble(home / "pebble", self.port), home / "gateway.toml", None, 0
        ca = self.pebble.authority.file
        self.config.write_text(CONFIG.format(port=self.port, data=self.data, directory=self.pebble.port, ca=ca))
        self.key = self.run("keys", "create", "--tenant", "acme", "--role", "operator").split()[-1]

    def run(self, *args):
        return subprocess.run([self.program, *args[:2], "--config", self.config, *args[2:]], check=True, capture_output=True, text=True).stdout

    def start(self):
        self.count += 1
        self.log = self.home / f"log-{self.count}"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([self.program, "serve", "--config", self.config], stdout=log, stderr=log)

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(20)
        self.process = None

    def backup(self, name):
        """While the gateway runs, if it does."""
        folder = self.home / name
        folder.mkdir()
        with contextlib.closing(sqlite3.connect(self.data / "countersign.sqlite")) as source, contextlib.closing(sqlite3.connect(folder / "copy.sqlite")) as copy:
            source.backup(copy)
        shutil.copy(self.data / "key-secret", folder)

    def restore(self, name, key_secret=None):
        """With the key-secret of the backup, or with one that is newer."""
        self.stop()
        for file in self.data.glob("countersign.sqlite*"):
            file.unlink()
        shutil.copy(self.home / name / "copy.sqlite", self.data / "countersign.sqlite")
        shutil.copy(self.home / name / "key-secret", self.data)
        if key_secret:
            (self.data / "key-secret").write_text(key_secret)
        (self.data / "secret").unlink(missing_ok=True)
        self.run("secret", "accept")
        self.start()

    def shown(self):
        """The certificate that is served to one who trusts the authority, if there is one, and whether our key is taken."""
        try:
            with self.pebble.trusted.wrap_socket(socket.create_connection(("127.0.0.1", self.port), 5), server_hostname=NAME) as s:
                s.sendall(f"GET /platform/v1/keys HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\nAuthorization: Bearer {self.key}\r\n\r\n".encode())
                return s.getpeercert(binary_form=True), s.recv(64)[9:12].decode()
        except OSError:
            return None, None

    def served(self, name, but=()):
        """A certificate that is none of these, as soon as there is one."""
        end = time.time() + 20
        while time.time() < end:
            certificate, status = self.shown()
            if certificate and certificate not in but:
                return certificate, status
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise SystemExit(f"FAILED {name}: nothing new is served\n{self.log.read_text()[-2000:]}")

    def said(self, words):
        return len(re.findall(words, self.log.read_text()))


def check(name, stage, status, accounts, orders=1, said=(), wanted_status="200"):
    """What the log has said since the start, and how many accounts the authority knows."""
    seen = [what for what, words in SAID.items() if stage.said(words)]
    found = status, stage.pebble.accounts(), stage.said("ordering a certificate"), seen
    if found != (wanted_status, accounts, orders, [*said]):
        raise SystemExit(f"FAILED {name}: {found}\n{stage.log.read_text()[-2000:]}")
    print(f"held {name}", flush=True)


SAID = {"forgotten": "the authority does not know the account", "unreadable": "not in key-secret",
        "failed": "no certificate was issued", "panicked": "panicked"}


def expired(stage):
    """The backup is older than a renewal, and its certificate has ended."""
    stage.pebble.start(SHORT_LIFE)
    stage.start()
    first, _ = stage.served("the first order")
    stage.backup("with-a-short-one")
    ends = time.time() + SHORT_LIFE
    renewed, status = stage.served("the renewal", {first})
    check("renewed before anything is restored", stage, status, accounts=1, orders=2)
    time.sleep(max(0, ends + 0.5 - time.time()))
    stage.restore("with-a-short-one")
    after, status = stage.served("an expired certificate", {first, renewed})
    check("an expired certificate in the backup: another is ordered, with the account of the backup", stage, status, accounts=1)
    stage.stop()
    return {first, renewed, after}


def main():
    begun = time.time()
    with tempfile.TemporaryDirectory(prefix="restore-") as home:
        stage = Stage(pathlib.Path(sys.argv[1]).resolve() / "countersign-gateway", pathlib.Path(home))
        try:
            stage.backup("empty")
            old = expired(stage)
            stage.pebble.stop()
            stage.pebble.start(3600)
            stage.restore("with-a-short-one")
            first, status = stage.served("an unknown account", old)
            check("an account that the authority does not know: another is made", stage, status, accounts=1, said=["forgotten"])
            stage.backup("with-a-long-one")
            lost = "b" * 64 + "\n"
            stage.restore("with-a-long-one", lost)
            second, status = stage.served("a lost secret", {first})
            # The key was made with the secret that is lost.
            check("a backup that key-secret can't open: everything is ordered anew", stage, status, accounts=2, said=["unreadable"], wanted_status="401")
            stage.restore("with-a-long-one")
            again, status = stage.served("the older certificate")
            if again != first:
                raise SystemExit("FAILED an older certificate that is good: another is served")
            check("an older certificate that is good: it is served, and none is ordered", stage, status, accounts=2, orders=0)
            stage.restore("empty")
            _, status = stage.served("no certificate", {first, second})
            check("a backup from before the first order: one is ordered", stage, status, accounts=3)
        finally:
            stage.stop()
            stage.pebble.end()
    print(f"a store restored from a backup: all held, {time.time() - begun:.0f} s")


if __name__ == "__main__":
    main()
