import { type Clock, type Registry, withDeadline } from "../lib/index.ts";
import { HANDLER_DEADLINE_MS } from "./api.ts";
import type { Reply } from "./reply.ts";

/** Rendering all series takes tens of milliseconds of the only thread. */
const RENDER_INTERVAL_MS = 1_000;

/** The body of `/metrics`. It is rendered at most once a second, whatever the number of requests. */
export class MetricsPage {
  readonly #registry: Registry;
  readonly #clock: Clock;
  #renderedAt = Number.NEGATIVE_INFINITY;
  #rendered: Promise<string> | undefined;
  #isRendering = false;

  constructor(registry: Registry, clock: Clock) {
    this.#registry = registry;
    this.#clock = clock;
  }

  /** The metrics as they were at most a second ago. Throws `deadline` where a collector hangs. */
  async reply(signal: AbortSignal): Promise<Reply> {
    const now = this.#clock.monotonic();
    const isDue = !this.#rendered || now - this.#renderedAt >= RENDER_INTERVAL_MS;
    // A collector that hangs holds one rendering, not one for each scrape.
    if (isDue && !this.#isRendering) {
      this.#renderedAt = now;
      this.#isRendering = true;
      this.#rendered = this.#registry.metrics().finally(() => {
        this.#isRendering = false;
      });
      this.#rendered.catch(() => {});
    }
    const rendered = this.#rendered!;
    const body = await withDeadline(this.#clock, HANDLER_DEADLINE_MS, "metrics", signal, () => rendered);
    return { status: 200, contentType: this.#registry.contentType, body };
  }
}
