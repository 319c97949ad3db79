"""Checks the documents: links, paths and cited tests exist, every dependency has its line of reason."""

import pathlib
import re
import subprocess
import sys
import tomllib

root = pathlib.Path(__file__).resolve().parent.parent
tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, check=True, capture_output=True, text=True)
faults = []

documents = [root / name for name in tracked.stdout.splitlines() if name.endswith(".md")]
for document in documents:
    for target in re.findall(r"\]\(([^)#\s]+)", document.read_text()):
        if "://" not in target and not (document.parent / target).exists():
            faults.append(f"{document.relative_to(root)}: link to {target} leads nowhere")

code = "\n".join(
    (root / name).read_text() for name in tracked.stdout.splitlines() if name.endswith(".rs") and (root / name).is_file()
)
for document in documents:
    for cited in re.findall(r"`([^`\s]+)`", document.read_text()):
        name = document.relative_to(root)
        if re.fullmatch(r"(crates|docs|schemas|fuzz|tests|\.ci)/[\w./-]+", cited) and not (root / cited).exists():
            faults.append(f"{name}: there is no {cited}")
        # Names with so many words are names of tests, or of metrics, which a test of their document checks.
        if re.fullmatch(r"(?!countersign_)[a-z0-9]+(_[a-z0-9]+){4,}", cited) and f" {cited}" not in code:
            faults.append(f"{name}: there is no test {cited}")

reasons = (root / "docs/dependencies.md").read_text()
manifest = tomllib.loads((root / "Cargo.toml").read_text())
for name in manifest["workspace"]["dependencies"]:
    if not name.startswith("countersign-") and not re.search(rf"^\|[^|]*`{name}`[^|]*\|", reasons, re.M):
        faults.append(f"docs/dependencies.md: no line for {name}")

print(f"{len(documents)} documents checked")
for fault in faults:
    print(fault)
sys.exit(1 if faults else 0)
