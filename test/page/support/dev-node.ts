import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "@nodekeeper/testing/until";
import { type StatusReader, statusReader } from "../../support/agent.ts";
import { startScript } from "../../support/processes.ts";

/** `nodekeeper dev` in a process of its own. */
export interface DevNode extends StatusReader, AsyncDisposable {
  /** "host:port" of the agent's status server. */
  address: string;
  /** "http://host:port" of the API server in memory. */
  apiServer: string;
  /** What the command printed. */
  output(): string;
}

/** Resolves when the agent serves. */
export async function startDevNode(...args: string[]): Promise<DevNode> {
  const scratch = mkdtempSync(join(tmpdir(), "nk-page-"));
  const process = startScript("packages/agent/src/main.ts", ["dev", ...args], { TMPDIR: scratch });
  const printed = (what: string, pattern: RegExp) =>
    until(what, () => pattern.exec(process.output())?.[1], { explain: process.output });
  const stop = async () => {
    process.kill("SIGINT");
    await process.ended;
    rmSync(scratch, { recursive: true, force: true });
  };
  try {
    const address = await printed("the agent's address", /agent +http:\/\/([\w.:]+)/);
    const apiServer = await printed("the API server's address", /API server +(http:\/\/[\w.:]+)/);
    return {
      address,
      apiServer,
      output: process.output,
      ...statusReader(address),
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
