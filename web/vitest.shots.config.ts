import { defineConfig } from "vitest/config";

/** A picture of every screen, at a real gateway. Run it with `./shots`. */
export default defineConfig({
  test: {
    include: ["tools/shots/*.test.ts"],
    testTimeout: 300_000,
    hookTimeout: 60_000,
    execArgv: ["--experimental-websocket", "--no-warnings"],
  },
});
