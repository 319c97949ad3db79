"""A gateway of one's own, and HTTP/1.1 byte by byte: headers twice, heads that are too large, answers with every byte."""
import base64, dataclasses, hashlib, json, os, pathlib, signal, socket, subprocess, time

from certificates import Authority, of_gateway

RATES = ("credential", "tenant", "tenant_kib", "address", "failed_authentication")
CONFIG = """listen = "127.0.0.1:{port}"
data = "{home}/data"
allow_basic = {allow_basic}
[tls]
listen = "127.0.0.1:{tls_port}"
certificate = "{certificate}"
key = "{key}"
[tls.clients]
ca = "{ca}"
tenants = {tenants}
[store]
kind = "sqlite"
[rates]
""" + "".join(f"{name} = {{{{ per_second = 0, burst = 0 }}}}\n" for name in RATES)
# The tenants that certificates may be of: those of all worlds that are made.
TENANTS = [f"{name}{n:03}" for n in range(1, 100) for name in ("acme", "beta", "shut")]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Gateway:
    """`serve` on SQLite in a folder of its own, on two free ports, plain and with TLS, without rate limits."""

    def __init__(self, program, home):
        self.program, self.home = program, pathlib.Path(home)
        self.port, self.tls_port = free_port(), free_port()
        self.authority = Authority(self.home / "certificates")
        self.stranger = Authority(self.home / "stranger", self.authority.file)
        self.certificate = of_gateway(self.authority)
        self.config = self.home / "gateway.toml"
        self.configure(allow_basic=False)
        self.log = open(self.home / "log", "ab")
        self.process = subprocess.Popen([program, "serve", "--config", self.config], stdout=self.log, stderr=self.log)
        for _ in range(150):
            try:
                if Client(self.port).send("GET", "/readyz").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        self.stop()
        raise SystemExit((self.home / "log").read_text()[-2000:])

    def configure(self, allow_basic):
        self.config.write_text(CONFIG.format(port=self.port, tls_port=self.tls_port, home=self.home, allow_basic=json.dumps(allow_basic),
                               certificate=self.certificate, key=self.authority.key_file, ca=self.authority.file, tenants=json.dumps(TENANTS)))

    def turn_basic_on(self, key):
        """While it runs; until it takes this key."""
        self.configure(allow_basic=True)
        self.process.send_signal(signal.SIGHUP)
        for _ in range(100):
            if Client(self.port).send("GET", "/v1/status", basic(key)).status == 200:
                return
            time.sleep(0.05)
        raise SystemExit("matrix: Basic stays off")

    def run(self, *args):
        """A command of the gateway's program, for what only its machine may do."""
        args = [self.program, *args[:2], "--config", self.config, *args[2:]]
        return subprocess.run(args, check=True, capture_output=True, text=True).stdout

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.close()


@dataclasses.dataclass
class Answer:
    status: int
    headers: list
    body: bytes

    def header(self, name):
        return next((value for known, value in self.headers if known.lower() == name), None)


class Client:
    """One connection that is kept, with TLS if there is a context; a new one where the last was closed or taken."""

    def __init__(self, port, context=None):
        self.port, self.context, self.socket, self.buffer = port, context, None, b""

    def send(self, method, path, headers=(), body=None, held=0.0):
        """`held`: how long to listen to an answer that does not end, in seconds."""
        lines = [f"{method} {path} HTTP/1.1", "Host: gateway"] + [f"{name}: {value}" for name, value in headers]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        message = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")
        kept = self.socket is not None
        try:
            return self.exchange(message, method, held)
        except ConnectionError:
            self.close()
            if not kept:
                raise
            return self.exchange(message, method, held)  # it was closed since the last answer

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket, self.buffer = None, b""

    def exchange(self, message, method, held):
        if self.socket is None:
            self.socket = socket.create_connection(("127.0.0.1", self.port), 30)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.context:
                self.socket = self.context.wrap_socket(self.socket, server_hostname="localhost")
        self.socket.sendall(message)
        while b"\r\n\r\n" not in self.buffer:
            self.more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        answer = Answer(int(first.split()[1]), [tuple(line.split(": ", 1)) for line in lines], b"")
        length, chunked = answer.header("content-length"), answer.header("transfer-encoding") == "chunked"
        if answer.status == 101 or (answer.header("content-type") or "").startswith("text/event-stream"):
            answer.body = self.listen(held)
        elif method == "HEAD" or answer.status in (204, 304):
            pass
        elif chunked:
            answer.body = self.chunks()
        elif length is not None:
            answer.body = self.take(int(length))
        if (answer.header("connection") or "").lower() == "close" or answer.status == 431:
            self.close()
        return answer

    def more(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError("closed")
        self.buffer += data

    def take(self, length):
        while len(self.buffer) < length:
            self.more()
        taken, self.buffer = self.buffer[:length], self.buffer[length:]
        return taken

    def chunks(self):
        body = b""
        while True:
            while b"\r\n" not in self.buffer:
                self.more()
            size, self.buffer = self.buffer.split(b"\r\n", 1)
            data = self.take(int(size, 16) + 2)[:-2]
            if not data:
                return body
            body += data

    def listen(self, seconds):
        """What comes on a connection that is held, which ends with it."""
        if seconds:
            self.socket.settimeout(seconds)
            try:
                while True:
                    self.more()
            except (TimeoutError, ConnectionError):
                pass
        heard = self.buffer
        self.close()
        return heard


# Ed25519 as in RFC 8032, section 6, for vouchers only: slow, and its keys protect nothing.
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(a, b):
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = f - e, d - c, d + c, f + e
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(n, point):
    result = (0, 1, 1, 0)
    while n:
        if n & 1:
            result = add(result, point)
        point, n = add(point, point), n >> 1
    return result


def root(y):
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    x = x if (x * x - x2) % P == 0 else x * pow(2, (P - 1) // 4, P) % P
    return x if x % 2 == 0 else P - x


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = (root(BASE_Y), BASE_Y, 1, root(BASE_Y) * BASE_Y % P)


def encoded(point):
    z = pow(point[2], P - 2, P)
    x, y = point[0] * z % P, point[1] * z % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


class SigningKey:
    def __init__(self):
        digest = hashlib.sha512(os.urandom(32)).digest()
        self.scalar = int.from_bytes(digest[:32], "little") & (1 << 254) - 8 | 1 << 254
        self.prefix, self.public = digest[32:], encoded(times(self.scalar, BASE))

    def bundle(self):
        agreement = bytearray(os.urandom(32))
        agreement[31] &= 0x7F
        return f"v1.{base64url(self.public)}.{base64url(agreement)}"

    def sign(self, message):
        r = int.from_bytes(hashlib.sha512(self.prefix + message).digest(), "little") % L
        point = encoded(times(r, BASE))
        k = int.from_bytes(hashlib.sha512(point + self.public + message).digest(), "little") % L
        return base64url(point + ((r + k * self.scalar) % L).to_bytes(32, "little"))


def base64url(data):
    return base64.urlsafe_b64encode(bytes(data)).decode().rstrip("=")


def bearer(key):
    return (("Authorization", f"Bearer {key}"),)


def basic(key, user=None, scheme="Basic"):
    """The id of the key as the user, unless there is another."""
    return encoded_basic(f"{key.split('_')[2] if user is None else user}:{key}".encode(), scheme)


def encoded_basic(text, scheme="Basic"):
    return (("Authorization", f"{scheme} {base64.b64encode(text).decode()}"),)
