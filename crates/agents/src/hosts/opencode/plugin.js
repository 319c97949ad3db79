// Written by `countersign install opencode`, and removed by `countersign uninstall opencode`.
// Asks Countersign before a tool runs, and answers OpenCode's own questions. Whatever goes wrong, the tool does not run.
import { spawn } from "node:child_process"

const COMMAND = ["countersign"]

// How long a verdict may take, as the command line says it; the hook itself answers earlier.
const LIMIT_MS = Number(COMMAND[COMMAND.indexOf("--host-timeout") + 1]) * 1000 || 60_000
const NEWS_LIMIT_MS = 10_000
const MAX_OUTPUT = 1 << 20

const NEWS = new Set(["session.created", "session.idle", "session.deleted", "session.error"])

// Runs the hook with one event on its standard input. Resolves to its answer, and rejects if it has none.
function run(input, cwd, limit, started = () => {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(COMMAND[0], COMMAND.slice(1), { cwd, stdio: ["pipe", "pipe", "ignore"] })
    let text = ""
    const timer = setTimeout(() => {
      child.kill("SIGTERM")
      setTimeout(() => child.kill("SIGKILL"), 1000).unref()
    }, limit)
    child.on("error", (error) => {
      clearTimeout(timer)
      reject(new Error(`its hook could not be started: ${error.message}`))
    })
    child.stdin.on("error", () => {})
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (part) => {
      text += part
      if (text.length > MAX_OUTPUT) child.kill("SIGTERM")
    })
    child.on("close", (code, signal) => {
      clearTimeout(timer)
      const ended = new Error(`its hook ended with ${signal ?? `code ${code}`}`)
      try {
        const answer = JSON.parse(text)
        if (answer === null || typeof answer !== "object" || Array.isArray(answer)) throw new Error()
        // A hook that fails says no with its reason; nothing else counts then.
        if (code !== 0 && answer.verdict !== "deny") return reject(ended)
        resolve(answer)
      } catch {
        reject(code === 0 ? new Error("its hook did not answer with a JSON object") : ended)
      }
    })
    started(child)
    child.stdin.end(JSON.stringify(input))
  })
}

// Puts what an approver has made of the arguments in their place. OpenCode runs the tool with the same object.
function replace(args, by) {
  for (const name of Object.keys(args)) delete args[name]
  Object.assign(args, by)
  if (JSON.stringify(args) !== JSON.stringify(by)) {
    throw new Error("Countersign did not allow this: the changed call could not be put in place.")
  }
}

export const Countersign = async ({ client, directory }) => {
  // The hooks that wait for an answer to a question of OpenCode, by the id of the question.
  const asking = new Map()

  async function before(input, output) {
    const args = JSON.stringify(output.args)
    let answer
    try {
      answer = await run(
        {
          event: "tool.execute.before",
          tool: input.tool,
          sessionID: input.sessionID,
          callID: input.callID,
          args: output.args,
          takesArgs: true,
          cwd: directory,
        },
        directory,
        LIMIT_MS,
      )
    } catch (error) {
      throw new Error(`Countersign did not allow this: ${error.message}.`)
    }
    if (answer.verdict !== "allow") {
      throw new Error(typeof answer.reason === "string" ? answer.reason : "Countersign did not allow this.")
    }
    if (JSON.stringify(output.args) !== args) {
      throw new Error("Countersign did not allow this: another plugin changed the call while it was decided.")
    }
    if (answer.args !== undefined) replace(output.args, answer.args)
  }

  async function reply(asked, body) {
    const old = { path: { id: asked.sessionID, permissionID: asked.id }, body: { response: body.reply } }
    const raw = client._client
    if (!raw) return client.postSessionIdPermissionsPermissionId(old)
    const result = await raw.post({
      url: "/permission/{requestID}/reply",
      path: { requestID: asked.id },
      body,
      headers: { "Content-Type": "application/json" },
    })
    if (result.error !== undefined) await client.postSessionIdPermissionsPermissionId(old)
  }

  // Without a verdict the question stays with the person at the terminal.
  async function relay(asked) {
    const input = { ...asked, event: "permission.asked", cwd: directory }
    try {
      const answer = await run(input, directory, LIMIT_MS, (child) => asking.set(asked.id, child))
      if (!asking.has(asked.id)) return
      if (answer.verdict === "allow") await reply(asked, { reply: "once" })
      if (answer.verdict === "deny") await reply(asked, { reply: "reject", message: String(answer.reason ?? "") })
    } catch {
      // Nobody has answered.
    } finally {
      asking.delete(asked.id)
    }
  }

  // Answered elsewhere: the hook withdraws its question when it is ended.
  function settled(properties) {
    const id = properties.requestID ?? properties.permissionID ?? properties.id
    const child = asking.get(id)
    asking.delete(id)
    child?.kill("SIGTERM")
  }

  // It decides nothing: whatever goes wrong, the agent goes on.
  const tell = (event, properties) =>
    run({ ...properties, event, cwd: directory }, directory, NEWS_LIMIT_MS).then(() => {}, () => {})

  return {
    "tool.execute.before": before,
    "tool.execute.after": (input) => tell("tool.execute.after", input),
    "chat.message": (input, output) => {
      const text = (output?.parts ?? []).filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
      return tell("chat.message", { ...input, text: text.join("\n") })
    },
    event: async ({ event }) => {
      const properties = event.properties ?? {}
      if (event.type === "permission.asked") return relay(properties)
      if (event.type === "permission.replied") return settled(properties)
      if (!NEWS.has(event.type)) return
      await tell(event.type, properties)
    },
    dispose: async () => {
      for (const child of asking.values()) child.kill("SIGTERM")
      asking.clear()
    },
  }
}
