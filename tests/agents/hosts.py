"""The programs that host agents: their settings, and their words for what an agent wants to do."""

import json
import re

from endpoint import PLAN_FILE, Call
from host import VERSIONS, Host


class Claude(Host):
    word = "claude"
    plan_begins = "has approved your plan"
    gates = ("PreToolUse",)
    name = "Claude Code"
    hooks = ".claude/settings.json"
    dialogs = {"manually approve edits": "2", "Do you want to": "1", "Enter to select": "1"}
    tools = {"Bash": "shell", "Write": "write", "Edit": "edit", "Read": "read", "ExitPlanMode": "plan", "AskUserQuestion": "question",
             "WebFetch": "fetch", "mcp__notes__keep": "mcp", "Agent": "delegate"}
    events = ("PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionStart", "SessionEnd",
              "Stop", "SubagentStop", "Notification", "PreCompact", "ConfigChange", "PermissionDenied", "SubagentStart", "StopFailure",
              "Elicitation")

    def variables(self):
        return {
            "ANTHROPIC_BASE_URL": self.model.url, "ANTHROPIC_API_KEY": "sk-ant-test", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
        }

    def configure(self, hook=None, allow=(), server=()):
        self.allow, settings = allow, {}
        if hook:
            settings["hooks"] = {
                event: [{"matcher": "*", "hooks": [{"type": "command", "command": hook.line(event), "timeout": hook.timeout}]}]
                for event in hook.events
            }
        self.put(".claude/settings.json", settings)
        self.put(".claude.json", {
            "hasCompletedOnboarding": True, "theme": "dark",
            "customApiKeyResponses": {"approved": ["sk-ant-test"], "rejected": []},
            "projects": {str(self.project): {"hasTrustDialogAccepted": True}},
            "mcpServers": {"notes": {"command": server[0], "args": list(server[1:])}} if server else {},
        })

    def headless(self):
        allowed = ["--allowedTools", *self.allow] if self.allow else []
        return ["-p", "please", "--permission-mode", "default", "--output-format", "json", *allowed]

    def interactive(self, mode=None):
        return ["--permission-mode", mode or "default", "please"]

    allowed = ("Bash", "Write", "Edit", "Read")

    def shell(self, step):
        return [Call("Bash", {"command": step.command, "description": step.reason})]

    def write(self, step):
        return [Call("Write", {"file_path": str(self.project / step.path), "content": step.text})]

    def edit(self, step):
        return [Call("Edit", {"file_path": str(self.project / step.path), "old_string": step.old, "new_string": step.new})]

    def read(self, step):
        return [Call("Read", {"file_path": str(self.project / step.path)})]

    def plan(self, step):
        return [Call("Write", {"file_path": PLAN_FILE, "content": step.text}), Call("ExitPlanMode", {})]

    def delegate(self, step):
        task = {"description": "go on", "prompt": step.prompt, "subagent_type": "general-purpose", "run_in_background": False}
        return [Call("Agent", task)]

    def question(self, step):
        options = [{"label": choice, "description": choice} for choice in step.choices]
        question = {"question": step.text, "header": "Choice", "options": options, "multiSelect": False}
        return [Call("AskUserQuestion", {"questions": [question]})]


