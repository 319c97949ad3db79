"""See terminal.sh. Every step is a command in a terminal of its own, as a person would type it."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from terminals import Terminal

PASSPHRASE = "correct horse battery"
steps = []


class Home:
    """A person or machine with an empty home."""

    def __init__(self, root, name, passphrase=PASSPHRASE):
        self.name, self.passphrase = name, passphrase
        self.folder = root / name
        self.work = self.folder / "project"
        self.work.mkdir(parents=True)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "USER": name,
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
        }

    def start(self, *arguments):
        return Terminal(["countersign", *arguments], self.environment, self.work)

    def run(self, *arguments, code=0):
        return self.start(*arguments).ends(code)

    def unlocked(self, *arguments, code=0):
        """A command that asks for the passphrase."""
        return self.start(*arguments).answer("Passphrase of", self.passphrase).ends(code)

    def waiting(self, headline):
        """The id of a request that waits, as soon as it does."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            listed = self.unlocked("inbox", "--json")
            items = json.loads(listed.shown().splitlines()[-1])["items"]
            for item in items:
                if item.get("headline") == headline:
                    return item["requestId"]
        sys.exit(f"✗ {headline} never waited for {self.name}")

    def approve(self, headline, *options, word="yes"):
        request = self.waiting(headline)
        terminal = self.start("approve", request, *options)
        terminal.answer("Passphrase of", self.passphrase).answer(f"Type {word}", word)
        return terminal.ends(0)

    def reject(self, headline, reason):
        return self.unlocked("reject", self.waiting(headline), "--reason", reason)


def step(name, *terminals):
    steps.append((name, terminals))
    print(f"✓ {name}")


def check(condition, text):
    if not condition:
        sys.exit(f"✗ {text}")


