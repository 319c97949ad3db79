#!/usr/bin/env python3
"""Runs the client's example against a development gateway, and checks what it prints."""
import json
import subprocess
import sys

build = ["cargo", "build", "--quiet", "--locked"]
subprocess.run([*build, "-p", "countersign-server"], check=True)
subprocess.run([*build, "-p", "countersign-client", "--example", "two_ends"], check=True)
run = ["cargo", "run", "--quiet", "--locked"]
dev = [*run, "-p", "countersign-server", "--bin", "countersign-gateway", "--", "dev", "--json", "--listen", "127.0.0.1:0"]
gateway = subprocess.Popen(dev, stdout=subprocess.PIPE, text=True)
try:
    started = json.loads(gateway.stdout.readline())
    arguments = [started["url"], started["enforcerKey"], started["approverKey"]]
    example = [*run, "-p", "countersign-client", "--example", "two_ends", "--", *arguments]
    printed = subprocess.run(example, check=True, capture_output=True, text=True, timeout=60).stdout
finally:
    gateway.terminate()
    gateway.wait(30)
print(printed, end="")
if "approve by ada: go ahead" not in printed or "robot asks: " not in printed:
    sys.exit("check-example: the two ends did not exchange a decision")
