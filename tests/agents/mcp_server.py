"""A server of the Model Context Protocol on standard input and output, with one tool: it keeps a note in a file."""

import json
import sys

TOOL = {
    "name": "keep", "description": "Keeps a note.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def answer(request):
    method = request["method"]
    if method == "initialize":
        version = request["params"]["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        with open(sys.argv[1], "a") as notes:
            notes.write(request["params"]["arguments"]["text"])
        return {"content": [{"type": "text", "text": "kept"}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}), flush=True)
