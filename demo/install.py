"""See install.sh. Each system is a machine of its own (systemd-nspawn), with its own systemd and nothing but a loopback network."""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from terminals import Terminal

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("COUNTERSIGN_CACHE", pathlib.Path.home() / ".cache/countersign")) / "systems"
PASSPHRASE = "correct horse battery"
OLD = "0.0.1"
SYSTEMS = {
    "bookworm": "Debian 12",
    "trixie": "Debian 13",
    "noble": "Ubuntu 24.04",
}
INCLUDED = "apt,systemd-sysv,dbus,libpam-systemd,curl,ca-certificates"
EXPOSURE = 2.0
"""What `systemd-analyze security` may say of our services, from 0 to 10."""
PATH = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CONFIG = "/etc/countersign/gateway.toml"
AS_GATEWAY = "setpriv --reuid countersign --regid countersign --clear-groups countersign-gateway"
# What any use of a system changes.
PASSING = re.compile(r"/(proc|sys|dev|run|tmp|var/(log|cache|tmp|lib/(apt|dpkg|systemd|dbus))|packages)(/|$)|/etc/.*-$|/etc/\.pwd\.lock")
PEOPLE = ("/home/ada", "/home/carol", "/var/mail/")
failed = []


@contextlib.contextmanager
def step(name):
    begun = time.monotonic()
    try:
        yield
    except (Exception, SystemExit) as error:
        failed.append(name)
        print(f"✗ {name}: {error}", flush=True)
    else:
        print(f"✓ {name} ({time.monotonic() - begun:.1f} s)", flush=True)


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def until(what, holds, seconds=30):
    end = time.monotonic() + seconds
    while not holds():
        check(time.monotonic() < end, f"{what} did not happen within {seconds} s")
        time.sleep(0.1)


# --- systems -----------------------------------------------------------------------------------------------------------


def made(system):
    """An archive of a system with what it has when it is new."""
    archive = CACHE / f"{system}.tar"
    if not archive.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        options = []
        if system == "noble":
            # Debian has the keys of Ubuntu's archive.
            keys = CACHE / "ubuntu-keys"
            subprocess.run(["mmdebstrap", "--variant=extract", "--include=ubuntu-keyring", "trixie", keys],
                           check=True, stderr=subprocess.DEVNULL)
            options = [f"--keyring={keys}/usr/share/keyrings/ubuntu-archive-keyring.gpg"]
        new = archive.with_suffix(".new.tar")
        subprocess.run(["mmdebstrap", "--variant=minbase", f"--include={INCLUDED}", *options, system, new],
                       check=True, stderr=subprocess.DEVNULL)
        new.rename(archive)
    return archive


