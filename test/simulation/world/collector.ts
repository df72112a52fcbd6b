import { createServer, type ServerResponse } from "node:http";
import type { Machine } from "../machine/machine.ts";
import type { History } from "./history.ts";

const PORT = 4318;

// How often the collector goes away in a storm, and for how long at most.
const AWAY_EVERY_MS = 10_000;
const LONGEST_AWAY_MS = 8_000;
// Shares of the requests in a storm whose response is lost, and that are to be sent again later.
const LOST_RESPONSES = 0.1;
const THROTTLED = 0.1;

/** A collector on another machine, which keeps the requests that it has accepted. */
export class Collector {
  /** The value of `archive.endpoint`. */
  readonly endpoint = `http://127.0.0.1:${PORT}`;
  /** Bodies of the requests with records, in their order. Some may be there twice: their responses were lost. */
  readonly accepted: Buffer[] = [];
  readonly #machine: Machine;
  readonly #history: History;
  /** Chance of its own, so that other parts of the world do not depend on it. Undefined in the calm. */
  #random: (() => number) | undefined;
  #isAway = false;

  constructor(machine: Machine, history: History) {
    this.#machine = machine;
    this.#history = history;
  }

  start(): void {
    this.#machine.spawn("collector").run(() => {
      createServer((request, response) => {
        const chunks: Buffer[] = [];
        request.on("data", (chunk: Buffer) => chunks.push(chunk));
        request.on("end", () => this.#answer(request.url, Buffer.concat(chunks), response));
      }).listen({ host: "127.0.0.1", port: PORT });
    });
  }

  /** Accepts nothing for a while, in milliseconds. */
  goAway(ms: number): void {
    this.#history.note("fault", "the collector is unavailable");
    this.#isAway = true;
    this.#machine.scheduler.after(ms, () => {
      this.#isAway = false;
    });
  }

  /** Until the calm, goes away at times, throttles requests, and loses responses. */
  storm(random: () => number): void {
    this.#random = random;
    this.#machine.scheduler.after(random() * AWAY_EVERY_MS, () => {
      if (this.#random === undefined) return;
      this.goAway(random() * LONGEST_AWAY_MS);
      this.storm(random);
    });
  }

  /** Accepts every request from now on. */
  settle(): void {
    this.#random = undefined;
    this.#isAway = false;
  }

  #answer(path: string | undefined, body: Buffer, response: ServerResponse): void {
    const drawn = this.#random?.() ?? 1;
    response.statusCode = this.#isAway ? 503 : drawn < THROTTLED ? 429 : 200;
    if (response.statusCode === 200 && path === "/v1/logs") this.accepted.push(body);
    if (drawn >= THROTTLED && drawn < THROTTLED + LOST_RESPONSES) response.destroy();
    else response.end();
  }
}