class Codex(Host):
    word = "codex"
    gates = ("PreToolUse",)
    name = "Codex CLI"
    hooks = ".codex/hooks.json"
    dialogs = {"Would you like to": "y"}
    tools = {"Bash": "shell", "apply_patch": "edit", "update_plan": "plan", "request_user_input": "question",
             "mcp__notes__keep": "mcp", "collaborationspawn_agent": "delegate", "collaborationwait_agent": "wait"}
    events = ("PreToolUse", "PermissionRequest", "PostToolUse", "PreCompact", "PostCompact", "SessionStart", "SessionEnd",
              "UserPromptSubmit", "SubagentStart", "SubagentStop", "Stop")
    allowed = ("workspace",)

    def variables(self):
        return {"SCRIPTED_KEY": "x"}

    def configure(self, hook=None, allow=(), server=()):
        self.put(".codex/config.toml", f"""
model = "gpt-6-sol"
model_provider = "scripted"
approval_policy = "on-request"
sandbox_mode = "{"workspace-write" if allow else "read-only"}"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "{self.model.url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
[sandbox_workspace_write]
exclude_slash_tmp = true
exclude_tmpdir_env_var = true
[features]
daemon_auto_start = false
[projects."{self.project}"]
trust_level = "trusted"
{f"[mcp_servers.notes]{chr(10)}command = {json.dumps(server[0])}{chr(10)}args = {json.dumps(list(server[1:]))}" if server else ""}
""")
        self.hook_file().unlink(missing_ok=True)
        if hook:
            self.put(".codex/hooks.json", {"hooks": {
                event: [{"hooks": [{"type": "command", "command": hook.line(event), "timeout": hook.timeout}]}] for event in hook.events
            }})

    def headless(self):
        return ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "--json", "please"]

    def interactive(self, mode=None):
        return ["--dangerously-bypass-hook-trust", "please"]

    def subject(self, event, given):
        if given.get("tool_name") != "apply_patch":
            return super().subject(event, given)
        marks = re.findall(r"^\*\*\* (Add|Update|Delete|Move)", given["tool_input"]["command"], re.M)
        kinds = {"Add": "write", "Update": "edit", "Delete": "delete", "Move": "move"}
        return kinds[marks[-1]] if len(marks) == 1 or marks[-1] == "Move" else "several-files"

    def shell(self, step):
        return [Call("exec_command", {"cmd": step.command})]

    def escalated(self, step):
        """A command that asks to run outside of the sandbox."""
        return [Call("exec_command", {"cmd": step.command, "sandbox_permissions": "require_escalated", "justification": step.reason})]

    def write(self, step):
        lines = "".join(f"+{line}\n" for line in step.text.splitlines())
        return [Call("apply_patch", f"*** Begin Patch\n*** Add File: {step.path}\n{lines}*** End Patch\n")]

    def edit(self, step):
        return [Call("apply_patch", f"*** Begin Patch\n*** Update File: {step.path}\n@@\n-{step.old}\n+{step.new}\n*** End Patch\n")]

    def read(self, step):
        return [Call("exec_command", {"cmd": f"cat {step.path}"})]

    def plan(self, step):
        steps = [{"step": line, "status": "pending"} for line in step.text.splitlines()]
        return [Call("update_plan", {"plan": steps})]

    def delegate(self, step):
        task = {"task_name": "go_on", "message": step.prompt, "fork_turns": "none"}
        return [Call("collaboration.spawn_agent", task), Call("collaboration.wait_agent", {"timeout_ms": 10000})]

    def question(self, step):
        options = [{"label": choice, "description": choice} for choice in step.choices]
        return [Call("request_user_input", {"questions": [{"id": "q", "header": "Choice", "question": step.text, "options": options}]})]


