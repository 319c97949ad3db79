import { defineConfig } from "vitest/config";

/** The page in a real browser, at a real gateway, with the real tool. Run `npm run build` first. */
export default defineConfig({
  test: {
    include: ["e2e/**/*.test.ts"],
    testTimeout: 90_000,
    hookTimeout: 60_000,
    execArgv: ["--experimental-websocket", "--no-warnings"],
    maxWorkers: 1,
    fileParallelism: false,
    // A test goes on where the one before has ended, so the first failure ends its file.
    bail: 0,
  },
});
