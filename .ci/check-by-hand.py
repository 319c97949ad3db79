#!/usr/bin/env python3
"""Runs the commands of docs/by-hand.md as written and compares what comes out with what the page shows.

Every ```console block is run: lines after "$ " are commands (going on while a quote is open), the rest is their
output. The one that starts the gateway is left running, and the export lines that it prints are what a person pastes. With
--debug it starts the gateway that a machine which runs all tests has built already.
"""
import os
import re
import subprocess
import sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def commands(text):
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        command, output = None, []
        for line in block.splitlines():
            if command is not None and command.count("'") % 2 == 1:
                command += "\n" + line
            elif line.startswith("$ "):
                if command is not None:
                    yield command, output
                command, output = line[2:], []
            else:
                output.append(line)
        if command is not None:
            yield command, output


def start(command, environment):
    """Starts the gateway, and returns it with the variables that it prints."""
    gateway = subprocess.Popen(
        ["bash", "-c", "exec " + command], cwd=root, env=environment, stderr=subprocess.PIPE, text=True
    )
    printed, exports = [], {}
    for line in gateway.stderr:
        printed.append(line)
        found = re.match(r"export (\w+)=(\S+)$", line)
        if found:
            exports[found[1]] = found[2]
        if line.endswith("Stop with Ctrl-C.\n"):
            break
    if len(exports) < 4:
        sys.exit("check-by-hand: the gateway does not start:\n" + "".join(printed[-40:]))
    return gateway, exports


def main():
    text = open(os.path.join(root, "docs/by-hand.md"), encoding="utf-8").read()
    environment, gateway, checked = dict(os.environ), None, 0
    try:
        for command, shown in commands(text):
            if " dev" in command:
                if "--debug" in sys.argv:
                    built = os.path.join(environment.get("CARGO_TARGET_DIR", "target"), "debug/countersign-gateway")
                    command = command.replace("cargo run --release --bin countersign-gateway --", built)
                gateway, exports = start(command, environment)
                environment.update(exports)
                continue
            variable = re.match(r"(\w+)=", command)
            if variable:
                command += f"; printf %s \"${variable[1]}\""
            run = subprocess.run(["bash", "-c", command], cwd=root, env=environment, capture_output=True, text=True)
            if variable and run.returncode == 0:
                environment[variable[1]] = run.stdout
                continue
            came = run.stdout.rstrip("\n").split("\n") if run.stdout.strip() else []
            if run.returncode != 0 or came != shown:
                sys.exit(f"check-by-hand: {command}\n  shows: {shown}\n  gives: {came}\n  {run.stderr}")
            checked += 1
    finally:
        if gateway is not None:
            gateway.terminate()
            gateway.wait(15)
    if checked < 4:
        sys.exit(f"check-by-hand: only {checked} commands were found")
    print(f"check-by-hand: {checked} commands give what the page shows")


main()
