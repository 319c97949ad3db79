#!/usr/bin/env python3
"""Runs the client's example against a development gateway, and checks what it prints."""
import json
import os
import pathlib
import subprocess
import sys

subprocess.run(["cargo", "build", "--quiet", "--locked", "--workspace", "--bins", "--examples"], check=True)
programs = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "debug"
dev = [programs / "countersign-gateway", "dev", "--json", "--listen", "127.0.0.1:0"]
gateway = subprocess.Popen(dev, stdout=subprocess.PIPE, text=True)
try:
    started = json.loads(gateway.stdout.readline())
    example = [programs / "examples/two_ends", started["url"], started["enforcerKey"], started["approverKey"]]
    printed = subprocess.run(example, check=True, capture_output=True, text=True, timeout=60).stdout
finally:
    gateway.terminate()
    gateway.wait(30)
print(printed, end="")
if "approve by ada: go ahead" not in printed or "robot asks: " not in printed:
    sys.exit("check-example: the two ends did not exchange a decision")
