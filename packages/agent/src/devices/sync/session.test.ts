import type { KubeApiClient, Watcher } from "@nodekeeper/core/kube";
import { FakeClock, NodekeeperError, silentLogger } from "@nodekeeper/core/lib";
import { expect, test } from "vitest";
import type { SyncContext } from "./context.ts";
import { Sessions } from "./session.ts";

test("while the watch is down, the server is asked as seldom as its Retry-After and the backoff say", async () => {
  const clock = new FakeClock();
  const stop = new AbortController();
  const askedAt: number[] = [];
  let isDown = false;
  const client = {
    forgetDiscovery: () => {},
    resolve: async () => {
      if (!isDown) return {};
      askedAt.push(clock.monotonic());
      throw new NodekeeperError("throttled", "too many requests", { retryAfterMs: 20_000 });
    },
    // Asked before the session opens, whose watch is down then.
    serverVersion: async () => {
      isDown = true;
      return { gitVersion: "v1.36.0" };
    },
  } as unknown as KubeApiClient;
  const watcher = { run: async () => {}, healthCheck: () => ({ check: () => ({ ok: !isDown }) }) };
  const context = {
    client,
    clock,
    log: silentLogger,
    scope: { nodeName: "worker-1", driver: undefined },
    drivers: { isEmpty: false, untilAny: async () => {} },
    queue: { add: () => {} },
    watch: () => watcher as unknown as Watcher,
  };
  const sessions = new Sessions(
    context as unknown as SyncContext & ConstructorParameters<typeof Sessions>[0],
  );
  const running = sessions.run(stop.signal);
  for (let second = 0; second < 600; second++) await clock.step(1_000);
  stop.abort();
  await running;
  const waits = askedAt.slice(1).map((at, index) => at - askedAt[index]!);
  expect(waits.length).toBeGreaterThan(5);
  // The comparison that is due after 9 to 11 minutes does not wait.
  expect(waits.filter((wait) => wait < 20_000).length).toBeLessThanOrEqual(1);
  expect(waits).toContain(50_000);
});