class Gemini(Host):
    word = "gemini"
    plan_begins = "Plan approved"
    gates = ("BeforeTool",)
    name = "Gemini CLI"
    hooks = ".gemini/settings.json"
    turn_end = "AfterAgent"
    dialogs = {"Allow execution": "1", "Apply this change": "1", "Enter to select": "Enter", "Allow once": "1", "Yes,": "1"}
    tools = {
        "run_shell_command": "shell", "write_file": "write", "replace": "edit", "read_file": "read", "enter_plan_mode": "plan-begins",
        "exit_plan_mode": "plan", "ask_user": "question", "grep_search": "search", "web_fetch": "fetch", "mcp_notes_keep": "mcp",
        "invoke_agent": "delegate",
    }
    events = ("BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent", "SessionStart", "SessionEnd", "PreCompress", "Notification")
    allowed = ("run_shell_command", "write_file", "replace", "read_file")

    def variables(self):
        return {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": self.model.url}

    def configure(self, hook=None, allow=(), server=()):
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
            "privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False},
        }
        if hook:
            settings["hooks"] = {
                event: [{"matcher": "*", "hooks": [
                    {"type": "command", "name": "countersign", "command": hook.line(event), "timeout": hook.timeout * 1000}]}]
                for event in hook.events
            }
        if server:
            settings["mcpServers"] = {"notes": {"command": server[0], "args": list(server[1:]), "trust": True}}
        self.put(".gemini/settings.json", settings)
        policy = self.home / ".gemini/policies/allowed.toml"
        policy.unlink(missing_ok=True)
        if allow:
            names = ", ".join(f'"{name}"' for name in allow)
            rule = f'[[rule]]\ntoolName = [{names}]\ndecision = "allow"\npriority = 100\nallowRedirection = true\n'
            self.put(".gemini/policies/allowed.toml", rule)

    def subject(self, event, given):
        return given["details"]["type"] if event == "Notification" else super().subject(event, given)

    def headless(self):
        return ["-m", "gemini-2.5-flash", "-p", "please", "-o", "json"]

    def interactive(self, mode=None):
        return ["-m", "gemini-2.5-flash", *(["--approval-mode", mode] if mode else []), "-i", "please"]

    def shell(self, step):
        return [Call("run_shell_command", {"command": step.command, "description": step.reason})]

    def write(self, step):
        return [Call("write_file", {"file_path": str(self.project / step.path), "content": step.text})]

    def edit(self, step):
        return [Call("replace", {
            "file_path": str(self.project / step.path), "instruction": "change it", "old_string": step.old, "new_string": step.new})]

    def read(self, step):
        return [Call("read_file", {"file_path": str(self.project / step.path)})]

    def plan(self, step):
        return [Call("enter_plan_mode", {"reason": "plan first"}), Call("write_file", {"file_path": PLAN_FILE, "content": step.text}),
                Call("exit_plan_mode", {"plan_filename": "plan.md"})]

    def delegate(self, step):
        return [Call("invoke_agent", {"agent_name": "generalist", "prompt": step.prompt})]

    def question(self, step):
        options = [{"label": choice, "description": choice} for choice in step.choices]
        return [Call("ask_user", {"questions": [{"question": step.text, "header": "Choice", "type": "choice", "options": options}]})]


