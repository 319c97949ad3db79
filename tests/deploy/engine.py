"""Starts the services of a compose file without a container engine: each in a container of crun, with its own network.

What a service runs, mounts, sees and may do is what its compose file says. The image of the gateway is ours. Images of others can't be
had here: their programs are this machine's (Debian's PostgreSQL and haproxy, NATS from PyPI), in a copy-on-write view of this machine,
and ENTRYPOINTS does what the entrypoint of the image would do. Needs root, and namespaces of its own (`own_namespaces`).
"""
import ipaddress
import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import time

import yaml

POSTGRES = """#!/bin/sh
# What the image does at its first start, and then what compose says.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    # shellcheck disable=SC2086 # Options.
    initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" $POSTGRES_INITDB_ARGS >/dev/null
    echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
    echo "CREATE DATABASE $POSTGRES_DB" | postgres --single -j postgres >/dev/null
fi
exec "$@" -c 'listen_addresses=*'
"""


def own_namespaces():
    """Runs this program again where mounts, networks and processes are its own, and end with it."""
    if os.geteuid() != 0:
        sys.exit("it makes networks and containers, in namespaces of its own: run it as root")
    if os.environ.pop("COUNTERSIGN_OWN_NAMESPACES", None) is None:
        os.environ["COUNTERSIGN_OWN_NAMESPACES"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv])
    run("mount", "--make-rprivate", "/")
    # crun wants cgroups of one version, and we limit nothing by them.
    run("mount", "-t", "tmpfs", "none", "/sys/fs/cgroup")
    run("mount", "-t", "tmpfs", "none", "/run")
    run("ip", "link", "set", "lo", "up")


def run(*command):
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: {ended.stderr or ended.stdout}")
    return ended.stdout


def seconds(text, otherwise):
    units = {"s": 1, "m": 60}
    return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+)([sm])", text)) if text else otherwise


class Project:
    """The services of one compose file."""

    def __init__(self, file, image, work):
        self.file, self.image, self.work = pathlib.Path(file), image, work
        self.compose = yaml.safe_load(self.file.read_text())
        work.mkdir()
        networks = list((self.compose.get("networks") or {}).values())
        subnet = networks[0]["ipam"]["config"][0]["subnet"] if networks else "172.31.0.0/24"
        self.network = ipaddress.ip_network(subnet)
        taken = {name: next(iter(service["networks"].values()))["ipv4_address"] for name, service in self.services.items() if service.get("networks")}
        # What has no address of its own gets one after those that have.
        free = (str(address) for address in list(self.network.hosts())[99:])
        self.addresses = {name: taken.get(name) or next(free) for name in self.services}
        run("ip", "link", "add", "bridge0", "type", "bridge")
        run("ip", "address", "add", f"{next(self.network.hosts())}/{self.network.prefixlen}", "dev", "bridge0")
        run("ip", "link", "set", "bridge0", "up")
        hosts = "127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in self.addresses.items())
        (work / "hosts").write_text(hosts)
        self.running = {}

    @property
    def services(self):
        return self.compose["services"]

    def start(self, name, image=None):
        self.running[name] = Container(self, name, image or self.image)

    def exec(self, name, *command):
        return self.running[name].exec(command)

    def wait_healthy(self, name, patience=60):
        """Until its health check succeeds, as compose would wait. Without one it is enough that it runs."""
        test = self.services[name].get("healthcheck", {}).get("test")
        if not test:
            time.sleep(0.5)
            if self.running[name].process.poll() is not None:
                raise SystemExit(f"{name} has ended: {self.running[name].log()}")
        until, said = time.monotonic() + patience, ""
        while test:
            assert test[0] == "CMD", test
            checked = self.running[name].exec(test[1:])
            if checked.returncode == 0:
                return
            said = checked.stderr or checked.stdout
            if time.monotonic() > until or self.running[name].process.poll() is not None:
                raise SystemExit(f"{name} is not healthy: {said}\n{self.running[name].log()}")
            time.sleep(0.2)

    def up(self):
        """All services, each when those that it depends on are as it says."""
        while waiting := [name for name in self.services if name not in self.running]:
            for name in waiting:
                needs = self.services[name].get("depends_on", {})
                if set(needs) <= set(self.running):
                    for other, how in needs.items():
                        if how["condition"] == "service_healthy":
                            self.wait_healthy(other)
                    self.start(name)
                    break
            else:
                raise SystemExit(f"services depend on each other: {waiting}")
        for name in self.services:
            self.wait_healthy(name)

    def published(self, port):
        """The address in the network of the service whose port is published as this one."""
        for name, service in self.services.items():
            for published in service.get("ports", []):
                *_, outside, inside = published.split(":")
                if int(outside) == port:
                    return self.addresses[name], int(inside)
        raise KeyError(port)

    def end(self):
        for container in reversed(list(self.running.values())):
            container.stop()
        for name in self.services:
            subprocess.run(["ip", "netns", "delete", f"net-{name}"], capture_output=True)
        run("ip", "link", "delete", "bridge0")