class Machine:
    """A system that has booted."""

    def __init__(self, system, folder, packages):
        self.folder = folder
        unpack(system, folder)
        shutil.copytree(packages, folder / "packages")
        (folder / "etc/machine-id").unlink(missing_ok=True)
        # There is no network to wait for.
        (folder / "etc/systemd/system/systemd-networkd-wait-online.service").symlink_to("/dev/null")
        environment = {**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}
        self.log = (folder.parent / f"{system}.log").open("w")
        self.nspawn = subprocess.Popen(
            ["systemd-nspawn", "--boot", "--quiet", "--register=no", "--keep-unit", "--private-network", "--machine", f"countersign-{system}-{os.getpid()}",
             "--directory", folder], env=environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        try:
            until("the start of the machine", lambda: self.leader() and self.has_started(), 90)
        except BaseException:
            self.stop()
            raise

    def leader(self):
        """Its first process, as this system numbers it."""
        todo = [self.nspawn.pid]
        while todo:
            process = todo.pop()
            try:
                status = pathlib.Path(f"/proc/{process}/status").read_text()
                todo += pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()
            except OSError:
                continue
            numbers = re.search(r"^NSpid:(.*)$", status, re.M)[1].split()
            if len(numbers) > 1 and numbers[-1] == "1":
                return process
        return None

    def has_started(self):
        state = self.run("systemctl is-system-running", checked=False).strip()
        return state in ("running", "degraded")

    def argv(self, command, user="root"):
        home = "/root" if user == "root" else f"/home/{user}"
        prepared = f"cd; export XDG_RUNTIME_DIR=/run/user/$(id -u); PATH={home}/.local/bin:$PATH; "
        account = [] if user == "root" else ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
        return ["nsenter", "--target", str(self.leader()), "--all", *account, "env", "-i", f"HOME={home}", f"USER={user}", f"PATH={PATH}", "LANG=C.UTF-8",
                "TERM=xterm-256color", "sh", "-c", prepared + command]

    def run(self, command, user="root", checked=True):
        ran = subprocess.run(self.argv(command, user), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        check(not checked or ran.returncode == 0, f"{command}: ended with {ran.returncode}\n{ran.stdout}{ran.stderr}")
        return ran.stdout + ran.stderr

    def type(self, command, user):
        return Terminal(self.argv(command, user), dict(os.environ), "/")

    def files(self):
        found = self.run("find / -xdev").split("\n")
        return {name for name in found if name and not PASSING.match(name)}

    def main_process(self, service):
        return int(self.run(f"systemctl show --value -p MainPID {service}"))

    def stop(self):
        # As from the button of a machine; then by force.
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.nspawn.poll() is None:
                self.nspawn.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.nspawn.wait(30)
        self.log.close()


def unpack(system, folder):
    folder.mkdir()
    # Devices are made anew by whoever boots it.
    subprocess.run(["tar", "-C", folder, "--exclude=./dev/*", "-xf", made(system)], check=True)


# --- what people do ----------------------------------------------------------------------------------------------------


def first_approval(machine, user):
    up = machine.type("countersign up", user).answer("Your name", "Ada").answer("A name for this machine", "Ada's laptop")
    up.answer("New passphrase", PASSPHRASE).answer("Again", PASSPHRASE).ends(0)
    approved(machine, user, "first")
    return up


def approved(machine, user, name):
    asked = machine.type(f"countersign exec -- touch {name}", user).expect("asked")
    answered = machine.type("countersign approve", user).answer("Passphrase of", PASSPHRASE)
    answered.answer("Type yes", "yes").ends(0)
    asked.ends(0)
    check((machine.folder / f"home/{user}/{name}").exists(), "it was approved and has not run")


def debs(version):
    return f"/packages/countersign_{version}_amd64.deb /packages/countersign-gateway_{version}_amd64.deb"


def apt(machine, words):
    return machine.run(f"DEBIAN_FRONTEND=noninteractive apt-get -qq -y {words}")


def exposure(machine, service):
    said = machine.run(f"systemd-analyze --no-pager security {service}")
    figure = float(re.search(r"exposure level for \S+: ([\d.]+)", said)[1])
    print(f"  {service}: {figure} of 10, where less is better")
    check(figure <= EXPOSURE, f"{figure} is more than {EXPOSURE}")


def gateway(machine):
    """The service of the package, under systemd."""
    service = "countersign-gateway"
    with step("gateway: installed and not started; its configuration is fine, and closed to others"):
        check(machine.run(f"systemctl is-enabled {service}", checked=False).strip() == "disabled", "it is enabled")
        check(machine.run(f"stat -c '%a %U %G' {CONFIG}").strip() == "640 root countersign", machine.run(f"ls -l {CONFIG}"))
        check("is fine" in machine.run(f"{AS_GATEWAY} check --config {CONFIG}"), "check")
        printed = machine.run("countersign-gateway config")
        check((machine.folder / CONFIG[1:]).read_text().strip() == printed.strip(), "it is not what `countersign-gateway config` prints")
    with step("gateway: `systemctl enable --now` returns when it can be reached"):
        machine.run(f"systemctl enable --quiet --now {service}")
        machine.run("curl -fsS http://127.0.0.1:8787/readyz")
        check(machine.run("stat -c '%a %U' /var/lib/countersign").strip() == "700 countersign", "the data folder is open")
    with step("gateway: hardening"):
        exposure(machine, service)
    with step("gateway: reload takes a setting over; one that is wrong leaves what was, and `systemctl status` says so"):
        before = machine.main_process(service)
        machine.run(f"sed -i 's/^#level = .*/level = \"debug\"/' {CONFIG}; systemctl reload {service}")
        check("the configuration was read again" in machine.run(f"journalctl -u {service} -o cat"), "it was not read again")
        machine.run(f"cp {CONFIG} /root/good; echo 'no_such = 1' >> {CONFIG}; systemctl reload {service}")
        check("can't be used" in machine.run(f"systemctl show -p StatusText {service}"), "the failure is not said")
        machine.run(f"cat /root/good > {CONFIG}; rm /root/good; systemctl reload {service}")
        check("can't be used" not in machine.run(f"systemctl show -p StatusText {service}"), "the failure is still said")
        check(machine.main_process(service) == before, "it was restarted")
    with step("gateway: killed, it is started again, and its keys are there"):
        machine.run(f"{AS_GATEWAY} keys create --config {CONFIG} --tenant acme --role enforcer --id build")
        keys = machine.run(f"{AS_GATEWAY} keys list --config {CONFIG} --tenant acme")
        before = machine.main_process(service)
        machine.run(f"kill -9 {before}")
        until("the restart", lambda: machine.main_process(service) not in (0, before))
        until("an answer", lambda: "ok" in machine.run("curl -fs -o /dev/null -w ok http://127.0.0.1:8787/readyz", checked=False)[-2:])
        again = machine.run(f"{AS_GATEWAY} keys list --config {CONFIG} --tenant acme")
        check("build" in keys and keys == again, f"{keys}\n{again}")
    with step("gateway: port 443, with the two lines that docs/operating.md names"):
        folder = f"/etc/systemd/system/{service}.service.d"
        lines = "[Service]\\nCapabilityBoundingSet=CAP_NET_BIND_SERVICE\\nAmbientCapabilities=CAP_NET_BIND_SERVICE\\n"
        machine.run(f"mkdir {folder}; printf '{lines}' > {folder}/port.conf; sed -i '0,/^#listen = .*/s//listen = \"127.0.0.1:443\"/' {CONFIG}")
        machine.run(f"systemctl daemon-reload; systemctl restart {service}; curl -fsS http://127.0.0.1:443/readyz")
        machine.run(f"rm -r {folder}; sed -i 's/^listen = .*/#listen = \"127.0.0.1:8787\"/' {CONFIG}; systemctl daemon-reload; systemctl restart {service}")


def keeper(machine):
    """The keeper of the machine, with an identity at the gateway of the package."""
    service = "countersign-keeper"
    with step("keeper: installed and not started"):
        check(machine.run(f"systemctl is-enabled {service}", checked=False).strip() == "disabled", "it is enabled")
    with step("keeper: `systemctl enable --now`, and it answers"):
        machine.run(f"systemctl enable --quiet --now {service}")
        until("an answer of the keeper", lambda: "answers" in machine.run("countersign keeper status --system", "ada", checked=False))
    machine.run("useradd -m -s /bin/bash carol")
    with step("keeper: `keeper as carol join`, with an invitation; carol can look at it without root"):
        link = machine.run(f"{AS_GATEWAY} invite --config {CONFIG} --tenant acme --role enforcer --id laptop")
        link = re.search(r"http\S+/join#\S+", link)[0]
        machine.type("countersign keeper as carol join", "root").answer("Invitation link", link).ends(0)
        check("laptop" in machine.run("countersign keeper as carol status", "carol"), "it has no identity")
    with step("keeper: hardening"):
        exposure(machine, service)


def packages(machine, new, clean):
    with step("install: one line, version " + OLD):
        apt(machine, f"install {debs(OLD)}")
    machine.run("useradd -m -s /bin/bash ada; loginctl enable-linger ada")
    until("ada's services", lambda: machine.run("systemctl --user is-system-running", "ada", checked=False).strip() in ("running", "degraded"))
    with step("ada: `countersign up`, asks, approves: it runs"):
        begun = time.monotonic()
        first_approval(machine, "ada")
        print(f"  {time.monotonic() - begun:.1f} s from the first command to the first approved one")
        check("active" == machine.run("systemctl --user is-active countersign-gateway", "ada", checked=False).strip(), "her gateway is no service")
        machine.run("countersign down", "ada")
    gateway(machine)
    keeper(machine)
    with step(f"upgrade to {new}: what runs is restarted, what was changed and stored stays"):
        services = ("countersign-gateway", "countersign-keeper")
        before = [machine.main_process(service) for service in services]
        apt(machine, f"install {debs(new)}")
        check(machine.run("dpkg-query -W -f '${Version} ' countersign countersign-gateway").split() == [new, new], "versions")
        after = [machine.main_process(service) for service in services]
        check(all(now not in (0, then) for now, then in zip(after, before)), f"not restarted: {before} {after}")
        check('level = "debug"' in (machine.folder / CONFIG[1:]).read_text(), "the configuration was overwritten")
        check("laptop" in machine.run("countersign keeper as carol status", "carol"), "the keeper has forgotten its identity")
        machine.run("systemctl disable --quiet --now countersign-gateway countersign-keeper")
        machine.run("countersign up", "ada")
        approved(machine, "ada", "second")
        machine.run("systemctl enable --quiet --now countersign-gateway countersign-keeper", checked=False)
    with step("remove: only configuration, data and accounts stay"):
        machine.run("countersign down", "ada")
        apt(machine, "remove countersign countersign-gateway")
        left = {name for name in machine.files() - clean if not name.startswith((*PEOPLE, "/var/lib/countersign", "/etc/countersign"))}
        check(not left, f"left behind: {sorted(left)}")
        check((machine.folder / CONFIG[1:]).exists() and (machine.folder / "var/lib/countersign/key-secret").exists(), "data is gone")
        running = machine.run("cat /proc/[0-9]*/comm | grep countersign || true")
        check(not running, f"still runs: {running}")
    with step("purge: accounts and data go, too"):
        apt(machine, "purge countersign countersign-gateway")
        left = {name for name in machine.files() - clean if not name.startswith(PEOPLE)}
        check(not left, f"left behind: {sorted(left)}")
        accounts = machine.run("getent passwd countersign countersign-keeper; getent group countersign countersign-keeper; true")
        check(not accounts, accounts)


def script(machine, new, clean):
    machine.run("useradd -m -s /bin/bash bob")
    with step("install.sh: one line, without root"):
        said = machine.run("curl -fsSL file:///packages/install.sh | sh", "bob")
        check(f"Countersign {new} is in /home/bob/.local/bin" in said, said)
    with step("bob: `countersign up`, asks, approves: it runs"):
        begun = time.monotonic()
        first_approval(machine, "bob")
        print(f"  {time.monotonic() - begun:.1f} s from the first command to the first approved one")
    with step("install.sh again; then the programs are deleted, and only bob's data stays"):
        machine.run("curl -fsSL file:///packages/install.sh | sh", "bob")
        machine.run("countersign down; cd .local; rm bin/countersign bin/countersign-hook bin/countersign-gateway"
                    " share/man/man1/countersign*.1 share/bash-completion/completions/countersign", "bob")
        left = {name for name in machine.files() - clean if not name.startswith(PEOPLE)}
        left = {name for name in left if not name.startswith(("/home/bob/.local/share/countersign", "/home/bob/first"))}
        left -= {f"/home/bob{name}" for name in ("", "/.bashrc", "/.profile", "/.bash_logout", "/.local", "/.local/bin", "/.local/share", "/.local/share/man", "/.local/share/man/man1",
                                                "/.local/share/bash-completion", "/.local/share/bash-completion/completions")}
        check(not left, f"left behind: {sorted(left)}")


def rpm(folder, out, new):
    """With rpm itself, in the files of a Debian that does not run: Fedora's packages can't be had here."""
    with step("rpm: installed, upgraded and removed by rpm, in a Debian tree (not tried on Fedora)"):
        unpack("bookworm", folder)

        def do(*words):
            ran = subprocess.run(["rpm", "--root", folder, *words], capture_output=True, text=True)
            check(ran.returncode == 0, f"rpm {words}: {ran.stdout}{ran.stderr}")
            return ran.stdout

        def of(version):
            return [out / f"{name}-{version}-1.x86_64.rpm" for name in ("countersign", "countersign-gateway")]

        def accounts():
            return [line.split(":")[0] for line in (folder / "etc/passwd").read_text().splitlines() if line.startswith("countersign")]

        do("--initdb")
        needed = do("-qp", "--requires", *of(new))
        check("libc.so.6(GLIBC_" in needed and "shadow-utils" in needed, needed)
        # What they need has other names in Debian.
        do("-i", "--nodeps", *of(OLD))
        check(sorted(accounts()) == ["countersign", "countersign-keeper"], str(accounts()))
        said = subprocess.run(["chroot", folder, "countersign-gateway", "check", "--config", CONFIG], capture_output=True, text=True)
        check("is fine" in said.stdout + said.stderr, said.stdout + said.stderr)
        config = folder / CONFIG[1:]
        config.write_text(config.read_text() + "# mine\n")
        do("-U", "--nodeps", *of(new))
        check(new in do("-q", "countersign") and "# mine" in config.read_text(), "the upgrade")
        group = subprocess.run(["chroot", folder, "stat", "-c", "%a %G", CONFIG], capture_output=True, text=True).stdout.strip()
        check(group == "640 countersign", group)
        do("-e", "countersign", "countersign-gateway")
        left = [path for name in ("usr/bin", "usr/lib/systemd/system") for path in (folder / name).glob("countersign*")]
        check(not left and sorted(accounts()) == ["countersign", "countersign-keeper"], str(left))


# --- all of it ---------------------------------------------------------------------------------------------------------


def build(programs, version, out, key, only):
    subprocess.run([ROOT / "dist/build", version, "--programs", programs, "--out", out, "--sign", key, "--download-url", "file:///packages", "--only", only],
                   check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--before", type=pathlib.Path)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    asked = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("demo/install.sh: it makes and boots systems; run it as root")
    said = subprocess.run([asked.programs / "countersign", "--version"], check=True, capture_output=True, text=True).stdout
    new = said.split()[1]
    with tempfile.TemporaryDirectory(prefix="countersign-install-") as scratch:
        scratch = pathlib.Path(scratch)
        key = scratch / "minisign.key"
        subprocess.run(["minisign", "-G", "-W", "-p", key.with_suffix(".pub"), "-s", key], check=True, stdout=subprocess.DEVNULL)
        out = scratch / "packages"
        with step("packages of both versions"):
            build(asked.programs, new, out, key, "archive,deb,rpm")
            build(asked.before or asked.programs, OLD, scratch / "before", key, "deb,rpm")
            for package in (scratch / "before").glob("countersign*"):
                shutil.copy(package, out)
        if failed:
            sys.exit(1)
        for system in asked.systems.split(","):
            print(f"\n{SYSTEMS[system]}")
            begun = time.monotonic()
            machine = None
            with step("a new machine boots"):
                machine = Machine(system, scratch / system, out)
            if machine is None:
                continue
            try:
                clean = machine.files()
                packages(machine, new, clean)
                script(machine, new, clean)
            finally:
                machine.stop()
            shutil.rmtree(scratch / system, ignore_errors=True)
            print(f"  {time.monotonic() - begun:.0f} s in all")
        print("\nrpm")
        rpm(scratch / "rpm", out, new)
    if failed:
        sys.exit(f"\n{len(failed)} steps failed: " + "; ".join(failed))
    print("\nEvery step held. Fedora and Alpine were not tried: their packages can't be had here.")


main()
