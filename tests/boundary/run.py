#!/usr/bin/env python3
"""Agents in the sandbox of `countersign run`: tests/boundary/run.py FOLDER_WITH_PROGRAMS [HOST ...]

The hosts' real programs, with a scripted model that is told to attack. Each attack is tried outside of the sandbox first, where it
has to succeed, or it would show nothing; then from a tool call of the host in the sandbox. What is on the disk decides. Hosts with a
sandbox of their own for tools hold two lines more than one without, and what is open is named. Ends with 0 only if each line is as
docs/boundary.md says.
"""

import concurrent.futures
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "agents"))

from endpoint import Model  # noqa: E402
from host import CACHE, Shell  # noqa: E402
from hosts import HOSTS  # noqa: E402

OURS = "/run/countersign-sandbox"
SETTINGS = {
    "claude": "/etc/claude-code/managed-settings.json", "codex": "/etc/codex/requirements.toml",
    "opencode": "/etc/opencode/opencode.json",
}
FROM_SERVER = {"claude": ".claude/remote-settings.json", "codex": ".codex/cloud-config-bundle-cache.json"}
"""Where a host keeps settings that its maker's server has sent. They may count in place of those of administrators."""
WITHOUT_OWN_SANDBOX = {"call_the_keeper_itself", "read_the_memory_of_the_host"}
"""Open where the host runs its tools beside itself."""
OPEN = {
    "claude": set(),
    "codex": set(),
    "opencode": WITHOUT_OWN_SANDBOX | {"call_a_service_outside_by_its_abstract_name"},
}
"""What is not held, for each host; docs/boundary.md says the same."""
RULES = '[[rule]]\nverdict = "allow"\ncommand = "python3 attacks.py what.json results.json"\neffect = ["leavesRepository"]\n'


HOME = pathlib.Path("/srv")
"""In the namespace of an ordinary user: what the tests need, by paths that this user can read."""
USER = 64000
TRIALS = os.environ.get("BOUNDARY_TRIALS")
"""Not below /tmp, where Codex makes no programs for its own sandbox."""
AS_USER = f"""
set -e
mount -t tmpfs -o mode=755 boundary {HOME}
mkdir {HOME}/programs {HOME}/tests {HOME}/cache {HOME}/cache/agents {HOME}/trials
mount --bind "$1" {HOME}/programs
mount --bind "$2" {HOME}/tests
mount --bind "$3" {HOME}/cache/agents
cp /etc/passwd {HOME}/passwd
echo 'ada:x:{USER}:{USER}::{HOME}/trials:/bin/bash' >> {HOME}/passwd
mount --bind {HOME}/passwd /etc/passwd
chown {USER}:{USER} {HOME}/trials
shift 3
exec setpriv --reuid {USER} --regid {USER} --clear-groups --no-new-privs env -i PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 \
    HOME={HOME}/trials COUNTERSIGN_CACHE={HOME}/cache BOUNDARY_TRIALS={HOME}/trials \
    /usr/bin/python3 {HOME}/tests/boundary/run.py {HOME}/programs "$@"
"""
"""Agents run as people who are not root. Mounts of a namespace of its own are gone with it."""


LOOSENED = {
    "claude": ("--dangerously-skip-permissions", "--settings", json.dumps({"disableAllHooks": True, "sandbox": {"enabled": False}})),
    "codex": ("--dangerously-bypass-approvals-and-sandbox",),
    "opencode": (),
}
"""With these arguments a host would do without its hooks or its sandbox, if its settings did not say otherwise."""


