import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../../..");

describe("an uncaught error of the SDK", () => {
  it.each([
    [
      "of a name",
      `await sdk.serveReporterPlugin({ name: "no good", socketDir: ".", report() {} }).closed`,
      /^NodekeeperError: NK1302: plugin name "no good" is refused/m,
    ],
    [
      "of options",
      `sdk.serveDeviceDriver({ name: "d.example.com", socketDir: ".", devices() {}, prepare() {} })`,
      /^NodekeeperError: a driver has both prepare and unprepare, or neither$/m,
    ],
    [
      "of the agent's API",
      `await new sdk.PodLifecycleClient({ socket: "/nowhere.sock" }).getPods()`,
      /^NodekeeperError: NK1710: no agent responds at \/nowhere\.sock/m,
    ],
  ])("%s prints its message and the author's line, no line of the SDK", async (_, statement, message) => {
    const program = `import * as sdk from "@nodekeeper/sdk";\n${statement};`;
    const run = promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], {
      cwd: root,
    });
    const { code, stderr } = await run.catch((error) => error);
    expect(code).toBe(1);
    expect(stderr).toMatch(message);
    // A cause of another library keeps its own stack.
    const [stack] = stderr.split("[cause]");
    expect(stack).toContain("[eval1]:2");
    expect(stack).not.toContain("sdk/src");
  });
});
