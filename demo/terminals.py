"""A program in a terminal of its own: a pseudo-terminal whose screen is read and whose keys are pressed."""

import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from fcntl import ioctl

CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>]")


class Terminal:
    """Starts a program, and remembers what it wrote."""

    def __init__(self, argv, environment, folder, columns=120, rows=40):
        self.argv, self.text, self.read_to, self.code = argv, "", 0, None
        self.process, self.screen = pty.fork()
        if self.process == 0:
            # A shell starts what runs in the background with this signal ignored, and programs inherit that.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.chdir(folder)
            os.execvpe(argv[0], argv, environment)
        ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self, seconds):
        ready, _, _ = select.select([self.screen], [], [], seconds)
        if ready:
            try:
                data = os.read(self.screen, 65536)
            except OSError:
                data = b""
            if not data:
                return False
            self.text += data.decode("utf-8", "replace")
        return True

    def expect(self, text, seconds=20):
        """Waits until the program has written this since the last time."""
        end = time.monotonic() + seconds
        while text not in self.text[self.read_to :]:
            if not self._read(0.1) and text not in self.text[self.read_to :]:
                self.fail(f"ended without writing {text!r}")
            if time.monotonic() > end:
                self.fail(f"did not write {text!r} within {seconds} s")
        self.read_to = self.text.index(text, self.read_to) + len(text)
        return self

    def type(self, line):
        os.write(self.screen, (line + "\n").encode())
        return self

    def press(self, keys):
        os.write(self.screen, keys.encode())
        return self

    def answer(self, question, line, seconds=20):
        return self.expect(question, seconds).type(line)

    def ends(self, code, seconds=30):
        """Waits for its end, and checks the exit code."""
        end = time.monotonic() + seconds
        while self._read(0.1):
            if time.monotonic() > end:
                self.fail(f"did not end within {seconds} s")
        _, status = os.waitpid(self.process, 0)
        self.code = os.waitstatus_to_exitcode(status)
        os.close(self.screen)
        if self.code != code:
            self.fail(f"ended with {self.code} and not with {code}")
        return self

    def shown(self):
        """What a person saw: lines that were written over are gone."""
        lines = []
        for line in CONTROL.sub("", self.text.replace("\x1b[2K", "")).replace("\r\n", "\n").split("\n"):
            lines.append(line.rsplit("\r", 1)[-1].rstrip())
        return "\n".join(line for line in lines if line)

    def fail(self, reason):
        if self.code is None:
            os.kill(self.process, signal.SIGKILL)
        sys.exit(f"✗ {' '.join(self.argv)}: {reason}\n{self.shown()}")
