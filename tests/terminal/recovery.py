#!/usr/bin/env python3
"""A recovery code in real terminals: made on one device, typed into another, taken by the machine.

Usage: tests/terminal/recovery.py FOLDER_WITH_THE_BINARIES

Needs tmux. Everything is in a new temporary folder, with a gateway and a tmux server of its own.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from inbox import Tmux, step

CODE = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{4}(?:-[0-9A-HJKMNP-TV-Z]{4}){6}\b")


def shown_code(window):
    """The code on the screen, which is gone after Enter and not in the scrollback either."""
    window.wait("shown this once")
    window.wait("Enter goes on")
    code = CODE.search(window.text())[0]
    window.press("Enter")
    window.gone(code)
    everything = window.tmux.run("capture-pane", "-p", "-S", "-", "-t", window.name)
    assert code not in everything, "the code is in the scrollback"
    return code


def unlock(window, name):
    window.wait(f"Passphrase of {name}:")
    window.line("correct horse")


def invited(home, env):
    command = ["countersign-gateway", "invite", "--json", "--tenant", "home", "--role", "approver", "--id", "dana"]
    command += ["--config", str(home / "gateway" / "gateway.toml")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)["link"]


def accept(machine, work, number):
    """Shows the card of the machine, which is written to a file, and waits for the text of the device."""
    machine.line("clear")
    machine.line(f'countersign recovery accept > card; echo "accept{number}=$?"')
    machine.wait("What the new device shows:")
    return (work / "card").read_text().strip()


def scenario(tmux, folder, work, env):
    homes = {name: folder / name for name in ("home", "new")}
    machine = tmux.window("machine", work, width=200, height=50)
    desk = tmux.window("desk", work, width=200, height=50)
    device = tmux.window("device", work, width=200, height=50)
    device.line(f"export COUNTERSIGN_HOME={homes['new']}")

    step("a machine and a desk, and a code that is shown once")
    machine.line("countersign up --approver dana --machine build-1")
    for question in ("New passphrase for dana:", "Again:"):
        machine.wait(question)
        machine.line("correct horse")
    machine.wait("the gateway runs at")
    desk.line("countersign recovery new")
    unlock(desk, "dana")
    code = shown_code(desk)
    desk.wait("your recovery code is signed and sent")
    machine.line("countersign devices update")
    machine.wait(" works ")

    step("a new device joins in the same name, and gets a code of its own")
    (work / "link").write_text(invited(homes["home"], env) + "\n")
    device.line("countersign join --name new - < link")
    for question in ("New passphrase for new:", "Again:"):
        device.wait(question)
        device.line("correct horse")
    later_code = shown_code(device)
    device.wait("joined")

    step("the code is typed, and a wrong one is noticed")
    card = accept(machine, work, 1)
    device.line("clear")
    device.line('countersign recovery use > voucher; echo "use1=$?"')
    device.wait("Recovery code:")
    device.line(code[:-1] + ("0" if code[-1] != "0" else "1"))
    device.wait("use1=2")
    device.line("clear")
    device.line('countersign recovery use > voucher; echo "use2=$?"')
    device.wait("Recovery code:")
    device.line(code.lower().replace("-", " "))
    device.wait("Card of the machine:")
    device.line(card)
    device.wait("Are these the digits on the machine?")
    digits = re.search(r"This machine is ((?:\d{5} ?){6})", machine.text())[1].strip()
    assert digits in device.text(), "both screens show the same digits"
    device.line("yes")
    unlock(device, "dana")
    device.wait("use2=0")
    voucher = (work / "voucher").read_text().strip()

    step("the machine takes it from a day on, and not before")
    machine.line(voucher)
    machine.wait("is not a day old")
    machine.wait("accept1=86")
    pins = homes["home"] / "profiles" / "agent" / "pins.json"
    known = json.loads(pins.read_text())
    text = pins.read_text()
    since = next(pin["since"] for pin in known["pins"] if "ecovery" in json.dumps(pin))
    day_before = re.sub(r"^\d{4}", lambda year: str(int(year[0]) - 1), since)
    pins.write_text(text.replace(f'"{since}"', f'"{day_before}"'))
    assert accept(machine, work, 2) == card
    machine.line(voucher)
    machine.wait("takes the place of")
    machine.wait("accept2=0")

    step("the new device approves, and the lost one is revoked")
    machine.line("clear")
    machine.line('countersign exec -- touch recovered; echo "end=$?"')
    machine.wait("asked")
    device.line("clear")
    device.line("countersign approve")
    unlock(device, "dana")
    device.wait("Type yes:")
    device.line("yes")
    machine.wait("end=0")
    assert (work / "recovered").exists()
    machine.line("clear; countersign --profile agent devices")
    machine.wait("by a recovery code, until")
    machine.wait("revoked ")

    step("the code of the new device is taken in its turn")
    device.line("clear")
    device.line("countersign recovery renew")
    unlock(device, "dana")
    device.wait("your recovery code is signed and sent")

    step("no code is in any file")
    for file in folder.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            for secret in (code, later_code):
                assert secret.encode() not in content, f"the code is in {file}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", type=pathlib.Path)
    options = parser.parse_args()
    assert shutil.which("tmux"), "tmux is not installed"
    with tempfile.TemporaryDirectory(prefix="countersign-recovery-") as folder:
        folder = pathlib.Path(folder)
        work = folder / "work"
        work.mkdir()
        keep = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERSIGN")}
        path = f"{options.binaries.resolve()}:{os.environ['PATH']}"
        home = {"COUNTERSIGN_HOME": str(folder / "home"), "TERM": "xterm-256color", "LANG": "C.UTF-8", "PATH": path}
        env = {**keep, **home}
        env.pop("TMUX", None)
        tmux = Tmux(folder, env)
        try:
            scenario(tmux, folder, work, env)
        finally:
            subprocess.run(["countersign", "down"], env=env, capture_output=True, timeout=60)
            tmux.end()
    print("a recovery code in terminals: everything as it should be")


if __name__ == "__main__":
    sys.exit(main())