class Opencode(Host):
    word = "opencode"
    gates = ()
    name = "OpenCode"
    hooks = ".config/opencode/plugins/hook.js"
    turn_end = "session.idle"
    dialogs = {"Permission required": "Enter", "enter confirm": "Enter", "enter submit": "Enter"}
    tools = {"bash": "shell", "write": "write", "edit": "edit", "read": "read", "question": "question", "plan_exit": "plan",
             "grep": "search", "webfetch": "fetch", "notes_keep": "mcp", "task": "delegate"}
    events = ()
    allowed = ("bash", "edit", "read")

    def variables(self):
        return {
            "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        }

    def configure(self, hook=None, allow=(), server=()):
        limit = {"context": 100000, "output": 4000}
        self.put(".config/opencode/opencode.json", {
            "autoupdate": False, "share": "disabled", "model": "scripted/m1", "small_model": "scripted/m1",
            "enabled_providers": ["scripted"],
            "permission": {name: "allow" if name in allow else "ask" for name in self.allowed},
            "provider": {"scripted": {
                "npm": "@ai-sdk/openai-compatible", "name": "scripted",
                "options": {"baseURL": f"{self.model.url}/v1", "apiKey": "x"}, "models": {"m1": {"name": "m1", "limit": limit}},
            }},
            "mcp": {"notes": {"type": "local", "command": list(server)}} if server else {},
        })
        self.hook_file().unlink(missing_ok=True)
        if hook:
            self.put(".config/opencode/plugins/hook.js", hook.plugin)
        # Without these, it fetches the types for plugins from npm as soon as there is a plugin.
        types = {"dependencies": {"@opencode-ai/plugin": VERSIONS[self.word]["version"]}}
        (self.home / ".config/opencode/node_modules").mkdir(exist_ok=True)
        self.put(".config/opencode/package.json", types)
        self.put(".config/opencode/package-lock.json", {"lockfileVersion": 3, "packages": {"": types}})

    def subject(self, event, given):
        properties = given.get("properties", {})
        tool = given.get("input", {}).get("tool") or properties.get("permission")
        arguments = given.get("output", {}).get("args", {}) if event == "tool.execute.before" else {}
        return self.purpose(tool, arguments) if tool else "question" if event.startswith("question") else "turn"

    def headless(self):
        return ["run", "please"]

    def interactive(self, mode=None):
        return [*(["--agent", mode] if mode else []), "--prompt", "please"]

    def shell(self, step):
        return [Call("bash", {"command": step.command, "description": step.reason})]

    def write(self, step):
        return [Call("write", {"filePath": str(self.project / step.path), "content": step.text})]

    def edit(self, step):
        return [Call("edit", {"filePath": str(self.project / step.path), "oldString": step.old, "newString": step.new})]

    def read(self, step):
        return [Call("read", {"filePath": str(self.project / step.path)})]

    def delegate(self, step):
        return [Call("task", {"description": "go on", "prompt": step.prompt, "subagent_type": "general"})]

    def question(self, step):
        options = [{"label": choice, "description": choice} for choice in step.choices]
        return [Call("question", {"questions": [{"question": step.text, "header": "Choice", "options": options}]})]

    def plan(self, step):
        return [Call("plan_exit", {})]


class Copilot(Host):
    word = "copilot"
    plan_begins = "Plan approved"
    gates = ("preToolUse",)
    name = "Copilot CLI"
    hooks = ".copilot/hooks/countersign.json"
    turn_end = "agentStop"
    dialogs = {"Do you want to": "1", "enter accept": "Enter"}
    tools = {
        "bash": "shell", "create": "write", "edit": "edit", "view": "read", "exit_plan_mode": "plan", "ask_user": "question",
        "grep": "search", "web_fetch": "fetch", "notes-keep": "mcp", "notes/keep": "mcp", "task": "delegate",
    }
    events = ("preToolUse", "permissionRequest", "postToolUse", "userPromptSubmitted", "sessionStart", "sessionEnd", "agentStop",
              "subagentStop", "errorOccurred", "notification", "preCompact")
    allowed = ("shell", "write")

    def variables(self):
        return {
            "COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": f"{self.model.url}/v1", "COPILOT_PROVIDER_API_KEY": "x",
            "COPILOT_MODEL": "gpt-4.1", "COPILOT_AUTO_UPDATE": "false",
        }

    def configure(self, hook=None, allow=(), server=()):
        self.is_allowed = bool(allow)
        self.put(".copilot/config.json", {"trustedFolders": [str(self.project)]})
        if server:
            notes = {"type": "local", "command": server[0], "args": list(server[1:]), "tools": ["*"]}
            self.put(".copilot/mcp-config.json", {"mcpServers": {"notes": notes}})
        self.hook_file().unlink(missing_ok=True)
        if hook:
            self.put(".copilot/hooks/countersign.json", {"version": 1, "hooks": {
                event: [{"type": "command", "bash": hook.line(event), "timeoutSec": hook.timeout}] for event in hook.events
            }})

    def subject(self, event, given):
        is_new = event == "permissionRequest" and "--- a/dev/null" in given["toolInput"].get("diff", "")
        return "write" if is_new else super().subject(event, given)

    def headless(self):
        return ["-p", "please", *(["--allow-all-tools"] if self.is_allowed else [])]

    def interactive(self, mode=None):
        return [*(["--mode", mode] if mode else []), "-i", "please"]

    def shell(self, step):
        return [Call("bash", {"command": step.command, "description": step.reason})]

    def write(self, step):
        return [Call("create", {"path": str(self.project / step.path), "file_text": step.text})]

    def edit(self, step):
        return [Call("edit", {"path": str(self.project / step.path), "old_str": step.old, "new_str": step.new})]

    def read(self, step):
        return [Call("view", {"path": str(self.project / step.path)})]

    def delegate(self, step):
        return [Call("task", {"description": "go on", "prompt": step.prompt, "agent_type": "general-purpose", "name": "helper"})]

    def question(self, step):
        schema = {"type": "object", "properties": {"choice": {"type": "string", "enum": list(step.choices)}}, "required": ["choice"]}
        return [Call("ask_user", {"message": step.text, "requestedSchema": schema})]

    def plan(self, step):
        return [Call("exit_plan_mode", {"summary": step.text})]


# CONTRIBUTING: add an agent host, step 5
HOSTS = {host.word: host for host in (Claude, Codex, Gemini, Opencode, Copilot)}
