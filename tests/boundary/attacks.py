#!/usr/bin/env python3
"""What code of an agent may try against its own gate: attacks.py WHAT.json RESULTS.json

Each attack says "done", or what the system answered. What counts is decided by whoever started this, by what is on the disk.
"""

import ctypes
import fcntl
import json
import os
import pathlib
import pty
import socket
import sys
import termios

ATTACKS = {}


def attack(function):
    ATTACKS[function.__name__] = function
    return function


def connect(address):
    with socket.socket(socket.AF_UNIX) as end:
        end.settimeout(5)
        end.connect(address)


@attack
def read_the_keys(what):
    pathlib.Path(what["ours"], "profiles/agent/secret").read_text()


@attack
def change_the_rules(what):
    with open(pathlib.Path(what["ours"], "rules.toml"), "a") as file:
        file.write("# changed by the agent\n")


@attack
def change_the_journal(what):
    with open(pathlib.Path(what["ours"], "profiles/agent/journal"), "a") as file:
        file.write("# changed by the agent\n")


@attack
def write_to_the_settings(what):
    with open(what["settings"], "a") as file:
        file.write("\n")


@attack
def put_other_settings_in_their_place(what):
    other = pathlib.Path(what["scratch"], "other-settings")
    other.write_text("{}")
    os.rename(other, what["settings"])


@attack
def remove_the_settings(what):
    os.unlink(what["settings"])


@attack
def move_the_folder_of_the_settings(what):
    folder = os.path.dirname(what["settings"])
    os.rename(folder, folder + ".moved")
    os.rename(folder + ".moved", folder)


@attack
def uncover_what_is_below_the_settings(what):
    if ctypes.CDLL(None, use_errno=True).umount2(what["settings"].encode(), 2):
        raise OSError(ctypes.get_errno(), "umount2")


@attack
def write_settings_as_if_a_server_had_sent_them(what):
    with open(what["from_server"], "a") as file:
        file.write(" ")


@attack
def change_the_hook_program(what):
    with open(what["hook"], "ab") as file:
        file.write(b"\0")


@attack
def put_a_socket_of_its_own_in_place_of_the_keepers(what):
    folder = os.path.dirname(what["call"])
    os.rename(folder, folder + ".moved")
    os.rename(folder + ".moved", folder)


@attack
def signal_the_keeper(what):
    os.kill(what["keeper"], 0)
    if b"keeper" not in pathlib.Path(f"/proc/{what['keeper']}/cmdline").read_bytes():
        raise ProcessLookupError("another process has its number")


@attack
def see_a_process_outside(what):
    if str(what["marker"]).encode() not in pathlib.Path(f"/proc/{what['outsider']}/cmdline").read_bytes():
        raise ProcessLookupError("another process has its number")


@attack
def read_another_project(what):
    pathlib.Path(what["elsewhere"], "file").read_text()


@attack
def write_to_the_persons_shell_files(what):
    with open(pathlib.Path(what["user"], ".bashrc"), "a") as file:
        file.write("# changed by the agent\n")


@attack
def call_a_service_outside_by_its_path(what):
    connect(what["service"])


@attack
def call_a_service_outside_by_its_abstract_name(what):
    connect("\0" + what["abstract"])


@attack
def type_into_a_terminal(what):
    child, end = pty.fork()
    if child == 0:
        try:
            fcntl.ioctl(0, termios.TIOCSTI, b"x")
        except OSError:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    os.close(end)
    if status:
        raise PermissionError("the call was refused")


@attack
def follow_a_descriptor_that_was_left_open(what):
    for number in range(3, 64):
        try:
            pathlib.Path(f"/proc/self/fd/{number}/profiles/agent/secret").read_text()
            return
        except OSError:
            pass
    raise FileNotFoundError("no descriptor leads there")


@attack
def signal_the_group_of_whoever_has_started_it(what):
    os.kill(0, 0)


@attack
def look_for_the_keys_of_the_persons_session(what):
    keyctl, get_id, of_session = {"x86_64": 250, "aarch64": 219}[os.uname().machine], 0, -3
    if ctypes.CDLL(None, use_errno=True).syscall(keyctl, get_id, of_session, 1) < 0:
        raise OSError(ctypes.get_errno(), "keyctl")


@attack
def call_the_keeper_itself(what):
    connect(what["call"])


@attack
def read_the_memory_of_the_host(what):
    """Of whoever has started this: the nearest process with its name, also through an interpreter."""
    process = os.getppid()
    while process > 1:
        words = pathlib.Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
        if any(os.path.basename(word).lstrip(".").startswith(what["host"]) for word in words[:2]):
            with open(f"/proc/{process}/mem", "rb"):
                return
        process = int(pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    raise ProcessLookupError("the host can't be seen")


def main():
    what = json.loads(pathlib.Path(sys.argv[1]).read_text())
    results = {}
    for name, function in ATTACKS.items():
        try:
            function(what)
            results[name] = "done"
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}"
    pathlib.Path(sys.argv[2]).write_text(json.dumps(results, indent=1))


main()
