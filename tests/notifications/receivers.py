"""Services that a gateway sends notifications to: one whose answers the test chooses, npm's web-push-testing, and Debian's ntfy."""
import base64, json, os, pathlib, socketserver, subprocess, threading, time, urllib.request

import http_ece
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

HERE = pathlib.Path(__file__).resolve().parent


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Device:
    """The keys of a subscription, of which the gateway gets the public half."""

    def __init__(self):
        self.key, self.auth = ec.generate_private_key(ec.SECP256R1()), os.urandom(16)
        point = self.key.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        self.keys = {"p256dh": b64(point), "auth": b64(self.auth)}

    def open(self, body):
        """By PyPI's http-ece."""
        return http_ece.decrypt(body, private_key=self.key, auth_secret=self.auth, version="aes128gcm").decode()

    def open_by_npm(self, service, body):
        """By npm's http_ece."""
        private = b64(self.key.private_numbers().private_value.to_bytes(32, "big"))
        return service.call("/open", {"privateKey": private, "auth": self.keys["auth"], "body": base64.b64encode(body).decode()})["text"]


class Got:
    """A request, byte by byte."""

    def __init__(self, path, head, body):
        self.path, self.raw, self.body, self.at = path, head + body, body, time.time()
        lines = head.decode("latin1").split("\r\n")[1:]
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = self.rfile.readline()
            if not line:
                return
            head += line
        got = Got(head.split(b" ")[1].decode(), head, b"")
        got.body = self.rfile.read(int(got.headers.get("content-length", 0)))
        got.raw += got.body
        self.server.got.append(got)
        status = self.server.answer(len(self.server.got))
        if status:
            self.wfile.write(f"HTTP/1.1 {status} X\r\nLocation: http://{self.server.where}/elsewhere\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())


class Receiver(socketserver.ThreadingTCPServer):
    """Answers as `answer` says: a status for the first request, the second and so on. None closes the connection without one."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, address, answer=lambda _: 201):
        super().__init__((address, 0), Handler)
        self.answer, self.got, self.where = answer, [], f"{address}:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self):
        return f"http://{self.where}/for-one-device"

    def handle_error(self, *_):
        """Who gave up on us has closed the connection."""


class PushService:
    """npm's web-push-testing."""

    def __init__(self):
        self.process = subprocess.Popen(["node", HERE / "push_service.mjs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise SystemExit("web-push-testing does not start: run npm ci in web")

    def call(self, path, body=None):
        request = urllib.request.Request(self.url + path, json.dumps(body or {}).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            text = answer.read()
            return json.loads(text) if text.startswith((b"{", b"[")) else None

    def subscribe(self, key):
        return self.call("/subscribe", {"userVisibleOnly": "true", "applicationServerKey": key})["data"]

    def messages(self, subscription):
        return self.call("/get-notifications", {"clientHash": subscription["clientHash"]})["data"]["messages"]

    def expire(self, subscription):
        self.call("/expire-subscription/" + subscription["clientHash"])

    def received(self):
        """Everything that came, as bytes."""
        return [json.dumps(it["headers"]).encode() + it["path"].encode() + base64.b64decode(it["body"]) for it in self.call("/received")]

    def end(self):
        self.process.stdin.close()
        self.process.wait(10)


class Ntfy:
    """Debian's ntfy, as a server of UnifiedPush."""

    def __init__(self, program, home, port):
        self.url = f"http://127.0.0.1:{port}"
        config = home / "ntfy.yml"
        config.write_text(f'base-url: "{self.url}"\nlisten-http: "127.0.0.1:{port}"\ncache-file: "{home}/ntfy.db"\n')
        self.process = subprocess.Popen([program, "serve", "--config", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.topic = "up" + b64(os.urandom(9)).replace("-", "a").replace("_", "b")

    @property
    def endpoint(self):
        return f"{self.url}/{self.topic}?up=1"

    def is_up(self):
        try:
            return urllib.request.urlopen(f"{self.url}/v1/health", timeout=5).status == 200
        except OSError:
            return False

    def messages(self, topic=None):
        """The bytes of what it has for whoever is subscribed."""
        with urllib.request.urlopen(f"{self.url}/{topic or self.topic}/json?poll=1", timeout=10) as answer:
            all = [json.loads(line) for line in answer.read().splitlines()]
        return [base64.b64decode(it["message"]) if it.get("encoding") == "base64" else it["message"].encode() for it in all if it["event"] == "message"]

    def end(self):
        self.process.terminate()
        self.process.wait(10)


def sender(authorization):
    """The key and the claims of a sender, if that key has signed them (RFC 8292)."""
    token, key = (part.strip()[2:] for part in authorization.removeprefix("vapid ").split(","))
    signed, _, signature = token.rpartition(".")
    r, s = (int.from_bytes(half, "big") for half in (unb64(signature)[:32], unb64(signature)[32:]))
    point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), unb64(key))
    point.verify(utils.encode_dss_signature(r, s), signed.encode(), ec.ECDSA(hashes.SHA256()))
    return key, json.loads(unb64(signed.split(".")[1]))
