"""A model that says what a script says, on a port of the loopback interface, in the four formats that hosts of agents speak.

The conversation itself says which step is next: a step has been done when its result has come back. So a host may repeat
a request, and nothing is counted twice.
"""

import dataclasses
import http.server
import json
import re
import sys
import threading

PLAN_FILE = "{{plan file}}"
"""In the arguments of a call: the file that the host wants the plan in, as its own request names it, or its folder."""
NAMED_PLAN = re.compile(r"""[^\s"'\\`<>]+/(?:plans/[a-z0-9-]+\.md|session-state/[^/]+/plan\.md)""")
NAMED_FOLDER = re.compile(r"""/[^\s"'\\`<>]+/plans(?=[/"'\\`\s])""")


@dataclasses.dataclass(frozen=True)
class Call:
    """The model calls a tool of the host. Text instead of an object is for tools that take free text; a dot ends the name of
    the group that a tool of Codex is in."""

    tool: str
    arguments: dict | str


@dataclasses.dataclass(frozen=True)
class Say:
    """The model ends its turn."""

    text: str = "done"


@dataclasses.dataclass(frozen=True)
class Request:
    """What a host has sent: the tools that it offers, the results of calls, and what a person or another agent has said."""

    path: str
    body: dict
    tools: list
    results: list
    prompts: str


def texts(value):
    """Every text in a JSON value, in order."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(inner)


def joined(value):
    return "\n".join(texts(value))


class Anthropic:
    """Messages."""

    suffix = "/v1/messages"

    @staticmethod
    def read(body):
        blocks = [block for message in body.get("messages", []) if isinstance(message["content"], list) for block in message["content"]]
        results = [joined(block.get("content")) for block in blocks if block.get("type") == "tool_result"]
        return [tool.get("name") for tool in body.get("tools", [])], results

    @staticmethod
    def prompts(body):
        said = [message["content"] for message in body.get("messages", []) if message["role"] == "user"]
        blocks = [block for content in said if isinstance(content, list) for block in content if block.get("type") == "text"]
        return joined([content for content in said if isinstance(content, str)] + blocks)

    @staticmethod
    def events(step, number, body):
        if isinstance(step, Call):
            block = {"type": "tool_use", "id": f"toolu_{number:02}", "name": step.tool, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(step.arguments)}
        else:
            block = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": step.text}
        reason = "tool_use" if isinstance(step, Call) else "end_turn"
        message = {
            "id": f"msg_{number:02}", "type": "message", "role": "assistant", "model": body.get("model"), "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        return [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]

    @classmethod
    def stream(cls, step, number, body):
        return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in cls.events(step, number, body))

    @staticmethod
    def whole(step, number, body):
        block = {"type": "text", "text": step.text} if isinstance(step, Say) else {
            "type": "tool_use", "id": f"toolu_{number:02}", "name": step.tool, "input": step.arguments,
        }
        return {
            "id": f"msg_{number:02}", "type": "message", "role": "assistant", "model": body.get("model"), "content": [block],
            "stop_reason": "tool_use" if isinstance(step, Call) else "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    @staticmethod
    def is_stream(_path, body):
        return body.get("stream")


class Responses:
    """OpenAI's Responses."""

    suffix = "/responses"

    @staticmethod
    def read(body):
        results = [joined(item.get("output")) for item in body.get("input", []) if item.get("type", "").endswith("_call_output")]
        added = [tool for item in body.get("input", []) if item.get("type") == "additional_tools" for tool in item["tools"]]
        nested = [inner for tool in added for inner in tool.get("tools", [tool])]
        return [tool.get("name") or tool.get("type") for tool in [*body.get("tools", []), *nested]], results

    @staticmethod
    def prompts(body):
        calls = ("_call", "_call_output", "additional_tools")
        return joined([item for item in body.get("input", []) if not item.get("type", "").endswith(calls)])

    @staticmethod
    def item(step, number):
        call = f"call_{number:02}"
        if isinstance(step, Say):
            content = [{"type": "output_text", "text": step.text}]
            return {"type": "message", "id": f"msg_{number:02}", "role": "assistant", "content": content}
        if isinstance(step.arguments, str):
            return {"type": "custom_tool_call", "id": f"ctc_{number:02}", "call_id": call, "name": step.tool, "input": step.arguments}
        group, _, name = step.tool.rpartition(".")
        item = {"type": "function_call", "id": f"fc_{number:02}", "call_id": call, "name": name, "arguments": json.dumps(step.arguments)}
        return {**item, "namespace": group} if group else item

    @classmethod
    def stream(cls, step, number, _body):
        response = {"id": f"resp_{number:02}"}
        usage = {
            "input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None, "total_tokens": 2,
        }
        events = [
            {"type": "response.created", "response": response},
            {"type": "response.output_item.done", "output_index": 0, "item": cls.item(step, number)},
            {"type": "response.completed", "response": {**response, "usage": usage}},
        ]
        return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)

    @staticmethod
    def is_stream(_path, _body):
        return True


