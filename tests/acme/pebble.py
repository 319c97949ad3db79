"""A real authority that speaks ACME: Debian's pebble, with its own name server, in which every name is this machine."""
import json, os, pathlib, re, socket, ssl, subprocess, sys, time, urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "attacks/matrix"))

from certificates import Authority, of_gateway

QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def free_port():
    """For TCP and UDP."""
    while True:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            try:
                udp.bind(tcp.getsockname())
            except OSError:
                continue
            return tcp.getsockname()[1]


class Pebble:
    """What it has issued and whom it knows is gone when it stops."""

    def __init__(self, home, challenges):
        """`challenges`: the port where it looks for answers to challenges, with TLS."""
        self.authority, self.process = Authority(home), None
        self.port, self.management, self.names = free_port(), free_port(), free_port()
        self.own, self.challenges, self.file = of_gateway(self.authority), challenges, home / "pebble.json"
        self.log = home / "log"
        off = [word for name in ("http01", "https01", "tlsalpn01") for word in (f"-{name}", "")]
        self.resolver = subprocess.Popen(["pebble-challtestsrv", "-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-dns01", f"127.0.0.1:{self.names}",
                                          "-management", f"127.0.0.1:{free_port()}", *off], **QUIET)

    def start(self, life):
        """`life`: seconds that a certificate is good for."""
        config = {"listenAddress": f"127.0.0.1:{self.port}", "managementListenAddress": f"127.0.0.1:{self.management}", "certificate": str(self.own),
                  "privateKey": str(self.authority.key_file), "httpPort": 1, "tlsPort": self.challenges, "ocspResponderURL": "",
                  "externalAccountBindingRequired": False, "certificateValidityPeriod": life}
        self.file.write_text(json.dumps({"pebble": config}))
        environment = os.environ | {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_AUTHZREUSE": "0"}
        command = ["pebble", "-config", str(self.file), "-dnsserver", f"127.0.0.1:{self.names}"]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        for _ in range(200):
            try:
                url = f"https://localhost:{self.management}/roots/0"
                root = urllib.request.urlopen(url, context=self.authority.context()).read().decode()
                self.trusted = ssl.create_default_context(cadata=root)
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("pebble does not start")

    def accounts(self):
        """How many it knows."""
        return max(map(int, re.findall(r"There are now (\d+) accounts", self.log.read_text())), default=0)

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None

    def end(self):
        self.stop()
        self.resolver.kill()
        self.resolver.wait()
