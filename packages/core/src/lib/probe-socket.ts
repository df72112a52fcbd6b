import { connect } from "node:net";
import type { Clock } from "./clock.ts";

/**
 * Result of connecting to a unix socket. `accepts`: a process listens. `refused`: the file exists, but no process
 * listens. `missing`: the file does not exist. `unknown`: another error, such as missing permissions, or a timeout.
 */
export type ProbeResult = "accepts" | "refused" | "missing" | "unknown";

const probeTimeoutMs = 2_000;

/** Connects to the socket and closes the connection without sending data. Never rejects. Takes at most 2 s. */
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
    // `on`, not `once`: a later error must not be thrown.
    socket.on("error", (error: NodeJS.ErrnoException) => finish(verdictOf(error.code)));
  });
}

function verdictOf(code: string | undefined): ProbeResult {
  if (code === "ECONNREFUSED") return "refused";
  if (code === "ENOENT" || code === "ENOTDIR") return "missing";
  // The backlog is full: a process listens but accepts too slowly.
  if (code === "EAGAIN") return "accepts";
  return "unknown";
}
