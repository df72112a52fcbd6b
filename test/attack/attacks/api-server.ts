import type { IncomingMessage, ServerResponse } from "node:http";
import { createGzip, gzipSync } from "node:zlib";
import type { Attack, HostileServer } from "../attack.ts";

const MIB = 2 ** 20;
const PAD = "x".repeat(1_000);

/** Of the API server, or of a proxy that the agent trusts as one. */
export const apiServerAttacks: readonly Attack[] = [
  {
    name: "watch-flood",
    about: "watches that send events of 1 KB without end",
    isShort: true,
    server: { fromStart: false, answer: onWatch((response) => endless(response, events)) },
  },
  {
    name: "watch-gzip",
    about: "watches that send the same compressed",
    isShort: false,
    server: {
      fromStart: false,
      answer: onWatch((response) => {
        const gzip = createGzip();
        response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
        gzip.pipe(response);
        response.once("close", () => gzip.destroy());
        endless(gzip as unknown as ServerResponse, events);
      }),
    },
  },
  {
    name: "watch-line",
    about: "watches that send one event without end",
    isShort: true,
    server: { fromStart: false, answer: onWatch((response) => endless(response, "x".repeat(MIB))) },
  },
  {
    name: "lists",
    about: "lists of 60 MB from the start on, page after page",
    isShort: true,
    server: { fromStart: true, answer: onList() },
  },
  {
    name: "discovery",
    about: "discovery of 60 MB from the start on",
    isShort: true,
    server: { fromStart: true, answer: onDiscovery(resourceBomb()) },
  },
  {
    name: "discovery-gzip",
    about: "discovery of 1 GB in 1 MB of gzip from the start on",
    isShort: false,
    server: { fromStart: true, answer: onDiscovery(gzipSync(Buffer.alloc(1_000 * MIB, 0x20)), "gzip") },
  },
];

function pod(at: number): string {
  const metadata = { name: `p${at}`, namespace: "default", uid: `u${at}`, resourceVersion: String(at + 1e6) };
  return JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata, spec: { pad: PAD } });
}

const events = Array.from({ length: 1_000 }, (_, at) => `{"type":"ADDED","object":${pod(at)}}\n`).join("");

function onWatch(answer: (response: ServerResponse) => void): HostileServer["answer"] {
  return ({ url }, response) => {
    if (!url!.includes("watch=true")) return false;
    answer(response);
    return true;
  };
}

function onList(): HostileServer["answer"] {
  const items = Array.from({ length: 50_000 }, (_, at) => pod(at)).join(",");
  let page = 0;
  return ({ method, url }: IncomingMessage, response) => {
    if (method !== "GET" || !/\/(pods|resourceslices|nodes)\?/.test(url!) || url!.includes("watch=true"))
      return false;
    const metadata = `{"resourceVersion":"1","continue":"c${page++}"}`;
    response.writeHead(200, { "content-type": "application/json" });
    response.end(`{"kind":"PodList","apiVersion":"v1","metadata":${metadata},"items":[${items}]}`);
    return true;
  };
}

function onDiscovery(body: Buffer, encoding = "identity"): HostileServer["answer"] {
  return ({ url }, response) => {
    if (!/^\/(api\/v1|apis\/[^/]+\/[^/]+)$/.test(url!)) return false;
    response.writeHead(200, { "content-type": "application/json", "content-encoding": encoding });
    response.end(body);
    return true;
  };
}

function resourceBomb(): Buffer {
  const resource = (at: number) => `{"name":"r${at}","kind":"K${at}","namespaced":true,"verbs":["get"]}`;
  const resources = Array.from({ length: 900_000 }, (_, at) => resource(at)).join(",");
  return Buffer.from(`{"kind":"APIResourceList","groupVersion":"v1","resources":[${resources}]}`);
}

function endless(response: ServerResponse, text: string): void {
  const bytes = Buffer.from(text);
  if (!response.headersSent) response.writeHead?.(200, { "content-type": "application/json" });
  const send = () => {
    while (!response.destroyed && response.write(bytes));
  };
  response.on("drain", send);
  send();
}
