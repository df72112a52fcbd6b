import { request } from "node:http";
import {
  type ErrorCode,
  type ErrorId,
  errorCodes,
  messageOf,
  NodekeeperError,
  systemClock,
  withDeadline,
} from "@nodekeeper/core/lib";

const DEADLINE_MS = 10_000;
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

/**
 * Gets JSON from the status server of the running agent at `address` ("host:port"). Deadline: 10 s. Throws the agent's
 * own error, or `unavailable` with advice if no agent responds.
 */
export async function askAgent<T>(address: string, path: string): Promise<T> {
  const text = await withDeadline(
    systemClock,
    DEADLINE_MS,
    { name: `agent at ${address}`, id: "NK1710" },
    undefined,
    (signal) => fetchText(address, path, signal),
  );
  return JSON.parse(text) as T;
}

function fetchText(address: string, path: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => {
      const advice = `no agent responds at ${address} (${messageOf(error)}). Check that it is running and that --server is its status server's address`;
      reject(new NodekeeperError("unavailable", advice, { id: "NK1710", cause: error }));
    };
    const call = request(`http://${address}${path}`, { signal }, (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > MAX_RESPONSE_BYTES) call.destroy(new Error("response is larger than 16 MiB"));
        else chunks.push(chunk);
      });
      response.on("error", fail);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        if (response.statusCode === 200) resolve(text);
        else reject(errorFrom(address, response.statusCode ?? 0, text));
      });
    });
    call.on("error", fail);
    call.end();
  });
}

// The error in the agent's JSON response, or the start of any other response.
function errorFrom(address: string, status: number, text: string): NodekeeperError {
  try {
    const { error } = JSON.parse(text) as {
      error?: { code?: string; id?: ErrorId; message?: string };
    };
    const { code = "", id, message } = error ?? {};
    if (code in errorCodes && message) return new NodekeeperError(code as ErrorCode, message, { id });
  } catch {
    // Not a response of the agent.
  }
  return new NodekeeperError("unavailable", `agent at ${address}: ${status} ${text.slice(0, 300)}`, {
    id: "NK1710",
  });
}