class Container:
    numbers = iter(range(1_000_000))

    def __init__(self, project, name, image):
        self.project, self.name, self.service = project, name, project.services[name]
        self.id = f"{name}-{next(self.numbers)}"
        self.bundle = project.work / self.id
        self.is_ours = "countersign-gateway" in self.service["image"]
        self._root(image)
        self._network()
        (self.bundle / "config.json").write_text(json.dumps(self._config(image)))
        self.log_file = self.bundle / "log"
        # Its own group, so that what is typed here does not reach it.
        self.process = subprocess.Popen(
            ["crun", "--cgroup-manager=disabled", "--root", "/run/crun", "run", "--bundle", self.bundle, self.id],
            stdin=subprocess.DEVNULL, stdout=open(self.log_file, "ab"), stderr=subprocess.STDOUT, process_group=0,
        )

    def _root(self, image):
        """A view of the image, or of this machine, in which nothing that is written stays."""
        for part in ("upper", "work", "root"):
            (self.bundle / part).mkdir(parents=True)
        lower = image.root if self.is_ours else "/"
        run("mount", "-t", "overlay", "none", "-o", f"lowerdir={lower},upperdir={self.bundle / 'upper'},workdir={self.bundle / 'work'}", self.bundle / "root")

    def _network(self):
        """One for each service; a container that takes the place of another gets its address."""
        space, network = f"net-{self.name}", self.project.network
        if not pathlib.Path(f"/run/netns/{space}").exists():
            run("ip", "netns", "add", space)
            link = f"link-{next(self.numbers)}"
            run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
            run("ip", "link", "set", link, "master", "bridge0", "up")
            inside = ["ip", "-n", space]
            run(*inside, "link", "set", "lo", "up")
            run(*inside, "address", "add", f"{self.project.addresses[self.name]}/{network.prefixlen}", "dev", "eth0")
            run(*inside, "link", "set", "eth0", "up")

    def _config(self, image):
        service, home = self.service, self.project.file.parent
        command, user, environment, extra = self._process(image)
        limit = min(service.get("ulimits", {}).get("nofile", 1024), 20_000)
        mounts = [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "noexec", "nodev", "mode=1777"]},
            {"destination": "/run", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]},
            bind(self.project.work / "hosts", "/etc/hosts", "ro"), *extra,
        ]
        for used in service.get("configs", []):
            mounts.append(bind(home / self.project.compose["configs"][used["source"]]["file"], used["target"], "ro"))
        for used in service.get("secrets", []):
            mounts.append(bind(home / self.project.compose["secrets"][used]["file"], f"/run/secrets/{used}", "ro"))
        for used in service.get("volumes", []):
            volume, target = used.split(":")
            folder = self.project.work / "volumes" / volume
            if not folder.exists():
                folder.mkdir(parents=True, mode=0o700)
                os.chown(folder, *user)
            mounts.append(bind(folder, target, "rw"))
        self.user = f"{user[0]}:{user[1]}"
        none = {kind: [] for kind in ("bounding", "effective", "permitted", "inheritable", "ambient")}
        return {
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": user[0], "gid": user[1]}, "args": command, "cwd": "/", "capabilities": none,
                "env": [f"{name}={value}" for name, value in (environment | service.get("environment", {})).items()],
                "noNewPrivileges": "no-new-privileges:true" in service.get("security_opt", []),
                "rlimits": [{"type": "RLIMIT_NOFILE", "hard": limit, "soft": limit}],
            },
            "root": {"path": str(self.bundle / "root"), "readonly": service.get("read_only", False)},
            "hostname": self.name,
            "mounts": mounts,
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")] + [{"type": "network", "path": f"/run/netns/net-{self.name}"}]},
        }

    def _process(self, image):
        """Command, user, environment and mounts, as the image has them."""
        command = [str(word) for word in self.service["command"]]
        if self.is_ours:
            return image.entrypoint + command, image.user, image.environment, []
        path = "/usr/sbin:/usr/bin:/sbin:/bin"
        which = self.service["image"].rpartition("/")[2].partition(":")[0]
        if which == "postgres":
            programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))[-1]
            entry = pwd.getpwnam("postgres")
            script = self.bundle / "entrypoint"
            script.write_text(POSTGRES)
            script.chmod(0o755)
            mounts = [
                bind(script, "/usr/local/bin/entrypoint-of-postgres", "ro"),
                {"destination": "/run/postgresql", "type": "tmpfs", "source": "tmpfs", "options": ["mode=1777"]},
            ]
            environment = {"PATH": f"{programs}:{path}", "PGDATA": "/var/lib/postgresql/data"}
            return ["/usr/local/bin/entrypoint-of-postgres", *command], (entry.pw_uid, entry.pw_gid), environment, mounts
        if which == "haproxy":
            return [shutil.which("haproxy", path=path), *command[1:]], (99, 99), {"PATH": path}, []
        if which == "nats":
            # It may be in a home, which is closed to a process without capabilities.
            shutil.copy(os.path.realpath(shutil.which("nats-server")), self.bundle / "nats-server")
            return ["/usr/local/bin/nats-server", *command], (0, 0), {"PATH": path}, [bind(self.bundle / "nats-server", "/usr/local/bin/nats-server", "ro")]
        raise SystemExit(f"no program here for the image {self.service['image']}")

    def exec(self, command):
        return subprocess.run(
            ["crun", "--cgroup-manager=disabled", "--root", "/run/crun", "exec", "--user", self.user, self.id, *command], capture_output=True, text=True, timeout=60
        )

    def pid(self):
        return json.loads(run("crun", "--root", "/run/crun", "state", self.id))["pid"]

    def log(self):
        return self.log_file.read_text()[-3000:]

    def stop(self):
        """As compose does: SIGTERM, and SIGKILL when the grace is over. Returns how long it took; None if it had to be killed."""
        begun, grace = time.monotonic(), seconds(self.service.get("stop_grace_period"), 10)
        # PostgreSQL's image says so: SIGTERM would wait for every client.
        word = "INT" if "postgres" in self.service["image"] else "TERM"
        subprocess.run(["crun", "--root", "/run/crun", "kill", self.id, word], capture_output=True)
        try:
            self.process.wait(grace)
            took = time.monotonic() - begun
        except subprocess.TimeoutExpired:
            subprocess.run(["crun", "--root", "/run/crun", "kill", self.id, "KILL"], capture_output=True)
            self.process.wait(10)
            took = None
        run("umount", "-l", self.bundle / "root")
        return took


def bind(source, target, how):
    return {"destination": str(target), "type": "bind", "source": str(source), "options": ["bind", how]}


class Image:
    """What dist/oci/build makes, unpacked."""

    def __init__(self, layout, root):
        blob = lambda digest: (layout / "blobs" / digest.replace(":", "/"))  # noqa: E731
        manifest = json.loads(blob(json.loads((layout / "index.json").read_text())["manifests"][0]["digest"]).read_text())
        config = json.loads(blob(manifest["config"]["digest"]).read_text())["config"]
        self.entrypoint, self.root = config["Entrypoint"], root
        self.user = tuple(map(int, config["User"].split(":")))
        self.environment = dict(word.split("=", 1) for word in config.get("Env", []))
        root.mkdir()
        for layer in manifest["layers"]:
            run("tar", "-C", root, "--numeric-owner", "-xpf", blob(layer["digest"]))
