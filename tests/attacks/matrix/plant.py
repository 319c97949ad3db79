"""A gateway without one check of the tenant: a proxy that, on one endpoint, lets the other tenant's keys pass for the owner's."""
import re, socket, threading

from wire import basic


class Plant:
    def __init__(self, port, method, path):
        self.upstream, self.method, self.keys, self.contexts, self.swapped = port, method, {}, {}, 0
        self.path = re.compile(re.sub(r"\{\w+\}", "[^/?]+", path) + r"/?(\?.*)?$")
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def swap(self, key, owners):
        """From now on, as it is and as Basic has it."""
        for text, instead in ((key, owners), (basic(key)[0][1], basic(owners)[0][1])):
            self.keys[text] = instead

    def stop(self):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.upstream))
            except OSError:
                return
            for s in (client, server):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.requests, args=(client, server), daemon=True).start()
            threading.Thread(target=self.answers, args=(server, client), daemon=True).start()

    def requests(self, client, server):
        """Each head of a request, which may be changed, then its body."""
        data = b""
        try:
            while True:
                while b"\r\n\r\n" not in data:
                    more = client.recv(1 << 16)
                    if not more:
                        return
                    data += more
                head, data = data.split(b"\r\n\r\n", 1)
                length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
                length = int(length[1]) if length else 0
                while len(data) < length:
                    data += client.recv(1 << 16)
                server.sendall(self.changed(head) + b"\r\n\r\n" + data[:length])
                data = data[length:]
        except OSError:
            pass
        finally:
            end(server)

    def changed(self, head):
        method, path, _ = head.split(b"\r\n")[0].decode("latin-1").split(" ", 2)
        if method != self.method or not self.path.match(path):
            return head
        for key, owners in self.keys.items():
            if key.encode() in head:
                self.swapped += 1
                return head.replace(key.encode(), owners.encode())
        return head

    @staticmethod
    def answers(server, client):
        try:
            while data := server.recv(1 << 16):
                client.sendall(data)
        except OSError:
            pass
        finally:
            end(client)


def end(s):
    try:
        s.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    s.close()
