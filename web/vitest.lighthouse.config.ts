import { defineConfig } from "vitest/config";

/** Lighthouse on the page's screens, at a real gateway. Run it with `./lighthouse`. */
export default defineConfig({
  test: {
    include: ["tools/lighthouse/*.test.mjs"],
    testTimeout: 240_000,
    hookTimeout: 60_000,
    execArgv: ["--experimental-websocket", "--no-warnings"],
    // One after the other: they share a browser.
    maxWorkers: 1,
  },
});
