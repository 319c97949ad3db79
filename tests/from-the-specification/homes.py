"""What the checks of our tool stand on: a gateway whose answers can be lost, homes of the tool, and a person at a terminal."""
import fcntl, http.client, json, os, pty, re, shutil, signal, struct, subprocess, termios, threading, time, uuid

import gateway, rules
from shapes import now

PASS = "correct horse battery"
KEYS = {"key-of-robot": ("enforcer", "robot"), "key-of-ada": ("approver", "ada"), "key-of-bob": ("approver", "bob")}
PATIENCE = 30


class Choosing(rules.Gateway):
    """The gateway, which can make another choice where the text leaves one."""

    is_sender = False

    def request(self, request_id):
        """With `is_sender` the gateway alone is the sender of what it sends, which 2.4 allows."""
        message = super().request(request_id)
        return message | {"sender": {"gatewayId": self.name}} if self.is_sender else message


class Losing(gateway.Handler):
    """Does what it is asked for, and can lose the answer: `lose` of the server is the end of a path."""

    def answer(self, status, value, media_type=gateway.MEDIA_TYPE):
        if self.server.lose and self.command == "POST" and self.path.endswith(self.server.lose):
            self.server.log.append((self.command, self.path, status, "the answer was lost"))
            self.server.lose, self.close_connection = None, True
            return
        super().answer(status, value, media_type)


def serve(**more):
    server = gateway.Server(("127.0.0.1", 0), Choosing(KEYS, **more), handler=Losing)
    server.lose = None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def call(server, key, method, path, msg_type=None, request_id=None, body=None):
    """A call of somebody who is not our tool: the status."""
    role, ident = KEYS[key]
    message = {"msgType": msg_type, "requestId": request_id, "createdAt": now(), "sender": {role + "Id": ident}, "body": body}
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    connection.request(method, path, json.dumps(message) if msg_type else None, {"Authorization": f"Bearer {key}", "Idempotency-Key": str(uuid.uuid4())})
    return connection.getresponse().status


def plain(shown):
    """The words on a screen: without what moves the cursor and sets colours."""
    return " ".join(re.sub(r"\x1b(\[[0-9;?]*[a-zA-Z]|.)", " ", shown).split())


class Terminal:
    """One program in a terminal. What it shows is read all the time."""

    def __init__(self, program, args, cwd, env):
        self.shown, self.mark, self.code = "", 0, None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(cwd)
                os.execve(program, [str(program), *args], env)
            finally:
                os._exit(127)
        self.resize(40, 120)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        while True:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                break
            self.shown += data.decode("utf-8", "replace").replace("\r", "")
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def wait(self, pattern, patience=PATIENCE):
        """The first match after what was answered last; None when the program ends or says nothing of the kind."""
        end = time.monotonic() + patience
        while True:
            ended = self.code is not None
            if found := re.search(pattern, self.shown[self.mark:]) or re.search(pattern, plain(self.shown[self.mark:])):
                return found
            if ended or time.monotonic() > end:
                return None
            time.sleep(0.03)

    def answer(self, question, line):
        if self.wait(re.escape(question)) is None:
            return False
        self.mark = len(self.shown)
        time.sleep(0.1)
        self.type(line() if callable(line) else line)
        return True

    def type(self, line, end="\n"):
        try:
            os.write(self.fd, (line + end).encode())
        except OSError:
            pass

    def end(self, patience=PATIENCE):
        """Waits until it ends by itself; else it is ended, and the code is None."""
        self.reader.join(patience)
        if self.code is not None:
            return self.code
        self.stop()
        return None

    def stop(self, number=signal.SIGTERM):
        if self.code is None:
            os.kill(self.pid, number)
            self.reader.join(5)
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            self.reader.join(5)


class Place:
    """A home of the tool: a machine, or a person's device."""

    def __init__(self, run, name):
        self.run, self.name, self.home = run, name, run.top / name / "profile"
        self.work = run.top / name / "work"
        self.work.mkdir(parents=True)
        self.env = {"HOME": str(run.top / name), "COUNTERSIGN_HOME": str(self.home), "TERM": "xterm", "LANG": "C.UTF-8", "PATH": f"{run.folder}:{os.environ['PATH']}"}

    def terminal(self, *args):
        out = Terminal(self.run.folder / "countersign", [str(a) for a in args], self.work, self.env)
        self.run.open.append(out.stop)
        return out

    def start(self, *args, **more):
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | more
        out = subprocess.Popen([self.run.folder / "countersign", *map(str, args)], cwd=self.work, env=self.env, **more)
        self.run.open.append(lambda: out.poll() is None and out.kill())
        return out

    def call(self, *args, input=None, patience=PATIENCE):
        process = self.start(*args, **({"stdin": subprocess.PIPE} if input is not None else {}))
        return finish(process, patience, input)

    def unlocked(self, *args, then=(), patience=PATIENCE):
        """A command of a person, who types the passphrase and what else is asked for."""
        t = self.terminal(*args)
        for question, line in (("Passphrase", PASS), *then):
            t.answer(question, line)
        return t.end(patience), t.shown

    def use(self, url):
        """The profile is for this gateway from now on."""
        for file in self.home.glob("profiles/*/profile.json"):
            facts = json.loads(file.read_text())
            facts["gateway"] = url
            file.write_text(json.dumps(facts))

    def copy(self, name):
        other = Place(self.run, name)
        shutil.copytree(self.home, other.home)
        return other


def finish(process, patience=PATIENCE, input=None):
    """The exit code (None if it had to be ended), and what was printed."""
    try:
        out, err = process.communicate(input, timeout=patience)
        return process.returncode, out, err
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return None, out, err
