import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";

/** Runs the plugin as `npm start` does. `failed` rejects when its process exits before `stop`. */
export function startPlugin(...args) {
  const { scripts } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"));
  const child = spawn("sh", ["-c", `exec ${scripts.start} "$@"`, "sh", ...args], {
    cwd: import.meta.dirname,
    stdio: "inherit",
  });
  let isStopping = false;
  const exited = new Promise((resolve) => child.once("close", (code, signal) => resolve(code ?? signal)));
  const failed = exited.then((how) => {
    if (!isStopping) throw new Error(`the plugin exited: ${how}`);
  });
  failed.catch(() => {});
  return {
    failed,
    async stop() {
      isStopping = true;
      child.kill();
      await exited;
    },
  };
}
