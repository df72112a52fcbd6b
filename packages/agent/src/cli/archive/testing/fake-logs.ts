import { readFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type RequestListener } from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { LogsRow } from "../victoria-logs.ts";

/** The records of a node, as a real VictoriaLogs returned them: test/e2e/archive-query.e2e.test.ts. */
export function recordedRows(): LogsRow[] {
  const text = readFileSync(join(import.meta.dirname, "recorded.jsonl"), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** A fake VictoriaLogs server. Supports only the parts of LogsQL that `Archive` uses. */
export interface FakeLogs {
  url: string;
  /** The stored rows. A test may replace them. */
  rows: LogsRow[];
  /** The queries received so far. */
  queries: string[];
  headers: IncomingHttpHeaders[];
  /** If set, the response to every query. */
  refusal: { status: number; text: string } | undefined;
  stop(): Promise<void>;
}

/** Starts a server with the recorded rows. @param tls certificate for localhost and its key, PEM. Default: HTTP */
export async function startFakeLogs(tls?: { cert: string; key: string }): Promise<FakeLogs> {
  const listener: RequestListener = (request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      const parameters = new URLSearchParams(body);
      const query = parameters.get("query")!;
      fake.queries.push(query);
      fake.headers.push(request.headers);
      if (fake.refusal) {
        response.writeHead(fake.refusal.status).end(fake.refusal.text);
        return;
      }
      const rows = answerTo(query, fake.rows).slice(0, Number(parameters.get("limit")));
      response.end(rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    });
  };
  const server = tls ? https.createServer(tls, listener) : createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const fake: FakeLogs = {
    url: `${tls ? "https://localhost" : "http://127.0.0.1"}:${(server.address() as AddressInfo).port}`,
    rows: recordedRows(),
    queries: [],
    headers: [],
    refusal: undefined,
    stop: () => new Promise((resolve) => void server.close(() => resolve())),
  };
  return fake;
}

const TEXT = String.raw`"(?:[^"\\]|\\.)*"`;
const textsIn = (list: string) => [...list.matchAll(new RegExp(TEXT, "g"))].map(([text]) => JSON.parse(text));

function answerTo(query: string, all: readonly LogsRow[]): LogsRow[] {
  const [filter = "", ...pipes] = query.split(/ \| /);
  const conditions: ((row: LogsRow) => boolean)[] = [];
  const add = (pattern: string, condition: (match: string[], row: LogsRow) => boolean) => {
    for (const match of filter.matchAll(new RegExp(pattern, "g")))
      conditions.push((row) => condition([...match], row));
  };
  add(
    `(${TEXT}):?=(${TEXT})`,
    ([, name, value], row) => (row[JSON.parse(name!)] ?? "") === JSON.parse(value!),
  );
  add(`(${TEXT}):~(${TEXT})`, ([, name, value], row) =>
    new RegExp(JSON.parse(value!)).test(row[JSON.parse(name!)] ?? ""),
  );
  add(String.raw`event_name in \(([^)]*)\)`, ([, list], row) => textsIn(list!).includes(row.event_name!));
  add(String.raw`_time:>=(\S+)`, ([, since], row) => row._time! >= since!);
  const newestFirst = [...all].sort((a, b) => (a._time! < b._time! ? 1 : -1));
  const found = newestFirst.filter((row) => conditions.every((condition) => condition(row)));
  return pipes.reduce<LogsRow[]>((rows, pipe) => piped(rows, pipe), found);
}

function piped(rows: readonly LogsRow[], pipe: string): LogsRow[] {
  const times = (some: readonly LogsRow[]) => some.map(({ _time }) => _time!).sort();
  if (pipe.startsWith("stats by ")) {
    const keys = textsIn(pipe);
    const groups = Map.groupBy(rows, (row) => JSON.stringify(keys.map((key) => row[key] ?? "")));
    return [...groups.values()].map((group) => ({
      ...Object.fromEntries(keys.map((key) => [key, group[0]![key] ?? ""])),
      oldest: times(group)[0]!,
      ...{ newest: times(group).at(-1)!, last: times(group).at(-1)! },
    }));
  }
  if (pipe.startsWith("unpack_json "))
    return rows.map((row) => ({ ...unpacked("", JSON.parse(row._msg!)), ...row }));
  if (pipe.startsWith("filter -"))
    return rows.filter((row) => !textsIn(pipe).slice(1).includes(row[textsIn(pipe)[0]]!));
  return [...rows];
}

function unpacked(prefix: string, value: object): Record<string, string> {
  const entries = Object.entries(value).flatMap(([name, member]) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? Object.entries(unpacked(`${prefix}${name}.`, member))
      : member === null
        ? []
        : [[`${prefix}${name}`, String(member)]],
  );
  return Object.fromEntries(entries);
}
