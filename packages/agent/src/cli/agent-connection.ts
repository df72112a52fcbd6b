import { request } from "node:http";
import { AgentUnreachable } from "@nodekeeper/api/errors";
import type { ApiAnswers, ApiPath } from "@nodekeeper/api/openapi";
import {
  type ErrorCode,
  type ErrorId,
  errorCodes,
  messageOf,
  NodekeeperError,
  systemClock,
  withDeadline,
} from "@nodekeeper/core/lib";
import type { ApiQueries } from "../server/index.ts";

const DEADLINE_MS = 10_000;
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

/** Query parameters. Undefined ones are omitted. */
type Query<Path extends ApiPath> = {
  readonly [Name in keyof ApiQueries[Path]]?: ApiQueries[Path][Name] | undefined;
};

/** A connection to one agent, from which commands read everything they print. Its opener must dispose of it. */
export interface AgentConnection extends Disposable {
  /**
   * Gets the JSON response of `/api/v1/<path>`. Deadline: 10 s. Throws the agent's error, or `unavailable` with advice
   * if no agent responds.
   */
  get<Path extends ApiPath>(path: Path, query?: Query<Path>): Promise<ApiAnswers[Path]>;
}

export interface HttpConnectionOptions {
  /** "host:port" of the agent's status server. */
  address: string;
  /** How messages name the agent: "agent at 127.0.0.1:10290". */
  name: string;
  /** What to check if it does not respond. */
  advice: string;
}

/** Returns a connection to the status server at an address. Each request opens its own TCP connection. */
export function httpConnection({ address, name, advice }: HttpConnectionOptions): AgentConnection {
  return {
    async get<Path extends ApiPath>(path: Path, query: Query<Path> = {}) {
      const url = `http://${address}/api/v1/${path}${queryText(query)}`;
      const text = await withDeadline(
        systemClock,
        { ms: DEADLINE_MS, name, id: AgentUnreachable.id },
        undefined,
        (signal) => fetchText(url, { name, advice }, signal),
      );
      return answerOf(name, text) as ApiAnswers[Path];
    },
    // Each request has closed its own connection.
    [Symbol.dispose]() {},
  };
}

function answerOf(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = `the response of the ${name} is not JSON, so it is not a Nodekeeper agent (${text.slice(0, 100)})`;
    throw new AgentUnreachable({ problem: message }, { cause: error });
  }
}

function queryText(query: Readonly<Record<string, unknown>>): string {
  const text = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) text.set(name, String(value));
  return text.size === 0 ? "" : `?${text}`;
}

type Named = Pick<HttpConnectionOptions, "name" | "advice">;

function fetchText(url: string, { name, advice }: Named, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => {
      const message = `the ${name} does not respond (${messageOf(error)}). ${advice}`;
      reject(new AgentUnreachable({ problem: message }, { cause: error }));
    };
    const call = request(url, { signal, agent: false }, (response) => {
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
        else reject(errorFrom(name, response.statusCode ?? 0, text));
      });
    });
    call.on("error", fail);
    call.end();
  });
}

// The error in the agent's JSON response, or the start of any other response.
function errorFrom(name: string, status: number, text: string): NodekeeperError {
  try {
    const { error } = JSON.parse(text) as {
      error?: { code?: string; id?: ErrorId; message?: string };
    };
    const { code = "", id, message } = error ?? {};
    if (code in errorCodes && message) return new NodekeeperError(code as ErrorCode, message, { id });
  } catch {
    // Not a response of the agent.
  }
  return new AgentUnreachable({ problem: `${name}: ${status} ${text.slice(0, 300)}` });
}
