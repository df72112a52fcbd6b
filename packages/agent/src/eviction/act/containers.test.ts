import { FakeClock, NodekeeperError, silentLogger, stopped } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import type { LogItem, PodCacheEntry, PodLifecycleEvent } from "../../lifecycle/index.ts";
import type { ContainerState, ContainerStatus } from "../../runtime/index.ts";
import { testPolicy } from "../testing/rounds.ts";
import { TestLedger } from "../testing/test-ledger.ts";
import { ContainerKiller } from "./container-killer.ts";
import { EvictedContainers } from "./evicted-containers.ts";
import type { KillRequest } from "./killer.ts";

function container(name: string, changes: Partial<ContainerStatus> = {}): ContainerStatus {
  return {
    id: `id-${name}`,
    name,
    kind: "container",
    state: "running",
    startedAt: 0n,
    ...changes,
  } as ContainerStatus;
}

/** What a runtime has of one pod. */
class TestRuntime {
  readonly clock = new FakeClock();
  containers: ContainerStatus[];
  error: Error | undefined;
  readonly stopCalls: [string, number][] = [];
  onStop: (id: string, signal: AbortSignal) => Promise<void> = async (id) => this.set(id, "exited");

  constructor(...containers: ContainerStatus[]) {
    this.containers = containers;
  }

  set(id: string, state: ContainerState): void {
    this.containers = this.containers.map((one) => (one.id === id ? { ...one, state } : one));
  }

  entry(): PodCacheEntry {
    const status = { uid: "web", name: "web", namespace: "default", ips: [], sandboxes: [] };
    const { containers, error } = this;
    return { status: { ...status, containers }, error, modifiedAt: 0, observedAt: 0 };
  }

  killer(): ContainerKiller {
    return new ContainerKiller({
      runtime: {
        stopContainer: async (id, seconds, signal) => {
          this.stopCalls.push([id, seconds]);
          await this.onStop(id, signal);
        },
      },
      statuses: { getNewerThan: async () => this.entry() },
      clock: this.clock,
      policy: () => testPolicy({ releaseMarginMs: 5_000 }),
    });
  }

  request(changes: Partial<KillRequest> = {}): KillRequest {
    const pod = { uid: "web", namespace: "default", name: "web" };
    return { pod, gracePeriodSeconds: null, ownGracePeriodSeconds: 30, sending: () => true, ...changes };
  }
}

describe("stopping containers", () => {
  const { signal } = new AbortController();

  it("stops those that run, with the pod's grace period, and confirms it", async () => {
    const runtime = new TestRuntime(
      container("app"),
      container("helper"),
      container("done", { state: "exited" }),
      container("setup", { kind: "initContainer" as never }),
    );
    const result = await runtime.killer().kill(runtime.request(), signal);
    expect(result).toMatchObject({
      kind: "accepted",
      message: "StopContainer app, helper, grace period 30 s",
    });
    expect(await (result as { ended: Promise<unknown> }).ended).toEqual({
      kind: "stopped",
      message: "stopped app, helper",
    });
    expect(runtime.stopCalls).toEqual([
      ["id-app", 30],
      ["id-helper", 30],
    ]);
  });

  it("leaves containers alone that the kubelet started after the first try", async () => {
    const runtime = new TestRuntime(container("app"));
    const request = runtime.request({ containers: new Set(["id-before"]) });
    expect(await runtime.killer().kill(request, signal)).toEqual({
      kind: "exited",
      seen: "the containers to stop have exited",
    });
    expect(runtime.stopCalls).toEqual([]);
  });

  it("is to be repeated where the runtime can't be read", async () => {
    const runtime = new TestRuntime(container("app"));
    runtime.error = new Error("connection refused");
    expect(await runtime.killer().kill(runtime.request(), signal)).toMatchObject({
      kind: "retry",
      message: "containers can't be read from the runtime: connection refused",
      maybeSent: false,
    });
  });

  it("retries when StopContainer succeeded and the container is still running", async () => {
    const runtime = new TestRuntime(container("app"));
    runtime.onStop = async () => {};
    const result = await runtime.killer().kill(runtime.request(), signal);
    expect(await (result as { ended: Promise<unknown> }).ended).toMatchObject({
      kind: "retry",
      message: "StopContainer succeeded, but still running: app",
    });
  });

  // Seed 851.
  it.each([
    ["No connection established. Last error: connect ENOENT /run/cri.sock", false],
    ["Connection dropped", true],
  ])("knows whether the runtime may have received StopContainer: %s", async (message, maybeSent) => {
    const runtime = new TestRuntime(container("app"));
    runtime.onStop = () => Promise.reject(new NodekeeperError("unavailable", message));
    const result = await runtime.killer().kill(runtime.request(), signal);
    expect(await (result as { ended: Promise<unknown> }).ended).toMatchObject({ kind: "retry", maybeSent });
  });

  it("has a deadline of the grace period and the margin", async () => {
    const runtime = new TestRuntime(container("app"));
    runtime.onStop = () => new Promise(() => {});
    const result = await runtime.killer().kill(runtime.request({ gracePeriodSeconds: 3 }), signal);
    const ended = (result as { ended: Promise<unknown> }).ended;
    await runtime.clock.step(8_000);
    expect(await ended).toMatchObject({ kind: "retry", maybeSent: true });
  });

  it("ends with the agent", async () => {
    const runtime = new TestRuntime(container("app"));
    runtime.onStop = () => new Promise(() => {});
    const controller = new AbortController();
    const result = await runtime.killer().kill(runtime.request(), controller.signal);
    const ended = (result as { ended: Promise<unknown> }).ended;
    controller.abort(stopped("the agent stops"));
    await expect(ended).rejects.toMatchObject({ code: "stopped" });
    await runtime.clock.step(60_000);
  });
});

