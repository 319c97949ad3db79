"""The commands that a document shows, for the checks that run them.

Commands are in ```console blocks, after "$ ", and in ```sh blocks, one in each line. A block that can't be run says why in a comment
before it, which readers of the page don't see: <!-- ci: not run, it needs a phone -->
"""

import re


class Block:
    def __init__(self, heading, commands, reason):
        self.heading, self.commands, self.reason = heading, commands, reason


def of_console(text):
    return [line[2:] for line in text.splitlines() if line.startswith("$ ")]


def of_shell(text):
    """A line each; one that ends with a backslash goes on."""
    lines = text.replace("\\\n", "").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]


def blocks(text):
    """All blocks of commands of a document, those that are not run with their reason."""
    fence = re.compile(r"^(#+ [^\n]+)$|(?:^ *<!-- ci: (not run, [^>]+?) -->\n\s*)?^( *)```(console|sh)\n(.*?)^ *```$", re.S | re.M)
    heading, found = "", []
    # What other languages show may have lines that look like headings.
    text = re.sub(r"^( *)```(?!console|sh\n)\w+\n.*?^ *```$", "", text, flags=re.S | re.M)
    for match in fence.finditer(text):
        if match[1]:
            heading = match[1].lstrip("# ")
        else:
            body = re.sub(rf"^{match[3]}", "", match[5], flags=re.M)
            found.append(Block(heading, (of_console if match[4] == "console" else of_shell)(body), match[2]))
    return found


def to_run(text):
    return [block.commands for block in blocks(text) if block.reason is None]