def ended(process, seconds=30):
    """Whether a process ends by itself."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.waitpid(process, os.WNOHANG)[0] != 0:
            return True
        time.sleep(0.05)
    os.kill(process, 9)
    os.waitpid(process, 0)
    return False


def alone(root):
    """One person, one machine."""
    ada = Home(root, "ada")
    begun = time.monotonic()
    up = ada.start("up").answer("Your name", "").answer("A name for this machine", "Ada's laptop")
    up.answer("New passphrase", PASSPHRASE).answer("Again", PASSPHRASE).ends(0)
    step("up: a gateway, both sides, paired", up)
    asked = ada.start("exec", "--", "sh", "-c", "echo hello > out; exit 3").expect("asked")
    answered = ada.approve("sh -c 'echo hello > out; exit 3'")
    asked.ends(3)
    check((ada.work / "out").read_text() == "hello\n", "what was approved has not run")
    seconds = time.monotonic() - begun
    step("exec: approved, it runs and its exit code is handed on", asked, answered)

    asked = ada.start("exec", "--", "touch", "rejected").expect("asked")
    answered = ada.reject("touch rejected", "not on a Friday")
    asked.ends(81)
    check("not on a Friday" in asked.shown() and not (ada.work / "rejected").exists(), "a rejected command ran")
    step("exec: rejected, it does not run (81), and the reason is shown", asked, answered)

    asked = ada.run("exec", "--valid-for", "8s", "--ask-again-for", "0", "--", "touch", "expired", code=82)
    check(not (ada.work / "expired").exists(), "an expired command ran")
    step("exec: nobody answers, it does not run (82)", asked)

    asked = ada.start("exec", "--", "touch", "withdrawn").expect("left").press("\x03").ends(130)
    check(not (ada.work / "withdrawn").exists(), "a withdrawn command ran")
    listed = ada.unlocked("inbox", "--json")
    check("touch withdrawn" not in listed.shown(), "a withdrawn request still waits")
    step("exec: Ctrl-C takes it back (130)", asked)

    script = ada.work / "deploy.sh"
    script.write_text("#!/bin/sh\ntouch deployed\n")
    script.chmod(0o755)
    asked = ada.start("exec", "--", "./deploy.sh").expect("asked")
    request = ada.waiting("./deploy.sh")
    script.write_text("#!/bin/sh\ntouch stolen\n")
    answered = ada.start("approve", request).answer("Passphrase of", PASSPHRASE).answer("Type yes", "yes").ends(0)
    asked.answer("as it is now?", "n").ends(84)
    check(not (ada.work / "deployed").exists() and not (ada.work / "stolen").exists(), "a changed script ran")
    step("exec: the script changed after it was shown, neither runs (84)", asked, answered)

    inbox = ada.start("inbox").answer("Passphrase of", PASSPHRASE).expect("inbox of Ada")
    os.close(inbox.screen)
    check(ended(inbox.process), "the inbox lives on after its terminal is gone")
    step("inbox: it ends when its terminal is closed", inbox)

    down = ada.run("down")
    asked = ada.run("exec", "--", "touch", "unreachable", code=83)
    check(not (ada.work / "unreachable").exists(), "a command ran without a gateway")
    step("exec: the gateway is gone, it does not run (83)", down, asked)
    again = ada.run("up")
    step("up again: everything is still there", again)
    return ada, seconds


def grants(ada):
    """An approval for a time lets the same kind through, and nothing else."""
    for name in ("one", "two", "three"):
        (ada.work / name).write_text("")
    asked = ada.start("exec", "--", "ls", "one").expect("asked")
    answered = ada.approve("ls one", "--for", "1h", "--pattern", "ls *")
    asked.ends(0)
    covered = ada.run("exec", "--", "ls", "two")
    check("covered by" in covered.shown() and "asked" not in covered.shown(), "the grant does not cover the second")
    other = ada.start("exec", "--", "rm", "two").expect("asked")
    ada.reject("rm two", "no")
    other.ends(81)
    check((ada.work / "two").exists(), "what no grant covers ran")
    step("approve --for 1h --pattern: the second runs without asking, another class asks", asked, answered, covered, other)
    listed = ada.run("grants", "--json")
    grant = json.loads(listed.shown().splitlines()[-1])["grants"][0]["requestId"]
    revoked = ada.run("grants", "revoke", grant)
    again = ada.start("exec", "--", "ls", "three").expect("asked")
    ada.reject("ls three", "no")
    again.ends(81)
    step("grants revoke: it asks again", revoked, again)

    exported = ada.run("export", "bundles")
    verified = ada.run("verify", "bundles")
    check("WRONG" not in verified.shown() and "proven" in verified.shown(), "the bundles do not verify")
    bundle = next((ada.work / "bundles").glob("*.json"))
    text = bundle.read_text()
    bundle.write_text(text.replace('\\"approve\\"', '\\"reject\\"') if '\\"approve\\"' in text else text[:-40])
    forged = ada.run("verify", "bundles", code=86)
    step("export and verify: what was asked, decided and done; a changed one is found", exported, verified, forged)

    detached = ada.run("ask", "--detach", "--checkpoint", "half of it is done")
    request = detached.shown().splitlines()[-1]
    ada.approve("half of it is done")
    picked = ada.run("wait", request)
    step("ask --detach and wait: the answer is picked up later", detached, picked)


def invitation(ada, role, name):
    config = ada.folder / ".local/share/countersign/gateway/gateway.toml"
    made = subprocess.run(
        ["countersign-gateway", "invite", "--config", config, "--tenant", "home", "--role", role, "--id", name],
        capture_output=True, text=True, check=True,
    )
    return made.stdout.strip()


def join(root, ada, role, identity, home):
    home = Home(root, home)
    terminal = home.start("join").answer("Invitation link", invitation(ada, role, identity))
    if role == "approver":
        terminal.answer("New passphrase", PASSPHRASE).answer("Again", PASSPHRASE).answer("Enter goes on", "")
    return home, terminal.ends(0)


def asks(build, person, name):
    asked = build.start("exec", "--", "touch", name).expect("asked")
    answered = person.approve(f"touch {name}")
    asked.ends(0)
    check((build.work / name).exists(), f"{name} was approved and has not run")
    return asked, answered


def team(root, ada):
    """Separate homes: joined by invitation, paired by link, by typed code, by a voucher."""
    build, joined = join(root, ada, "enforcer", "build", "build")
    dana, joined_too = join(root, ada, "approver", "dana", "dana")
    step("join: a machine and a person, by invitation", joined, joined_too)
    shown = build.start("pair").answer("Type yes", "yes").expect("secret until it is answered:\r\n").expect("\r\n")
    link = next(line for line in shown.shown().splitlines() if "/pair#" in line)
    answered = dana.start("pair", "--answer").answer("Link or code", link).answer("Passphrase of", PASSPHRASE).ends(0)
    shown.ends(0)
    step("pair: by link", shown, answered, *asks(build, dana, "by-link"))

    eve, _ = join(root, ada, "approver", "eve", "eve")
    shown = build.start("pair", "--typed").answer("Type yes", "yes").expect("ten minutes:\r\n").expect("\r\n")
    code = shown.shown().splitlines()[-1]
    answered = eve.start("pair", "--answer").answer("Link or code", code).answer("Passphrase of", PASSPHRASE)
    answered.answer("same on both screens", "yes").ends(0)
    shown.answer("same on both screens", "yes").ends(0)
    digits = [line for line in shown.shown().splitlines() if line.strip().replace(" ", "").isdigit()]
    check(digits and digits[0].strip() in answered.shown(), "the digits differ")
    step("pair: by typed code, with the same digits on both screens", shown, answered, *asks(build, eve, "by-code"))

    phone, _ = join(root, ada, "approver", "dana", "phone")
    card = phone.unlocked("vouch", "card")
    signed = dana.start("vouch", "sign").answer("Card of the new device", card.shown().splitlines()[-1])
    signed.answer("Type yes", "yes").answer("Passphrase of", PASSPHRASE).ends(0)
    voucher = signed.shown().splitlines()[-1]
    accepted = phone.start("vouch", "accept").answer("Voucher", voucher).answer("Passphrase of", PASSPHRASE).ends(0)
    updated = build.run("devices", "update")
    check("may approve too" in updated.shown(), "the machine has not heard of the new device")
    step("vouch: a new device of the same person", card, signed, accepted, updated, *asks(build, phone, "by-voucher"))

    fingerprint = json.loads(phone.run("keys", "show", "--json").shown())["keys"][0]["fingerprint"]
    revoked = dana.unlocked("vouch", "revoke", fingerprint)
    updated = build.run("devices", "update")
    check("must not approve any more" in updated.shown(), "the machine has not heard of the revocation")
    asked = build.start("exec", "--", "touch", "revoked").expect("asked")
    dana.waiting("touch revoked")
    listed = phone.unlocked("inbox", "--json")
    check("touch revoked" not in listed.shown(), "a revoked device is still asked")
    dana.reject("touch revoked", "no")
    asked.ends(81)
    step("vouch revoke: the device is asked no more", revoked, updated, asked)

    sent = dana.unlocked("prompt", "please run the tests first")
    heard = build.run("listen", "--once")
    check("please run the tests first" in heard.shown(), "the words have not arrived")
    step("prompt: words for the agent", sent, heard)


def program(folder, name, text):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)


def reachable(root, ada):
    """Another device reaches the gateway through Tailscale, which is played by a script; and a service of the user."""
    refused = ada.run("up", "--phone", code=85)
    step("up --phone: without a way in, it explains two", refused)
    programs = root / "programs"
    program(programs, "tailscale", """#!/bin/sh
        case "$1" in
            status) echo '{"Self": {"DNSName": "desk.tailnet.example."}}' ;;
            serve) echo "$@" > "$HOME/served" ;;
        esac
        """)
    ada.environment["PATH"] = f"{programs}:{ada.environment['PATH']}"
    up = ada.start("up", "--phone").answer("[y/N]", "y").answer("Passphrase of", PASSPHRASE)
    up.expect("Waiting for the device").press("\x03").ends(-2)
    check("https://desk.tailnet.example/connect#" in up.shown(), "the code does not lead to the tailnet")
    check("does not answer from here" in up.shown(), "an address that leads nowhere is not said")
    check((ada.folder / "served").read_text().startswith("serve --bg "), "tailscale serves nothing")
    step("up --phone: Tailscale serves it, and one code is shown until a device has used it", up)

    # A service manager that runs what the unit says.
    program(programs, "systemctl", """#!/bin/sh
        unit="$HOME/.config/systemd/user/countersign-gateway.service"
        case "$2" in
            is-system-running) echo running ;;
            restart) setsid sh -c "exec $(sed -n 's/^ExecStart=//p' "$unit")" >/dev/null 2>&1 & echo $! > "$HOME/service" ;;
            disable) kill "$(cat "$HOME/service")" ;;
        esac
        """)
    bob = Home(root, "bob")
    bob.environment["PATH"] = f"{programs}:{bob.environment['PATH']}"
    up = bob.start("up", "--machine", "Bob's laptop").answer("Your name", "bob").answer("New passphrase", PASSPHRASE).answer("Again", PASSPHRASE).ends(0)
    check((bob.folder / "service").exists(), "the service was not started")
    down = bob.run("down")
    check("stopped" in down.shown(), "the service was not stopped")
    step("up and down with a service of the user", up, down)


def transcript(root):
    lines = ["# Demo in a terminal", ""]
    lines += ["`demo/terminal.sh` in real terminals, from an empty home. CI runs it; this is what it showed.", ""]
    for name, terminals in steps:
        lines += [f"## {name}", ""]
        for terminal in terminals:
            lines += ["```console", "$ " + " ".join(terminal.argv), terminal.shown(), "```", ""]
    machine = socket.gethostname()
    text = "\n".join(lines).replace(f"{root}/ada", "~").replace(str(root), "~")
    return re.sub(rf"\b{re.escape(machine)}\b", "workstation", text)


def main():
    root = pathlib.Path(tempfile.mkdtemp(prefix="countersign-demo-"))
    try:
        ada, seconds = alone(root)
        grants(ada)
        team(root, ada)
        reachable(root, ada)
        print(f"{len(steps)} steps held; from an empty home to the first approved command: {seconds:.1f} s, 3 commands")
    finally:
        for home in root.iterdir():
            environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
            subprocess.run(["countersign", "down"], env=environment, capture_output=True, timeout=60)
        shutil.rmtree(root)
    if "--transcript" in sys.argv:
        path = pathlib.Path(sys.argv[sys.argv.index("--transcript") + 1])
        path.write_text(transcript(root), encoding="utf-8")


main()