describe("following containers", () => {
  /** A log of events that a test writes. */
  class TestLog {
    readonly position = { log: "test", sequence: 0 };
    #wake = () => {};
    readonly #items: LogItem[] = [];

    add(event: Partial<PodLifecycleEvent>): void {
      const whole = {
        type: "ContainerDied",
        pod: { uid: "web" },
        exitCode: undefined,
        reason: "",
        at: 5,
        ...event,
      };
      this.#items.push({ kind: "event", position: this.position, event: whole as PodLifecycleEvent });
      this.#wake();
    }

    async *read(_options: unknown, signal: AbortSignal): AsyncGenerator<LogItem> {
      signal.addEventListener("abort", () => this.#wake());
      while (!signal.aborted) {
        const item = this.#items.shift();
        if (item) {
          yield item;
          continue;
        }
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  const app = { id: "1", name: "app", kind: "container" } as const;
  const sandbox = { id: "2", name: "", kind: "sandbox" } as const;

  async function follow(runtime: TestRuntime) {
    const log = new TestLog();
    const controller = new AbortController();
    const ledger = new TestLedger(runtime.clock);
    const deaths = new EvictedContainers({
      ledger,
      events: log,
      statuses: { get: () => runtime.entry() },
      policy: () => testPolicy({ releaseMarginMs: 30_000 }),
      clock: runtime.clock,
      log: silentLogger,
    });
    const running = deaths.run(controller.signal);
    const stop = async () => {
      controller.abort();
      await running;
      expect(runtime.clock.timers).toBe(0);
    };
    const messages = () => ledger.takeSteps().map(({ message }) => message);
    return { log, deaths, stop, messages };
  }

  it("reports containers that run on after their pod was deleted, until its sandbox stops or the margin is over", async () => {
    const runtime = new TestRuntime(container("app"));
    const { log, deaths, stop, messages } = await follow(runtime);
    const pod = { uid: "web", namespace: "default", name: "web" };
    deaths.follow("web");
    deaths.podDeleted(pod);
    expect(messages()).toEqual(["still running on the node: app"]);
    log.add({ container: app, exitCode: 137 });
    log.add({ container: sandbox });
    log.add({ container: app, exitCode: 1 });
    await runtime.clock.step(0);
    expect(messages()).toEqual([]);
    expect(runtime.clock.timers).toBe(0);

    deaths.follow("web");
    deaths.podDeleted(pod);
    await runtime.clock.step(30_000);
    expect(messages().at(-1)).toBe("still running on the node, no longer waited for: app");
    await stop();
  });
});
