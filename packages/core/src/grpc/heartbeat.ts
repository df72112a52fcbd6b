import type { ClientHttp2Session } from "node:http2";
import { abortable, type Clock, childScope, sleepOrAbort } from "../lib/index.ts";
import { openHttp2Session } from "./http2-session.ts";

export interface HeartbeatOptions {
  /** Path of a unix socket that serves gRPC. */
  path: string;
  /** Called initially and on each change with the reason why the server does not respond. Undefined if it responds. */
  onChange: (problem: string | undefined) => void;
  clock: Clock;
  /** Time between a response and the next request, in milliseconds. Default 1,500. */
  intervalMs?: number;
  /** Response time above which the server is considered unresponsive, in milliseconds. Default 2,500. */
  timeoutMs?: number;
}

const RETRY_MS = 500;
// A connection that worked may have ended because its process exited.
const REOPEN_MS = 50;
// Other errors, such as a limit of open files, are not evidence about the server process.
const evidence: Readonly<Record<string, string>> = {
  ECONNREFUSED: "no process listens on its socket",
  ENOENT: "its socket does not exist",
  ECONNRESET: "its process closed the connection without a response",
  EPIPE: "its process closed the connection without a response",
  // Returned by connect(2) for unix sockets.
  EAGAIN: "its process does not accept connections, and the backlog of its socket is full",
};

/**
 * Monitors whether the process that serves a socket responds, until the signal aborts. Connecting is not sufficient:
 * the kernel accepts connections for a process that is stopped (SIGSTOP) or hangs. The requests are HTTP/2 SETTINGS
 * frames, which every server acknowledges (RFC 9113, 6.5.3); gRPC servers in Go and C++ close connections with frequent
 * PINGs. If a working connection closes, a new one is opened before a problem is reported. Never rejects.
 */
export async function watchHeartbeat(options: HeartbeatOptions, signal: AbortSignal): Promise<void> {
  const { clock, onChange } = options;
  let known: { problem: string | undefined } | undefined;
  const report = (problem: string | undefined) => {
    if (signal.aborted || (known && known.problem === problem)) return;
    known = { problem };
    onChange(problem);
  };
  while (!signal.aborted) {
    const { hasAnswered, problem } = await followConnection(options, report, signal);
    if (problem !== undefined) report(problem);
    await sleepOrAbort(clock, hasAnswered ? REOPEN_MS : RETRY_MS, signal);
  }
}

interface ClosedConnection {
  hasAnswered: boolean;
  /** Why the connection never worked. Undefined for errors that are not evidence about the process. */
  problem: string | undefined;
}

/** Sends requests over one connection until it closes or the signal aborts. */
async function followConnection(
  { path, clock, intervalMs = 1_500, timeoutMs = 2_500 }: HeartbeatOptions,
  report: (problem: string | undefined) => void,
  signal: AbortSignal,
): Promise<ClosedConnection> {
  const session = openHttp2Session(path);
  let failure: NodeJS.ErrnoException | undefined;
  session.on("error", (error) => {
    failure ??= error;
  });
  // A signal, because each Promise.race with a long-pending promise retains memory until the connection closes.
  using open = childScope(signal);
  session.once("close", () => open.abort());
  let hasAnswered = false;
  const ask = async (question: (answered: () => void) => void) => {
    const timer = clock.after(timeoutMs, () => report(`its process does not respond within ${timeoutMs} ms`));
    try {
      await abortable(new Promise<void>(question), open.signal);
    } finally {
      timer.cancel();
    }
    hasAnswered = true;
    report(undefined);
  };
  try {
    await ask((answered) => session.once("remoteSettings", () => answered()));
    for (;;) {
      await clock.sleep(intervalMs, open.signal);
      if (session.destroyed || session.closed) break;
      await ask((answered) => acknowledge(session, answered));
    }
  } catch (error) {
    if (!open.signal.aborted) throw error;
  } finally {
    session.destroy();
  }
  return { hasAnswered, problem: hasAnswered ? undefined : evidence[failure?.code ?? "ECONNRESET"] };
}

// The callback is called on acknowledgement, or with an error if the connection closes first.
function acknowledge(session: ClientHttp2Session, answered: () => void): void {
  session.settings({}, (error) => {
    if (!error) answered();
  });
}
