import { expect, onTestFinished, test } from "vitest";
import { FakeClock, NodekeeperError, Registry, silentLogger } from "../lib/index.ts";
import { createKubeMetrics } from "./metrics.ts";
import { nodes } from "./testing/test-server.ts";
import type { KubeApiClient, WatchOptions } from "./types.ts";
import { Watcher } from "./watcher.ts";

const AGENTS = 2_000;

/** An API server for the watchers of a whole fleet. Records the times of their requests. */
class FleetServer {
  readonly #clock: FakeClock;
  readonly #open = new Set<PromiseWithResolvers<void>>();
  #version = 1;
  isUp = true;
  /** Monotonic milliseconds. */
  arrivals: number[] = [];

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  get watches(): number {
    return this.#open.size;
  }

  /** Ends all watches: by a reset, or normally, like a server that shuts down. */
  end(inGoodOrder: boolean): void {
    for (const { resolve, reject } of [...this.#open]) inGoodOrder ? resolve() : reject(unavailable());
    this.#open.clear();
  }

  /** After a restart, the server has no history, so earlier resource versions are too old. */
  restart(): void {
    this.#version++;
    this.isUp = true;
    this.arrivals = [];
  }

  client(): KubeApiClient {
    const list = async () => {
      this.#arrive();
      return { items: [], resourceVersion: String(this.#version) };
    };
    const watch = (_: unknown, options: WatchOptions) => this.#watch(options);
    return { list, watch } as unknown as KubeApiClient;
  }

  async #watch({ resourceVersion, onOpen }: WatchOptions): Promise<void> {
    this.#arrive();
    if (resourceVersion !== String(this.#version)) throw new NodekeeperError("expired", "too old");
    onOpen?.();
    const open = Promise.withResolvers<void>();
    this.#open.add(open);
    await open.promise;
  }

  #arrive(): void {
    if (!this.isUp) throw unavailable();
    this.arrivals.push(this.#clock.monotonic());
  }
}

const unavailable = () => new NodekeeperError("unavailable", "connection refused");

async function startFleet(): Promise<{ clock: FakeClock; server: FleetServer }> {
  const clock = new FakeClock();
  const server = new FleetServer(clock);
  const controller = new AbortController();
  const metrics = createKubeMetrics(new Registry());
  const context = { client: server.client(), clock, log: silentLogger, metrics };
  const handler = { onReplace: () => {}, onUpsert: () => {}, onDelete: () => {} };
  const running = Array.from({ length: AGENTS }, () =>
    new Watcher(context, { resource: nodes, handler }).run(controller.signal),
  );
  onTestFinished(async () => {
    controller.abort(new Error("test over"));
    server.end(false);
    await Promise.all(running);
  });
  await clock.step(0);
  expect(server.watches).toBe(AGENTS);
  // Long enough for the failure that follows to be the first one of its backoff.
  await clock.step(60_000);
  return { clock, server };
}

/** Returns the ratio of the busiest second's requests to the mean per second until all watch again. */
async function peakToMean(clock: FakeClock, server: FleetServer): Promise<number> {
  const startedAt = clock.monotonic();
  while (server.watches < AGENTS) await clock.step(1_000);
  const seconds = (clock.monotonic() - startedAt) / 1_000;
  const counts = Array.from({ length: seconds }, () => 0);
  for (const at of server.arrivals) counts[Math.floor((at - startedAt) / 1_000)]!++;
  return (Math.max(...counts) * seconds) / server.arrivals.length;
}

test("2,000 agents that lost the API server for 30 s come back at less than three times the mean rate", async () => {
  const { clock, server } = await startFleet();
  server.isUp = false;
  server.end(false);
  await clock.step(30_000);
  server.restart();
  expect(await peakToMean(clock, server)).toBeLessThan(3);
  // The expired watch, one list, and the new watch.
  expect(server.arrivals).toHaveLength(3 * AGENTS);
});

test("2,000 agents whose API server shuts down in good order turn to the next one at less than three times the mean rate", async () => {
  const { clock, server } = await startFleet();
  server.arrivals = [];
  server.end(true);
  expect(await peakToMean(clock, server)).toBeLessThan(3);
  expect(server.arrivals).toHaveLength(AGENTS);
});
