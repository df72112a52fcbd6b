import { request } from "node:http";
import {
  type ErrorCode,
  errorCodes,
  messageOf,
  NodekeeperError,
  systemClock,
  withDeadline,
} from "@nodekeeper/core/lib";

const DEADLINE_MS = 10_000;
const LONGEST_ANSWER = 16 * 1024 * 1024;

/** Asks the running agent's status server at `address` ("host:port") for JSON. Throws `unavailable` with advice. */
export async function askAgent<T>(address: string, path: string): Promise<T> {
  const text = await withDeadline(systemClock, DEADLINE_MS, `agent at ${address}`, undefined, (signal) =>
    fetchText(address, path, signal),
  );
  return JSON.parse(text) as T;
}

function fetchText(address: string, path: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => {
      const advice = `no agent answers at ${address} (${messageOf(error)}); is it running? See --server`;
      reject(new NodekeeperError("unavailable", advice, { cause: error }));
    };
    const call = request(`http://${address}${path}`, { signal }, (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > LONGEST_ANSWER) call.destroy(new Error("answer too long"));
        else chunks.push(chunk);
      });
      response.on("error", fail);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        if (response.statusCode === 200) resolve(text);
        else reject(refusal(address, response.statusCode ?? 0, text));
      });
    });
    call.on("error", fail);
    call.end();
  });
}

// What the agent itself says, without the frame around it; anything else as it came.
function refusal(address: string, status: number, text: string): NodekeeperError {
  try {
    const { error } = JSON.parse(text) as { error?: { code?: string; message?: string } };
    const { code = "", message } = error ?? {};
    if (code in errorCodes && message) return new NodekeeperError(code as ErrorCode, message);
  } catch {
    // Not the agent's JSON.
  }
  return new NodekeeperError("unavailable", `agent at ${address}: ${status} ${text.slice(0, 300)}`);
}
