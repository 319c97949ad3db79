"""Checks the documents. Each function is one rule, and returns what breaks it.

docs/README.md is the list of all documents. CONTRIBUTING.md has recipes for common changes: a file that a step links says so
itself, in a comment `CONTRIBUTING: add an endpoint, step 1`. A file that moves takes the comment with it, so what is out of
date is found from either side.
"""

import pathlib
import re
import subprocess
import sys
import tomllib

root = pathlib.Path(__file__).resolve().parent.parent
listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, check=True, capture_output=True, text=True)
names = sorted({name for name in listed.stdout.splitlines() if (root / name).is_file()})
documents = {name: (root / name).read_text() for name in names if name.endswith(".md")}
code = {
    name: (root / name).read_text()
    for name in names
    if name.startswith(("crates/", "web/", "tests/", "demo/", "fuzz/")) and name.endswith((".rs", ".ts", ".tsx", ".mjs", ".py"))
}


def prose(text):
    """A document without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)


def headings(text):
    return re.findall(r"^#+ (.+)$", prose(text), re.M)


def anchors(text):
    """The names by which a forge links the headings of a document."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings(text)}


def links(name, part=None):
    """The text, the file and the anchor of each link in a document, or in a part of it, that stays in the repository."""
    for text, target, anchor in re.findall(r"\[([^\]]*)\]\(([^)#\s]*)#?([^)\s]*)\)", part or documents[name]):
        if "://" not in target:
            path = (root / name).parent.joinpath(target).resolve() if target else root / name
            yield text, path.relative_to(root).as_posix() if path.is_relative_to(root) else target, anchor


def links_lead_somewhere():
    for name in documents:
        for _, target, anchor in links(name):
            if not (root / target).exists():
                yield f"{name}: link to {target} leads nowhere"
            elif anchor and target in documents and anchor not in anchors(documents[target]):
                yield f"{name}: {target} has no heading #{anchor}"


def what_is_cited_exists():
    rust = "\n".join(text for name, text in code.items() if name.endswith(".rs"))
    for name, text in documents.items():
        for cited in re.findall(r"`([^`\s]+)`", text):
            is_path = re.fullmatch(r"(crates|docs|schemas|fuzz|tests|\.ci)/[\w./-]+", cited)
            # What a build makes is not there before it.
            if is_path and not cited.endswith("/dist") and not (root / cited).exists():
                yield f"{name}: there is no {cited}"
            # Names with so many words are names of tests, or of metrics, which a test of their document checks.
            if re.fullmatch(r"(?!countersign_)[a-z0-9]+(_[a-z0-9]+){4,}", cited) and f" {cited}" not in rust:
                yield f"{name}: there is no test {cited}"


def every_dependency_has_a_reason():
    manifest = tomllib.loads((root / "Cargo.toml").read_text())
    for name in manifest["workspace"]["dependencies"]:
        reason = re.search(rf"^\|[^|]*`{name}`[^|]*\|", documents["docs/dependencies.md"], re.M)
        if not name.startswith("countersign-") and not reason:
            yield f"docs/dependencies.md: no line for {name}"


def every_document_is_on_a_shelf():
    shelves = {target: text for text, target, _ in links("docs/README.md")}
    records = {target for _, target, _ in links("docs/adr/README.md")}
    for name, text in documents.items():
        if name in ("README.md", "docs/README.md") or name.startswith(".github/"):
            continue
        if re.fullmatch(r"docs/adr/\d{4}-.*", name):
            if name not in records:
                yield f"docs/adr/README.md: {name} is missing"
        elif name not in shelves:
            yield f"docs/README.md: {name} stands on no shelf"
        elif headings(text) and shelves[name] != headings(text)[0]:
            yield f"docs/README.md: {name} is called “{headings(text)[0]}”, and here “{shelves[name]}”"


def titles_are_no_questions():
    for name, text in documents.items():
        for heading in headings(text):
            if heading.endswith("?"):
                yield f"{name}: “{heading}” is a question; a title has the words that one searches for"


def only_what_is_here_is_cited():
    described = {name: (root / name).read_text() for name in names if re.match(r"schemas/.*\.json$|.*/openapi\.json$", name)}
    # A client that was written from another text cites that text.
    ours = {name: text for name, text in code.items() if not name.startswith("tests/from-the-specification/")}
    for name, text in {**documents, **described, **ours}.items():
        for cited in re.finditer(r"§\s*\d[\d.]*|\b[Ss]ections?\s+\d[\d.]*|\bdecisions?\s+\d+\b|\bendpoints of \d[\d.]*", text):
            if "RFC" not in text[max(0, cited.start() - 30) : cited.start()]:
                yield f"{name}: “{cited[0]}” is of a text that is not here; link docs/protocol.md"


def recipes_and_code_name_each_other():
    linked, marked = {}, {}
    body = documents["CONTRIBUTING.md"].partition("\n## Recipes\n")[2].partition("\n## ")[0]
    for recipe in body.split("\n### ")[1:]:
        title, _, text = recipe.partition("\n")
        _, *steps = re.split(r"^(\d+)\. ", text, flags=re.M)
        if steps[::2] != [str(at + 1) for at in range(len(steps) // 2)]:
            yield f"CONTRIBUTING.md: {title}: steps {', '.join(steps[::2]) or 'are missing'}"
        for number, step in zip(steps[::2], steps[1::2]):
            linked[f"{title.lower()}, step {number}"] = {file for _, file, _ in links("CONTRIBUTING.md", step) if file in code}
    for name, text in code.items():
        for step in re.findall(r"(?://|#) CONTRIBUTING: (.+)", text):
            marked.setdefault(step, set()).add(name)
    for step in sorted(linked.keys() | marked.keys()):
        here, there = linked.get(step, set()), marked.get(step, set())
        for name in sorted(here - there):
            moved = f"; it is in {', '.join(sorted(there - here))}" if there - here else ""
            yield f"CONTRIBUTING.md: {step}: {name} has no comment “CONTRIBUTING: {step}”{moved}"
        for name in sorted(there - here):
            yield f"{name}: CONTRIBUTING.md has no {step} that links this file"


def units_are_those_of_the_packages():
    shown = re.findall(r"^```ini\n(\[Unit\].*?)^```$", documents["docs/operating.md"], re.S | re.M)
    if shown != [(root / "packaging/gateway/countersign-gateway.service").read_text()]:
        yield "docs/operating.md: the unit differs from packaging/gateway/countersign-gateway.service"


rules = [
    links_lead_somewhere,
    what_is_cited_exists,
    every_dependency_has_a_reason,
    every_document_is_on_a_shelf,
    titles_are_no_questions,
    only_what_is_here_is_cited,
    recipes_and_code_name_each_other,
    units_are_those_of_the_packages,
]
faults = [fault for rule in rules for fault in rule()]
print(f"{len(documents)} documents checked")
print(*faults, sep="\n", end="\n" if faults else "")
sys.exit(1 if faults else 0)
