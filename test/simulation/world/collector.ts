import { createServer } from "node:http";
import type { Machine } from "../machine/machine.ts";
import type { History } from "./history.ts";

const PORT = 4318;

/** A collector on another machine, which keeps the requests that it has accepted. */
export class Collector {
  /** The value of `archive.endpoint`. */
  readonly endpoint = `http://127.0.0.1:${PORT}`;
  /** Bodies of the requests with records, in their order. Some may be there twice: their responses were lost. */
  readonly accepted: Buffer[] = [];
  readonly #machine: Machine;
  readonly #history: History;
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
        request.on("end", () => {
          if (!this.#isAway && request.url === "/v1/logs") this.accepted.push(Buffer.concat(chunks));
          response.statusCode = this.#isAway ? 503 : 200;
          response.end();
        });
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
}
