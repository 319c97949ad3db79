"""Keeps the vocabulary: no identifier, file or title in the words that we have left, few doc comments that say nothing.

docs/glossary.md has the words that we use. Usage: check-words.py [-v]
"""

import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
listed = subprocess.run(
    ["git", "ls-files", "-co", "--exclude-standard"], cwd=root, check=True, capture_output=True, text=True
)
files = sorted({root / name for name in listed.stdout.splitlines() if (root / name).is_file()})
faults = []

# Left for the field's own words; see docs/glossary.md for what each is called now.
LEFT = """
Tellings Listening Told tell told tells Standing standing voided holds judge Edge edges moving look_to_write
still_stands refuse_resting_on Lost Chance chance Patrol patrol Confirmed Remembered Lane lane Hold Shares Share grow
most MOST LONGEST AGAIN Asked Sockets talk TellAgain manners Refusal Looked looked
""".split()
TITLES = ["shape of the house", "holes that we filled", "what we speak"]

MAX_SHORT_DOCS = 30


def without_comments_and_strings(text):
    pattern = r'//[^\n]*|/\*.*?\*/|r#*".*?"#*|b?"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\''
    return re.sub(pattern, lambda match: "\n" * match[0].count("\n"), text, flags=re.S)


def doc_comments(text):
    """Every doc comment as one text, with the number of its first line."""
    block, start = [], 0
    for number, line in enumerate(text.splitlines() + [""], 1):
        match = re.match(r"\s*/// ?(.*)", line)
        if match and not line.lstrip().startswith("////"):
            start = start if block else number
            block.append(match[1])
        elif block:
            yield start, " ".join(block)
            block = []


short = []
for file in files:
    name = file.relative_to(root)
    if file.suffix == ".md":
        for line in file.read_text().splitlines():
            if line.startswith("#") and any(title in line.lower() for title in TITLES):
                faults.append(f"{name}: title: {line}")
    if file.stem in LEFT or any(part in LEFT for part in name.parts):
        faults.append(f"{name}: file name")
    if file.suffix != ".rs":
        continue
    text = file.read_text()
    for number, line in enumerate(without_comments_and_strings(text).splitlines(), 1):
        for word in re.findall(r"[A-Za-z_][A-Za-z0-9_]*", line):
            if word in LEFT:
                faults.append(f"{name}:{number}: identifier {word}")
    short.extend(f"{name}:{number}: {doc}" for number, doc in doc_comments(text) if len(doc.split()) <= 3)

if "-v" in sys.argv:
    print(*short, sep="\n")
print(f"{len(short)} doc comments of at most three words")
if len(short) >= MAX_SHORT_DOCS:
    faults.append(f"{len(short)} doc comments of at most three words; say why, when absent, which unit, or nothing")
for fault in faults:
    print(fault)
sys.exit(1 if faults else 0)
