// A plugin of OpenCode that records what it is given, in the same form as probe.py; it has no opinion.
import { appendFileSync } from "node:fs";

const log = process.env.RECORDER_LOG;
const events = ["permission.asked", "permission.replied", "question.asked", "question.replied", "question.rejected",
  "session.created", "session.idle", "session.error"];
const record = (event, input) => appendFileSync(log, JSON.stringify({ event, input: JSON.stringify(input) }) + "\n");

export const Recorder = async () => ({
  event: async ({ event }) => {
    if (events.includes(event.type)) record(event.type, event);
  },
  "chat.message": async (input, output) => record("chat.message", { input, output }),
  "permission.ask": async (input, output) => record("permission.ask", { input, output }),
  "tool.execute.before": async (input, output) => record("tool.execute.before", { input, output }),
  "tool.execute.after": async (input, output) => record("tool.execute.after", { input, output }),
});
