import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 120_000,
    // Node 20 has WebSockets behind a flag; later versions ignore it.
    execArgv: ["--experimental-websocket", "--no-warnings"],
    maxWorkers: 2,
  },
});
