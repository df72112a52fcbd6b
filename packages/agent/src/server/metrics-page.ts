import { type Clock, RecentWork, type Registry, withDeadline } from "@nodekeeper/core/lib";
import { HANDLER_DEADLINE_MS } from "./api.ts";
import { OPENMETRICS_TYPE, prefersOpenMetrics, TEXT_TYPE, toOpenMetrics } from "./openmetrics.ts";
import type { Reply } from "./reply.ts";

/** Rendering all series blocks the event loop for tens of milliseconds, so it is done at most once per interval. */
const RENDER_INTERVAL_MS = 1_000;

/** The body of `/metrics`. Rendered at most once a second, regardless of the number of requests. */
export class MetricsPage {
  readonly #clock: Clock;
  // A collector that hangs blocks one rendering, not one per scrape.
  readonly #body: RecentWork<string>;

  constructor(registry: Registry, clock: Clock) {
    this.#clock = clock;
    this.#body = new RecentWork(
      clock,
      () => RENDER_INTERVAL_MS,
      () => registry.metrics(),
    );
  }

  /**
   * Returns metrics at most a second old, in the format that the `Accept` header prefers. Throws `deadline` if a
   * collector hangs.
   */
  async reply(accept: string | undefined, signal: AbortSignal): Promise<Reply> {
    const body = await withDeadline(this.#clock, HANDLER_DEADLINE_MS, "metrics", signal, (scope) =>
      this.#body.get(scope),
    );
    const headers = { Vary: "Accept" };
    if (!prefersOpenMetrics(accept)) return { status: 200, contentType: TEXT_TYPE, body, headers };
    return { status: 200, contentType: OPENMETRICS_TYPE, body: toOpenMetrics(body), headers };
  }
}