class Gemini:
    """Gemini's generateContent."""

    suffix = ":streamGenerateContent"

    @staticmethod
    def read(body):
        parts = [part for content in body.get("contents", []) for part in content.get("parts", [])]
        results = [joined(part["functionResponse"].get("response")) for part in parts if "functionResponse" in part]
        offered = [function["name"] for tool in body.get("tools", []) for function in tool.get("functionDeclarations", [])]
        return offered, results

    @staticmethod
    def prompts(body):
        parts = [part for content in body.get("contents", []) if content.get("role") == "user" for part in content["parts"]]
        return joined([part["text"] for part in parts if "text" in part])

    @staticmethod
    def whole(step, _number, _body):
        part = {"text": step.text} if isinstance(step, Say) else {"functionCall": {"name": step.tool, "args": step.arguments}}
        return {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
            "modelVersion": "scripted",
        }

    @classmethod
    def stream(cls, step, number, body):
        return f"data: {json.dumps(cls.whole(step, number, body))}\r\n\r\n"

    @staticmethod
    def is_stream(path, _body):
        return path.endswith(":streamGenerateContent")


class Chat:
    """OpenAI's chat completions."""

    suffix = "/chat/completions"

    @staticmethod
    def read(body):
        results = [joined(message.get("content")) for message in body.get("messages", []) if message.get("role") == "tool"]
        return [tool["function"]["name"] for tool in body.get("tools") or []], results

    @staticmethod
    def prompts(body):
        return joined([message.get("content") for message in body.get("messages", []) if message.get("role") == "user"])

    @staticmethod
    def message(step, number):
        if isinstance(step, Say):
            return {"role": "assistant", "content": step.text}
        function = {"name": step.tool, "arguments": json.dumps(step.arguments)}
        call = {"index": 0, "id": f"call_{number:02}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    @classmethod
    def answer(cls, step, number, body, kind, **parts):
        reason = "tool_calls" if isinstance(step, Call) else "stop"
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        base = {"id": f"chat_{number:02}", "object": kind, "created": 1, "model": body.get("model")}
        return {**base, "choices": [{"index": 0, "finish_reason": reason, **parts}], "usage": usage}

    @classmethod
    def whole(cls, step, number, body):
        return cls.answer(step, number, body, "chat.completion", message=cls.message(step, number))

    @classmethod
    def stream(cls, step, number, body):
        chunk = "chat.completion.chunk"
        first = cls.answer(step, number, body, chunk, delta=cls.message(step, number), finish_reason=None)
        last = cls.answer(step, number, body, chunk, delta={})
        return f"data: {json.dumps(first)}\n\ndata: {json.dumps(last)}\n\ndata: [DONE]\n\n"

    @staticmethod
    def is_stream(_path, body):
        return body.get("stream")


FORMATS = (Anthropic, Responses, Gemini, Chat)


class Server(http.server.ThreadingHTTPServer):
    """A host that is stopped takes its connections with it; that is no fault here."""

    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Model:
    """Plays the steps to whoever asks. What the hosts sent stays readable."""

    def __init__(self, steps, review=Say("no opinion")):
        self.steps, self.review, self.requests = list(steps), review, []
        self.branches = {}
        """The steps of a conversation of its own, by words that a person, or an agent for its subagent, has opened it with."""
        self.server = Server(("127.0.0.1", 0), self._handler())
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @property
    def results(self):
        """What came back for each call, as the newest request has it."""
        return max((request.results for request in self.requests), key=len, default=[])

    @property
    def offered(self):
        """The tools of the host."""
        return max((request.tools for request in self.requests), key=len, default=[])

    def next_step(self, path, body, raw):
        """Says what comes next in a conversation. A request without tools is the host's own: a title, a summary."""
        kind = next(it for it in FORMATS if path.endswith(it.suffix) or it is Gemini and ":generateContent" in path)
        tools, results = kind.read(body)
        prompts = kind.prompts(body)
        self.requests.append(Request(path, body, tools, results, prompts))
        if (body.get("text") or {}).get("format", {}).get("type") == "json_schema":
            return kind, self.review, len(results)
        steps = next((steps for words, steps in self.branches.items() if words in prompts), self.steps)
        step = steps[len(results)] if tools and len(results) < len(steps) else Say()
        named = NAMED_PLAN.findall(raw) or [f"{folder}/plan.md" for folder in NAMED_FOLDER.findall(raw)]
        if isinstance(step, Call) and isinstance(step.arguments, dict) and named:
            step = Call(step.tool, json.loads(json.dumps(step.arguments).replace(PLAN_FILE, named[-1])))
        return kind, step, len(results)

    def _handler(model):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def send(self, text, kind="application/json", status=200):
                data = text.encode()
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def do_GET(self):
                self.send('{"object": "list", "data": [], "models": []}')

            do_HEAD = do_GET

            def read(self):
                if "chunked" not in self.headers.get("transfer-encoding", ""):
                    return self.rfile.read(int(self.headers.get("content-length", 0)))
                data = b""
                while size := int(self.rfile.readline(), 16):
                    data += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return data

            def do_POST(self):
                raw = self.read().decode()
                path = self.path.split("?")[0]
                if path.endswith(("/count_tokens", ":countTokens")):
                    return self.send('{"input_tokens": 10, "totalTokens": 10}')
                if not path.endswith(tuple(it.suffix for it in FORMATS)) and not path.endswith(":generateContent"):
                    return self.send("{}", status=404)
                body = json.loads(raw)
                kind, step, number = model.next_step(path, body, raw)
                if kind.is_stream(path, body):
                    return self.send(kind.stream(step, number, body), "text/event-stream")
                return self.send(json.dumps(kind.whole(step, number, body)))

        return Handler
