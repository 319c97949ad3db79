"""A program on a screen of its own, in tmux: hosts ask the terminal questions, and tmux answers them."""

import os
import shlex
import subprocess
import time


class Screen:
    """What is seen, and keys. The tmux server is private, and ends with the screen."""

    def __init__(self, folder, argv, cwd, environment, columns=120, rows=45):
        self.socket = f"{folder}/screen"
        line = shlex.join(["env", "-i", *(f"{name}={value}" for name, value in environment.items()), *argv])
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(cwd), line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._tmux("kill-server", check=False)

    def _tmux(self, *arguments, check=True):
        environment = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8", "SHELL": "/bin/sh"}
        ran = subprocess.run(
            ["tmux", "-S", self.socket, *arguments], check=check, capture_output=True, text=True, env=environment, timeout=20
        )
        return ran.stdout

    def text(self):
        """The screen as it is now; nothing when the program has ended."""
        return self._tmux("capture-pane", "-p", check=False)

    def press(self, *keys):
        self._tmux("send-keys", *keys)

    def waits_for(self, condition, seconds=30):
        """Waits for a text on the screen, or for a condition that a function says. Says whether it came."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition() if callable(condition) else condition in self.text():
                return True
            time.sleep(0.1)
        return False
