// What the OpenCode plugin lets through, with a program in the place of `countersign hook` that answers in every way.
// Usage: node tests/opencode-plugin/check.mjs
import assert from "node:assert/strict"
import fs from "node:fs"
import os from "node:os"
import path from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "opencode-plugin-"))
process.on("exit", () => fs.rmSync(folder, { recursive: true, force: true }))
const at = (name) => path.join(folder, name)
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

// The hook: keeps its input, and does what the file `answer` says.
fs.writeFileSync(at("hook"), `#!/bin/sh\ncat > '${at("input")}'\n. '${at("answer")}'\n`, { mode: 0o755 })
const source = path.join(path.dirname(fileURLToPath(import.meta.url)), "../../crates/agents/src/hosts/opencode/plugin.js")
const command = [at("hook"), "hook", "opencode", "--home", "/srv/countersign", "--mode", "gate", "--host-timeout", "2"]
fs.writeFileSync(at("plugin.mjs"), fs.readFileSync(source, "utf8").replace('["countersign"]', JSON.stringify(command)))

const replies = []
const client = { _client: { post: async (call) => (replies.push(call), { data: true }) } }
const module = await import(pathToFileURL(at("plugin.mjs")))
assert.deepEqual(Object.keys(module), ["Countersign"], "OpenCode loads every export as a plugin")
const hooks = await module.Countersign({ client, directory: folder })

async function call(answer, meanwhile = () => {}) {
  fs.writeFileSync(at("answer"), answer)
  const output = { args: { command: "ls" } }
  meanwhile(output)
  await hooks["tool.execute.before"]({ tool: "bash", sessionID: "s", callID: "c" }, output)
  return output.args
}

await call(`echo '{"verdict":"allow"}'`)
assert.deepEqual(JSON.parse(fs.readFileSync(at("input"), "utf8")), {
  event: "tool.execute.before", tool: "bash", sessionID: "s", callID: "c", args: { command: "ls" }, takesArgs: true, cwd: folder,
})
assert.deepEqual(await call(`echo '{"verdict":"allow"}'`), { command: "ls" })
assert.deepEqual(await call(`echo '{"verdict":"allow","args":{"text":"x"}}'`), { text: "x" }, "OpenCode runs the same object")
const refused = {
  "a denial": [`echo '{"verdict":"deny","reason":"no, says Ada"}'`, /^no, says Ada$/],
  "a failure that says allow": [`echo '{"verdict":"allow"}'; exit 1`, /code 1/],
  "no JSON": ["echo hello", /JSON object/],
  "a list": [`echo '["allow"]'`, /JSON object/],
  "two objects": [`echo '{"verdict":"allow"}{"verdict":"deny"}'`, /JSON object/],
  nothing: [":", /JSON object/],
  "another word": [`echo '{"verdict":"Allow"}'`, /did not allow/],
  "other arguments with a denial": [`echo '{"verdict":"deny","reason":"no","args":{"command":"rm"}}'`, /^no$/],
  "arguments that are a text": [`echo '{"verdict":"allow","args":"rm"}'`, /could not be put in place/],
  "arguments that are a list": [`echo '{"verdict":"allow","args":["rm"]}'`, /could not be put in place/],
  "arguments that are nothing": [`echo '{"verdict":"allow","args":null}'`, /could not be put in place/],
  "a kill": ["kill -9 $$", /SIGKILL/],
  "too late": [`exec sleep 20`, /SIGTERM/],
}
for (const [name, [answer, reason]] of Object.entries(refused)) {
  await assert.rejects(call(answer), (error) => reason.test(error.message), name)
}
const change = (output) => setTimeout(() => (output.args.command = "rm -r ."), 100)
await assert.rejects(call(`sleep 0.5; echo '{"verdict":"allow"}'`, change), /changed the call/)

async function asked(answer, meanwhile = async () => {}) {
  fs.writeFileSync(at("answer"), answer)
  replies.length = 0
  const properties = { id: "per_1", sessionID: "s", permission: "bash" }
  const done = hooks.event({ event: { type: "permission.asked", properties } })
  await meanwhile()
  await done
  return replies.map((reply) => [reply.path.requestID, reply.body])
}

assert.deepEqual(await asked(`echo '{"verdict":"allow"}'`), [["per_1", { reply: "once" }]])
const rejected = [["per_1", { reply: "reject", message: "no" }]]
assert.deepEqual(await asked(`echo '{"verdict":"deny","reason":"no"}'`), rejected)
for (const silent of ["echo '{}'", "exit 3", "echo hello", `echo '{"verdict":"allow"}'; exit 1`]) {
  assert.deepEqual(await asked(silent), [], silent)
}
const waits = `trap 'touch "${at("withdrawn")}"; exit 0' TERM; sleep 1.5 & wait; echo '{"verdict":"allow"}'`
const elsewhere = async () => {
  await pause(400)
  await hooks.event({ event: { type: "permission.replied", properties: { requestID: "per_1", reply: "once" } } })
}
assert.deepEqual(await asked(waits, elsewhere), [], "answered elsewhere")
assert.ok(fs.existsSync(at("withdrawn")), "the hook is ended, so that it withdraws its question")

// What a tool did and what the person wrote is told, and decides nothing.
const told = async (answer, name, ...given) => {
  fs.writeFileSync(at("answer"), answer)
  await hooks[name](...given)
  return JSON.parse(fs.readFileSync(at("input"), "utf8"))
}
const used = { tool: "bash", sessionID: "s", callID: "c", args: {} }
for (const answer of ["echo '{}'", "exit 1", "echo nonsense"]) {
  assert.deepEqual(await told(answer, "tool.execute.after", used, { output: "x" }), {
    ...used, event: "tool.execute.after", cwd: folder,
  })
}
const parts = [{ type: "text", text: "Fix" }, { type: "file" }, { type: "text", text: "note", synthetic: true }, { type: "text", text: "it" }]
assert.deepEqual(await told("echo '{}'", "chat.message", { sessionID: "s" }, { parts }), {
  sessionID: "s", text: "Fix\nit", event: "chat.message", cwd: folder,
})

fs.rmSync(at("hook"))
await assert.rejects(call(""), /could not be started/)
console.log("the plugin lets through what is allowed, and nothing else")
