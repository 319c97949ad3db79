"use strict";
// Runs the program of the platform package in place of this script.

const { spawn } = require("node:child_process");
const { existsSync } = require("node:fs");
const os = require("node:os");
const path = require("node:path");

// `null` where there is no package for this system.
function platformPackage() {
  let name = `@countersign/${process.platform}-${process.arch}`;
  if (process.platform === "linux") {
    process.report.excludeNetwork = true;
    if (!process.report.getReport().header.glibcVersionRuntime) name += "-musl";
  }
  return name in require("../package.json").optionalDependencies ? name : null;
}

function fail(what, next) {
  process.stderr.write(`countersign: ${what}\n  → ${next}\n`);
  process.exit(1);
}

module.exports = function run(name) {
  const found = platformPackage();
  if (!found) fail(`there is no package for ${process.platform} on ${process.arch}`, "README.md says how to build it from source");
  let manifest;
  try {
    manifest = require.resolve(`${found}/package.json`);
  } catch {
    fail(
      `the package ${found}, which has the programs, is not installed`,
      "install again with optional dependencies: npm install --include=optional countersign",
    );
  }
  const file = path.join(path.dirname(manifest), "bin", process.platform === "win32" ? `${name}.exe` : name);
  if (!existsSync(file)) fail(`${name} does not run on ${process.platform} yet`, "run it on Linux, and connect from here");

  // The same process becomes the program, with Node 22.15 and newer.
  if (typeof process.execve === "function") {
    const warn = process.emitWarning;
    process.emitWarning = () => {};
    try {
      process.execve(file, [file, ...process.argv.slice(2)], process.env);
    } catch {
      process.emitWarning = warn;
    }
  }

  const child = spawn(file, process.argv.slice(2), { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"]) {
    // What is typed reaches the program by itself: it is in the terminal's group.
    const isTyped = ["SIGINT", "SIGQUIT", "SIGWINCH"].includes(signal) && process.stdin.isTTY;
    try {
      process.on(signal, () => isTyped || child.kill(signal));
    } catch {
      // Not every system has every signal.
    }
  }
  child.on("error", (error) => fail(`${file} can't be run: ${error.message}`, "install the package again"));
  child.on("exit", (code, signal) => {
    if (!signal) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
    // Where the signal doesn't end this process.
    process.exitCode = 128 + os.constants.signals[signal];
  });
};
