import http from "node:http";
import https from "node:https";
import { ArchiveNotReadable } from "@nodekeeper/api/errors";
import { sendRequest } from "@nodekeeper/core/kube";
import { messageOf, systemClock, withDeadline } from "@nodekeeper/core/lib";
import { type AccessFiles, readAccess } from "../../archive/index.ts";

const DEADLINE_MS = 60_000;
const MOST_BYTES = 64 * 1024 * 1024;
const LONGEST_PROBLEM = 300;

/** A row of an answer: the values by field. */
export type LogsRow = Readonly<Record<string, string>>;

export interface VictoriaLogsOptions extends AccessFiles {
  /** URL of the store, with the path prefix of the query API if it is behind a proxy. */
  url: string;
}

/** Client of the HTTP query API of one VictoriaLogs server. */
export class VictoriaLogs {
  readonly url: string;
  readonly #options: VictoriaLogsOptions;
  readonly #url: URL;

  /** Throws `invalid` if the URL is not http or https, or has a user, password, query or fragment. */
  constructor(options: VictoriaLogsOptions) {
    this.#options = options;
    this.url = options.url;
    this.#url = urlOf(options.url);
  }

  /**
   * Returns the newest `limit` rows that match a query. Deadline: 60 s. Throws `unavailable` if the store does not
   * respond or rejects the query. For a rejected query, the message contains the HTTP status and the first line of the
   * store's response.
   */
  async query(query: string, limit: number): Promise<LogsRow[]> {
    const body = Buffer.from(new URLSearchParams({ query, limit: String(limit) }).toString());
    try {
      const text = await withDeadline(systemClock, { ms: DEADLINE_MS, name: "query" }, undefined, (signal) =>
        this.#post("/select/logsql/query", body, signal),
      );
      return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as LogsRow]));
    } catch (error) {
      const problem = messageOf(error).slice(0, LONGEST_PROBLEM);
      throw new ArchiveNotReadable({ url: this.url, problem }, { cause: error });
    }
  }

  async #post(path: string, body: Buffer, signal: AbortSignal): Promise<string> {
    const { ca, headers } = await readAccess(this.#options);
    const isSecure = this.#url.protocol === "https:";
    const agent = isSecure ? new https.Agent(ca === undefined ? {} : { ca }) : new http.Agent();
    try {
      const response = await sendRequest(
        {
          ...{ agent, url: this.#url, method: "POST", body },
          path: `${this.#url.pathname.replace(/\/+$/, "")}${path}`,
          headers: {
            ...headers,
            "content-type": "application/x-www-form-urlencoded",
            "content-length": String(body.length),
          },
        },
        signal,
      );
      const text = await textOf(response);
      if (response.statusCode === 200) return text;
      throw new Error(`HTTP ${response.statusCode}: ${text.trim().split("\n", 1)[0]}`);
    } finally {
      agent.destroy();
    }
  }
}

async function textOf(response: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw new Error("the answer is larger than 64 MiB");
  }
  return Buffer.concat(chunks).toString("utf8");
}

function urlOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHttp = url?.protocol === "http:" || url?.protocol === "https:";
  if (url && isHttp && url.username === "" && url.password === "" && url.search === "" && url.hash === "")
    return url;
  throw new ArchiveNotReadable(
    {
      url: text.replace(/\/\/[^/@]*@/, "//"),
      problem: "it must be http(s)://HOST[:PORT][/PATH], without a user or password",
    },
    { code: "invalid" },
  );
}

/** Returns a text as a string of LogsQL. */
export function quoted(text: string): string {
  return JSON.stringify(text);
}

/** Returns a filter for rows whose field has exactly this value. */
export function isExactly(field: string, value: string): string {
  return `${quoted(field)}:=${quoted(value)}`;
}
