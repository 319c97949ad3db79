import { defineConfig } from "vitest/config";

/** The page in a real browser, at a real gateway, with the real tool. Run `npm run build` first. */
export default defineConfig({
  test: {
    include: ["e2e/**/*.test.ts"],
    // demo/reach.sh gives it a network of its own, in which port 443 and a name are free to take.
    exclude: process.env["COUNTERSIGN_OWN_NETWORK"] === undefined ? ["e2e/reach.test.ts"] : [],
    testTimeout: 90_000,
    hookTimeout: 60_000,
    execArgv: ["--experimental-websocket", "--no-warnings"],
    // Each file has a gateway and a browser of its own, and waits for most of its time.
    maxWorkers: 4,
  },
});
