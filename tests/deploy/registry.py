"""A registry of npm on the loopback, with the packages that dist/npm/build has made and no others."""
import base64
import hashlib
import http.server
import json
import pathlib
import tarfile
import threading
import urllib.parse


class Registry(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.packages, self.files = {}, {}
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def publish(self, folder):
        for path in sorted(pathlib.Path(folder).glob("*.tgz")):
            with tarfile.open(path) as archive:
                manifest = json.load(archive.extractfile("package/package.json"))
            name, data = f"{path.parent.name}-{path.name}", path.read_bytes()
            self.files[f"/files/{name}"] = data
            integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
            manifest["dist"] = {"tarball": f"{self.url}/files/{name}", "integrity": integrity}
            package = self.packages.setdefault(manifest["name"], {"name": manifest["name"], "versions": {}, "dist-tags": {}})
            package["versions"][manifest["version"]] = manifest
            package["dist-tags"]["latest"] = manifest["version"]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = urllib.parse.unquote(self.path.partition("?")[0])
        package = self.server.packages.get(path[1:])
        data = self.server.files.get(path) or (json.dumps(package).encode() if package else None)
        self.send_response(200 if data else 404)
        self.send_header("Content-Type", "application/json" if package else "application/octet-stream")
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        self.wfile.write(data or b"")

    def log_message(self, *_):
        pass
