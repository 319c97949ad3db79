"""Reads pairs of lines, a document and our canonical form of it, and compares with PyPI's rfc8785.

Usage: canonical_documents COUNT | python3 compare.py COUNT
"""

import json
import sys

import rfc8785


def main() -> int:
    expected_count = int(sys.argv[1])
    compared = disagreed = 0
    lines = sys.stdin.buffer
    while document := lines.readline():
        ours = lines.readline()[:-1]
        theirs = rfc8785.dumps(json.loads(document))
        compared += 1
        if ours != theirs:
            disagreed += 1
            print(f"disagree on {document!r}\n  ours   {ours!r}\n  theirs {theirs!r}", file=sys.stderr)
        if compared % 1_000_000 == 0:
            print(f"{compared} compared, {disagreed} disagree", file=sys.stderr)
    print(f"canonical form against rfc8785 (Python): {compared} compared, {disagreed} disagree")
    return 0 if compared == expected_count and disagreed == 0 else 1


sys.exit(main())