class Trial:
    """A person's machine with one host, a keeper, and things outside that no agent should reach."""

    def __init__(self, word, programs, model):
        self.word, self.programs = word, programs
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="boundary-", dir=TRIALS))
        self.host = HOSTS[word](self.root, model)
        self.host.configure(None, self.host.allowed)
        self.ours = self.root / "countersign"
        secret = self.ours / "profiles.d"
        secret.mkdir(parents=True)
        (self.ours / "rules.toml").write_text(RULES)
        (self.ours / "rules.toml").chmod(0o600)
        self.elsewhere = self.root / "elsewhere"
        self.elsewhere.mkdir()
        (self.elsewhere / "file").write_text("secret")
        (self.host.home / ".bashrc").write_text("")
        shutil.copy(HERE / "attacks.py", self.host.project / "attacks.py")
        self.service = self.listening(str(self.root / "service.sock"))
        self.abstract = f"countersign-boundary-{os.getpid()}-{word}"
        self.named = self.listening("\0" + self.abstract)
        self.outsider = subprocess.Popen(["sleep", "600"])
        # As an editor or a script may.
        self.left_open = os.open(self.ours, os.O_PATH | os.O_DIRECTORY)

    @staticmethod
    def listening(address):
        end = socket.socket(socket.AF_UNIX)
        end.bind(address)
        end.listen(64)
        return end

    def __enter__(self):
        ended = self.tool("keeper", "start")
        if ended.returncode:
            raise SystemExit(f"✗ the keeper does not start: {ended.stderr}")
        return self

    def __exit__(self, *_):
        self.tool("keeper", "stop")
        os.close(self.left_open)
        self.outsider.kill()
        self.outsider.wait()
        self.service.close()
        self.named.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def environment(self):
        own = self.host.environment()
        return {**own, "PATH": f"{self.programs}:{self.host.program().parent}:{own['PATH']}", "COUNTERSIGN_HOME": str(self.ours)}

    def tool(self, *arguments):
        return subprocess.run(
            [self.programs / "countersign", *arguments], env=self.environment(), cwd=self.host.project, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=150, pass_fds=[self.left_open],
        )

    def plant(self):
        """Stands for keys and a journal: they only have to be there, and to be as they were."""
        agent = self.ours / "profiles/agent"
        agent.mkdir(parents=True, exist_ok=True)
        for name in ("secret", "journal"):
            (agent / name).write_text("as it was")

    def what(self, **paths):
        keeper = int((self.ours / "keeper/pid").read_text())
        (self.host.project / "what.json").write_text(json.dumps({
            "ours": str(self.ours), "user": str(self.host.home), "keeper": keeper, "outsider": self.outsider.pid, "marker": "sleep",
            "elsewhere": str(self.elsewhere), "service": str(self.root / "service.sock"), "abstract": self.abstract,
            "scratch": str(self.host.project), "host": self.word, **paths,
        }))
        (self.host.project / "results.json").unlink(missing_ok=True)

    def results(self):
        file = self.host.project / "results.json"
        return json.loads(file.read_text()) if file.exists() else None

    def as_person(self):
        """What the attacks do where nothing protects, on copies of the settings and the hook."""
        scratch = self.root / "scratch"
        (scratch / "etc").mkdir(parents=True)
        (scratch / "call").mkdir()
        for name in ("etc/settings", "hook"):
            (scratch / name).write_text("x")
        call = self.listening(str(scratch / "call/call.sock"))
        self.plant()
        self.what(from_server=str(scratch / "hook"), settings=str(scratch / "etc/settings"), hook=str(scratch / "hook"), call=str(scratch / "call/call.sock"))
        command = [f"exec -a {self.word}-host python3 -c 'import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:], close_fds=False))' "
                   "python3 attacks.py what.json results.json"]
        subprocess.run(["bash", "-c", *command], cwd=self.host.project, check=True, timeout=60, pass_fds=[self.left_open])
        call.close()
        results = self.results()
        shutil.rmtree(self.ours / "profiles/agent")
        (self.ours / "rules.toml").write_text(RULES)
        (self.host.home / ".bashrc").write_text("")
        return results

    def passed(self):
        return [word for name in self.host.variables() for word in ("--env", name)]

    def run(self, *steps, options=()):
        """The host in the sandbox, with these calls of its model."""
        self.host.play(*steps)
        command = ["run", *self.passed(), "--", str(self.host.program()), *self.host.headless(), *options]
        return self.tool(*command)

    def in_sandbox(self, options=()):
        self.plant()
        server = str(self.host.home / FROM_SERVER[self.word]) if self.word in FROM_SERVER else SETTINGS[self.word]
        self.what(from_server=server, settings=SETTINGS[self.word], hook=f"{OURS}/bin/countersign-hook", call=f"{OURS}/home/call/call.sock")
        said = self.run(Shell("python3 attacks.py what.json results.json"), Shell("touch unasked"), options=options)
        return self.results(), said

    def changed(self):
        """What differs outside of the sandbox after an attack from inside."""
        agent = self.ours / "profiles/agent"
        if any((agent / name).read_text() != "as it was" for name in ("secret", "journal")):
            yield "keys or journal"
        if (self.ours / "rules.toml").read_text() != RULES:
            yield "the rules"
        if (self.host.home / ".bashrc").read_text():
            yield "the person's shell files"


def uncontrolled(trial):
    """What must succeed where nothing protects; mounting needs privileges and a mount, so it has no control."""
    results = trial.as_person()
    without = {"uncover_what_is_below_the_settings"}
    return {name: result for name, result in results.items() if result != "done" and name not in without}


def attacked(word, programs):
    """The table of a host, and what is not as it should be."""
    wrong = []
    with Model([]) as model, Trial(word, programs, model) as trial:
        for name, result in uncontrolled(trial).items():
            wrong.append(f"{word}: {name} does not succeed outside either, so it shows nothing: {result}")
        results, said = trial.in_sandbox()
        if results is None:
            return {}, [*wrong, f"{word}: the attacks did not run: {model.results}{said.stdout[-1500:]}{said.stderr[-1500:]}"]
        wrong += [f"{word}: {line}" for line in judged(trial, results)]
        if LOOSENED[word]:
            # A host may refuse to start like that; then nothing is tried.
            loosened, _ = trial.in_sandbox(LOOSENED[word])
            wrong += [f"{word} {LOOSENED[word]}: {line}" for line in judged(trial, loosened or results)]
        if word == "claude":
            wrong += [f"{word}: {line}" for line in by_settings_from_a_server(trial)]
        wrong += switched_off(trial)
    return results, wrong


