import { connect } from "node:net";
import type { Clock } from "./clock.ts";

/**
 * What a bare connect to a unix socket found.
 * `accepts`: a process listens. `refused`: the file is there, no process listens. `missing`: no such file.
 * `unknown`: another error, such as missing permissions; it proves nothing about the process.
 */
export type ProbeResult = "accepts" | "refused" | "missing" | "unknown";

const probeTimeoutMs = 2_000;

/** Connects to the socket and closes at once; sends nothing. Never rejects; ends within 2 s. */
export function probeSocket(clock: Clock, path: string): Promise<ProbeResult> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    const finish = (result: ProbeResult) => {
      timer.cancel();
      socket.destroy();
      resolve(result);
    };
    const timer = clock.after(probeTimeoutMs, () => finish("unknown"));
    socket.once("connect", () => finish("accepts"));
    // `on`, not `once`: an error after the verdict must not be thrown.
    socket.on("error", (error: NodeJS.ErrnoException) => finish(verdictOf(error.code)));
  });
}

function verdictOf(code: string | undefined): ProbeResult {
  if (code === "ECONNREFUSED") return "refused";
  if (code === "ENOENT" || code === "ENOTDIR") return "missing";
  // A full backlog: a process listens, and accepts too slowly.
  if (code === "EAGAIN") return "accepts";
  return "unknown";
}
