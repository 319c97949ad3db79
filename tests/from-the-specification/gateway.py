#!/usr/bin/env python3
"""A small approval gateway, written from the protocol text alone. Not for use: it keeps all in memory.

    gateway.py --key K1=enforcer:robot --key K2=approver:ada [--port 8080] [--strict] [--page DIR]

A key without an id (`K=enforcer`) may act as any id of its role. Section numbers in comments are those of
`approval-gateway-protocol.md`. Where that says "not shown", this is one reader's choice and no more; `--strict` takes the text
at its narrowest: artifacts and prompts exactly as in 2.1 and 2.6, an Idempotency-Key on both, all four members in pairing
initiate, waits of 1 to 60 seconds, and 409 for a repeated submission. Payloads are encrypted, so of hashes only the form is checked. Standard library only.
"""
import argparse, base64, hashlib, json, mimetypes, pathlib, queue, re, secrets, ssl, struct, sys, threading
import urllib.parse, uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rules import Channel, Gateway
from shapes import ENVELOPE, MAX_ARTIFACT, MAX_PROMPT, MAX_SNAPSHOT, Refused, bad, filled, missing, parsed

MEDIA_TYPE = "application/proto+json"
WS_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

ID = "([^/]+)"
ROUTES = [  # 4.1 and 4.5: what follows /v1/; a handler gets the ids of its path, and the body of a POST or the query of others
    ("POST", "artifacts", lambda g, c, v: g.submit(c, v)),
    ("POST", "decisions", lambda g, c, v: g.decide(c, v)),
    ("GET", f"approvers/{ID}/inbox", lambda g, c, a, q: g.inbox(c, a, "pendingApproval", q)),
    ("GET", f"approvers/{ID}/inbox/expired", lambda g, c, a, q: g.inbox(c, a, "expired", q)),
    ("DELETE", f"approvers/{ID}/inbox/{ID}", lambda g, c, a, r, _: g.remove(c, a, r)),
    ("GET", f"exchanges/{ID}", lambda g, c, r, _: g.status(c, r)),
    ("GET", f"exchanges/{ID}/wait", lambda g, c, r, q: g.wait(c, r, q.get("timeout", "30"))),
    ("POST", f"exchanges/{ID}/withdraw", lambda g, c, r, v: g.withdraw(c, r, v)),
    ("POST", f"exchanges/{ID}/refresh", lambda g, c, r, v: g.refresh(c, r, v)),
    ("GET", "presence/enforcers", lambda g, c, _: (200, [g.presence(e) for e in g.seen])),
    ("GET", f"presence/enforcers/{ID}", lambda g, c, e, _: (200, g.presence(e))),
    ("POST", "pairing/initiate", lambda g, c, v: g.initiate(c, v)),
    ("GET", f"pairing/resolve/{ID}", lambda g, c, code, _: g.resolve(c, code)),
    ("GET", f"pairing/status/{ID}", lambda g, c, nonce, _: g.pairing_status(c, nonce)),
    ("POST", "pairing/complete", lambda g, c, v: g.complete(c, v)),
    ("POST", "acks", lambda g, c, v: g.ack(c, v)),
    ("POST", "artifact", lambda g, c, v: g.generic(c, v, "artifact.submit", g.submit)),
    ("POST", "decision", lambda g, c, v: g.generic(c, v, "decision.submit", g.decide)),
    ("POST", "prompt", lambda g, c, v: g.prompt(c, v)),
    ("POST", "session/event", lambda g, c, v: g.session_event(c, v)),
    ("GET", f"session/{ID}", lambda g, c, s, _: g.session(c, s)),
    ("GET", "status", lambda g, c, _: (200, {"status": "ok", "version": "0.2"})),
]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "gateway", ""

    def log_message(self, *_):
        pass

    def answer(self, status, value, media_type=MEDIA_TYPE):
        raw = b"" if value is None else value if isinstance(value, bytes) else json.dumps(value).encode()
        self.server.log.append((self.command, self.path, status, value))
        self.send_response(status)
        if raw:
            self.send_header("Content-Type", media_type)
        if status != 204:
            self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def end_headers(self):
        self.send_header("Access-Control-Allow-Origin", "*")  # a page from elsewhere
        super().end_headers()

    def do_OPTIONS(self):
        self.send_response(204)
        self.send_header("Access-Control-Allow-Methods", "GET, POST, DELETE")
        self.send_header("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Last-Event-ID")
        self.end_headers()

    def caller(self):
        kind, _, key = self.headers.get("Authorization", "").partition(" ")
        for known, caller in self.server.gateway.keys.items():
            if kind.lower() == "bearer" and secrets.compare_digest(known.encode(), key.strip().encode("latin-1")):
                return caller
        raise Refused(401, "PROTO_ERR_NO_CREDENTIAL", "a bearer key is needed")

    def body(self, limit):
        """The body, which is read to its end also where it is too large: who is cut off while sending never sees the answer."""
        raw, self.is_read = b"", True
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                raw = (raw + self.rfile.read(size))[:limit + 1]
                self.rfile.readline()
            self.rfile.readline()
        else:
            left = int(self.headers.get("Content-Length") or 0)
            while left > 0 and (part := self.rfile.read(min(left, 1 << 16))):
                raw, left = (raw + part)[:limit + 1], left - len(part)
        if len(raw) > limit:
            raise Refused(413, "PROTO_ERR_PAYLOAD_TOO_LARGE", "the payload is too large")
        return raw

    def do_GET(self):
        self.handle_call()

    do_POST = do_DELETE = do_GET

    def handle_call(self):
        target = urllib.parse.urlsplit(self.path)
        parts = [urllib.parse.unquote(p) for p in target.path.strip("/").split("/")]
        if parts[0] != "v1":
            return self.page(parts)
        self.is_read = False
        generic = len(parts) > 1 and parts[1] in ("artifact", "decision", "prompt", "session", "status")
        try:
            caller = self.caller()
            query = {k: v[-1] for k, v in urllib.parse.parse_qs(target.query).items()}
            found = self.route(caller, parts[1:], query)
        except Refused as refused:
            if not self.is_read:
                try:
                    self.body(0)
                except Refused:
                    pass
            if generic:
                return self.answer(refused.status, refused.body, "application/json")
            return self.answer(refused.status, self.server.gateway.envelope("error", uuid.uuid4().hex, refused.body))
        if found is not None:
            status, value = found
            self.answer(status, value, MEDIA_TYPE if isinstance(value, dict) and "msgType" in value else "application/json")

    def route(self, caller, path, query):
        g, post = self.server.gateway, self.command == "POST"
        if path[:1] == ["sse"] and len(path) == 3 and path[1] in ("approvers", "enforcers") and not post:
            return self.events(caller, path[1][:-1], path[2])
        if path == ["ws"] and not post:
            return self.websocket(caller, query)
        submits = (path, caller[0]) in ((["artifacts"], "enforcer"), (["artifact"], "enforcer"), (["prompt"], "approver"))
        if g.strict and post and submits and not self.headers.get("Idempotency-Key"):
            raise bad("Idempotency-Key is missing")
        limit = {"session": MAX_SNAPSHOT, "artifacts": MAX_ARTIFACT, "artifact": MAX_ARTIFACT}.get(path[0], MAX_PROMPT)
        value = parsed(self.body(limit + ENVELOPE)) if post else None
        for method, pattern, then in ROUTES:
            found = re.fullmatch(pattern, "/".join(urllib.parse.quote(p, safe="") for p in path))
            if found and method == self.command:
                with g.lock:
                    return then(g, caller, *map(urllib.parse.unquote, found.groups()), value if post else query)
        raise missing("there is no such endpoint")

    def page(self, parts):
        """A folder with a page, where one is given. Everything that is no file is its index."""
        folder = self.server.page
        if folder is None or self.command != "GET" or ".." in parts:
            return self.answer(404, b"not found\n", "text/plain")
        file = folder.joinpath(*parts)
        file = file if file.is_file() else folder / "index.html"
        self.answer(200, file.read_bytes(), mimetypes.guess_type(file.name)[0] or "application/octet-stream")

    def open_channel(self, caller, role, ident, kind):
        gateway = self.server.gateway
        with gateway.lock:
            gateway.act(caller, role, ident)
            channel = Channel(role, ident, kind)
        return gateway, channel

    def events(self, caller, role, ident):
        gateway, channel = self.open_channel(caller, role, ident, "sse")
        self.server.log.append((self.command, self.path, 200, "text/event-stream"))
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        with gateway.lock:
            gateway.connected(channel)
        try:
            while True:
                try:
                    message = channel.out.get(timeout=15)
                    self.wfile.write(f"event: {message['msgType']}\ndata: {json.dumps(message)}\n\n".encode())
                except queue.Empty:
                    self.wfile.write(b"event: ping\ndata:\n\n")
                self.wfile.flush()
        except OSError:
            pass
        finally:
            with gateway.lock:
                gateway.channels.remove(channel)

    def websocket(self, caller, query):
        role, ident, key = query.get("role"), query.get("id"), self.headers.get("Sec-WebSocket-Key")
        if role not in ("enforcer", "approver") or not ident or not key or self.headers.get("Upgrade", "").lower() != "websocket":
            raise bad("role, id or the handshake is not as specified")
        gateway, channel = self.open_channel(caller, role, ident, "websocket")
        self.server.log.append((self.command, self.path, 101, None))
        self.close_connection = True
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode() + WS_GUID).digest()).decode())
        self.end_headers()
        with gateway.lock:
            gateway.connected(channel)
        frames = Frames(self.connection, self.rfile)
        threading.Thread(target=frames.write_from, args=(channel.out,), daemon=True).start()
        try:
            while (raw := frames.read()) is not None:
                about = None
                try:
                    value = parsed(raw)
                    about = value.get("requestId")
                    with gateway.lock:
                        gateway.frame(caller, channel, value)
                except Refused as refused:
                    channel.send(gateway.envelope("error", about if filled(about) else uuid.uuid4().hex, refused.body))
        except (OSError, ValueError):
            pass
        finally:
            channel.send(None)
            with gateway.lock:
                gateway.channels.remove(channel)