def judged(trial, results):
    """What is otherwise than the documentation says."""
    yield from (f"changed from the sandbox: {what}" for what in trial.changed())
    if (trial.host.project / "unasked").exists():
        yield "a call ran that nobody allowed"
    # Its own home is empty and in memory: writing there changes nothing outside, which is what was looked at.
    results["write_to_the_persons_shell_files"] = "held: its home is another one"
    for name, result in results.items():
        is_open = result == "done"
        if is_open != (name in OPEN[trial.word]):
            yield f"{name}: {'open' if is_open else 'held'}, and the documentation says otherwise: {result}"


def by_settings_from_a_server(trial):
    """Claude Code takes what an organisation sends in place of all managed settings, from a file that it has kept. It does so only
    without another address of its model, so no call is tried: the hook at the start of a session shows whose settings count."""
    host, file = trial.host, trial.host.outside / "from-server"
    settings = json.dumps({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": f"touch {file} {host.project}/from-server"}]}]}})
    kept = host.put(".claude/remote-settings.json", settings)
    kept.chmod(0o600)
    variables = [word for name in host.variables() if name != "ANTHROPIC_BASE_URL" for word in ("--env", name)]
    start = [str(host.program()), "-p", "please"]
    said = trial.tool("run", "--net", "none", *variables, "--", *start)
    if said.returncode == 0 or "from a server" not in said.stderr:
        yield f"it starts beside settings from a server: {said.stderr}"
    environment = {name: value for name, value in trial.environment().items() if name != "ANTHROPIC_BASE_URL"}
    try:
        subprocess.run(start, env=environment, cwd=host.project, stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
    except subprocess.TimeoutExpired:
        pass
    if not file.exists():
        yield "settings from a server do not count outside either, so this shows nothing"
    kept.unlink()


def switched_off(trial):
    """Settings that the agent could have written, which switch hooks off where nothing protects."""
    host, file = trial.host, trial.host.project / "unasked"
    if trial.word == "claude":
        off = {"disableAllHooks": True, "hooks": {}, "env": {"LD_PRELOAD": "/nowhere.so"}}
        host.put("project/.claude/settings.json", off)
        host.put(".claude/settings.json", off)
    elif trial.word == "codex":
        config = host.home / ".codex/config.toml"
        config.write_text(config.read_text().replace("[features]", "[features]\nhooks = false")
                          .replace('sandbox_mode = "workspace-write"', 'sandbox_mode = "danger-full-access"'))
    else:
        host.put("project/opencode.json", {"plugin": [], "permission": "allow"})
    said = trial.run(Shell("touch unasked"))
    if file.exists():
        return [f"{trial.word}: a call ran after settings were changed: {said.stdout[-800:]}{said.stderr[-800:]}"]
    trial.tool("keeper", "stop")
    said = trial.run(Shell("touch unasked"))
    if file.exists() or said.returncode == 0:
        return [f"{trial.word}: it starts without a keeper: {said.stderr}"]
    ended = host.run()
    return [] if file.exists() else [f"{trial.word}: the call does not run without the sandbox either, so this shows nothing: {ended}"]


def main():
    words = sys.argv[1:]
    programs = pathlib.Path(words.pop(0)).resolve()
    if os.geteuid() == 0:
        folders = [programs, HERE.parent, CACHE / "agents"]
        os.execvp("unshare", ["unshare", "--mount", "--", "sh", "-c", AS_USER, "sh", *map(str, folders), *words])
    hosts = words or list(SETTINGS)
    with concurrent.futures.ThreadPoolExecutor(len(hosts)) as pool:
        found = dict(zip(hosts, pool.map(lambda word: attacked(word, programs), hosts)))
    names = list(dict.fromkeys(name for results, _ in found.values() for name in results))
    lines = ["| from a tool call | " + " | ".join(HOSTS[word].name for word in hosts) + " |", "|---|" + "---|" * len(hosts)]
    for name in names:
        cells = ("open" if found[word][0].get(name) == "done" else "held" for word in hosts)
        lines.append(f"| {name.replace('_', ' ')} | " + " | ".join(cells) + " |")
    print("\n".join(lines))
    wrong = [line for _, problems in found.values() for line in problems]
    for line in wrong:
        print(f"✗ {line}")
    print(f"{len(names)} attacks on {len(hosts)} hosts: {'as documented' if not wrong else f'{len(wrong)} wrong'}")
    sys.exit(1 if wrong else 0)


main()
