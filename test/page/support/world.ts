import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { STREAM_PATH } from "@nodekeeper/api/http";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { pageDirectory } from "../../../scripts/page-bundle.ts";

/** What an agent answered at one time: the page is drawn from it as it was, again and again. */
interface World {
  /** Wall milliseconds. */
  at: number;
  /** Messages of the stream, in their order. */
  stream: { event: string; id?: string; data: string }[];
  /** Answers as JSON by path and those parameters that do not depend on the time. */
  answers: Record<string, string>;
}

const file = join(import.meta.dirname, "../fixtures/world.json");
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".html": "text/html",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
};
/** Fonts differ from machine to machine; `prepare.ts` installs this one with the browser. */
export const FONTS = `*{font-family:"DejaVu Sans"!important}pre,code,kbd,code *,pre *{font-family:"DejaVu Sans Mono"!important}`;
const RECORDED_MS = 12_000;

/** An agent that answers always the same: from the recorded world, or from `agent`, whose answers it records. */
export class WorldServer implements AsyncDisposable {
  readonly #server = createServer((request, response) => {
    void this.#answer(request.url ?? "/", response).catch((error) => response.destroy(error as Error));
  });
  readonly #world: World;
  readonly #agent: string | undefined;

  private constructor(world: World, agent?: string) {
    this.#world = world;
    this.#agent = agent;
  }

  /** Serves the recorded world. */
  static replay(): Promise<WorldServer> {
    return new WorldServer(JSON.parse(readFileSync(file, "utf8")) as World).#listen();
  }

  /** @param agent "host:port" of its status server */
  static async record(agent: string): Promise<WorldServer> {
    const world: World = { at: 0, stream: await readStream(agent), answers: {} };
    world.at = Date.now();
    return await new WorldServer(world, agent).#listen();
  }

  /** "host:port" */
  get address(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `127.0.0.1:${port}`;
  }

  /** The time of the world, wall milliseconds. */
  get at(): number {
    return this.#world.at;
  }

  /** A pod of the recorded world whose eviction has ended. */
  static evicted(): { namespace: string; name: string; uid: string; round: number; at: number } {
    const { answers } = JSON.parse(readFileSync(file, "utf8")) as World;
    const { items } = JSON.parse(answers["eviction/evictions?"]!) as ApiAnswers["eviction/evictions"];
    const explained = (uid: string) => answers[`eviction/explain?pod=${uid}`] !== undefined;
    return items.findLast(({ uid, outcome }) => outcome && explained(uid))!;
  }

  /** Writes what was recorded. */
  save(): void {
    // Directories of the machine that recorded it say nothing.
    const text = JSON.stringify(this.#world, undefined, 1).replaceAll(
      /\/[^"\\ ]*\/nodekeeper-\w+/g,
      "/var/lib/nodekeeper",
    );
    writeFileSync(file, `${text}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #listen(): Promise<this> {
    return new Promise((resolve) => this.#server.listen(0, "127.0.0.1", () => resolve(this)));
  }

  async #answer(url: string, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(url, "http://world");
    response.setHeader("Date", new Date(this.#world.at).toUTCString());
    const path = pathname.replace(/^\/api\/v1\//, "");
    if (path === pathname) return answerFile(pathname, response);
    if (path === STREAM_PATH) return this.#answerStream(searchParams, response);
    for (const name of ["since", "until", "after", "step"]) searchParams.delete(name);
    searchParams.sort();
    const key = `${path}?${searchParams}`;
    if (this.#agent) await this.#ask(key, url);
    const answer = this.#world.answers[key];
    response.writeHead(answer === undefined ? 404 : 200, { "Content-Type": "application/json" });
    response.end(answer ?? JSON.stringify({ error: { message: `the recorded world has no ${key}` } }));
  }

  // The first answer counts, so that a world is of one time.
  async #ask(key: string, url: string): Promise<void> {
    if (this.#world.answers[key] !== undefined) return;
    const answer = await fetch(`http://${this.#agent}${url}`);
    if (answer.ok) this.#world.answers[key] ??= await answer.text();
  }

  #answerStream(query: URLSearchParams, response: ServerResponse): void {
    const topics = new Set(["open", ...(query.get("topics") ?? "").split(",")]);
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    for (const { event, id, data } of this.#world.stream)
      if (topics.has(event)) response.write(`${id ? `id: ${id}\n` : ""}event: ${event}\ndata: ${data}\n\n`);
    const heartbeat = setInterval(() => response.write("event: heartbeat\ndata: {}\n\n"), 5_000);
    response.on("close", () => clearInterval(heartbeat));
  }
}

function answerFile(path: string, response: ServerResponse): void {
  const name = path === "/" ? "index.html" : path.replace(/^\/page\//, "");
  const text = readFileSync(join(pageDirectory, name), "utf8");
  response.writeHead(200, { "Content-Type": CONTENT_TYPES[extname(name)] ?? "text/plain" });
  response.end(name === "main.css" ? text + FONTS : text);
}

async function readStream(agent: string): Promise<World["stream"]> {
  const { body } = await fetch(`http://${agent}/api/v1/${STREAM_PATH}`);
  const messages: World["stream"] = [];
  let text = "";
  const end = AbortSignal.timeout(RECORDED_MS);
  const decoder = new TextDecoder();
  const reader = body!.getReader();
  end.addEventListener("abort", () => void reader.cancel());
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += decoder.decode(part.value, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop()!;
    for (const block of blocks) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
      const [event, data, id] = [field("event"), field("data"), field("id")];
      if (event && data) messages.push({ event, data, ...(id ? { id } : {}) });
    }
  }
  return messages;
}