class Frames:
    """The server's side of RFC 6455: whole messages in, text frames out."""

    def __init__(self, connection, reader):
        self.connection, self.reader, self.lock = connection, reader, threading.Lock()
        connection.settimeout(120)  # idle (8)

    def send(self, opcode, payload=b""):
        size = len(payload)
        head = bytes([0x80 | opcode]) + (bytes([size]) if size < 126 else b"\x7e" + struct.pack(">H", size) if size < 65536
                                         else b"\x7f" + struct.pack(">Q", size))
        with self.lock:
            self.connection.sendall(head + payload)

    def write_from(self, out):
        try:
            while True:
                try:
                    message = out.get(timeout=30)
                except queue.Empty:
                    self.send(9)  # ping (6)
                    continue
                if message is None:
                    return
                self.send(1, json.dumps(message).encode())
        except OSError:
            pass

    def exactly(self, size):
        data = self.reader.read(size)
        if len(data) != size:
            raise OSError("closed")
        return data

    def read(self):
        """The next message; None when the other side closes."""
        whole = b""
        while True:
            first, second = self.exactly(2)
            size = second & 127
            if size > 125:
                size = struct.unpack(">H" if size == 126 else ">Q", self.exactly(2 if size == 126 else 8))[0]
            if not second & 128 or len(whole) + size > MAX_ARTIFACT + ENVELOPE:
                self.send(8, struct.pack(">H", 1009 if second & 128 else 1002))
                return None
            mask = self.exactly(4)
            data = bytearray(self.exactly(size))
            stream = (mask * (size // 4 + 1))[:size]
            data = (int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")).to_bytes(size, "big")
            opcode = first & 15
            if opcode == 8:
                self.send(8, data[:2])
                return None
            if opcode == 9:
                self.send(10, data)
            elif opcode in (0, 1, 2):
                whole += data
                if first & 128:
                    return whole


class Server(ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 64

    def __init__(self, address, gateway, page=None, handler=Handler):
        super().__init__(address, handler)
        self.gateway, self.page, self.log = gateway, page, []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, address)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--key", action="append", default=[], metavar="KEY=ROLE[:ID]", help="a key, and who has it")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--strict", action="store_true", help="take the text at its narrowest")
    parser.add_argument("--page", type=pathlib.Path, metavar="DIR", help="a folder to serve outside of /v1")
    parser.add_argument("--certificate", metavar="FILE", help="certificate and key, to speak TLS")
    options = parser.parse_args()
    keys = {}
    for given in options.key:
        key, _, who = given.rpartition("=")
        role, _, ident = who.partition(":")
        if not key or role not in ("enforcer", "approver"):
            parser.error("--key is KEY=enforcer, KEY=approver, or the same with :ID")
        keys[key] = (role, ident or None)
    server = Server(("127.0.0.1", options.port), Gateway(keys, options.strict), options.page)
    url = server.url
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        url = url.replace("http:", "https:")
    print(url, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
