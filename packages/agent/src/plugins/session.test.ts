import { FakeClock, NodekeeperError, Registry, Semaphore, silentLogger } from "@nodekeeper/core/lib";
import { expect, it, vi } from "vitest";
import { Vacancies } from "./context.ts";
import type { Predecessor } from "./inheritance.ts";
import type { Liveness } from "./liveness.ts";
import { createPluginMetrics } from "./metrics.ts";
import type { RegisteredPlugins } from "./registered-plugins.ts";
import { PluginSession, type SessionContext } from "./session.ts";
import type { SocketTrust } from "./socket-trust.ts";

const path = "/plugins/p.sock";
const registration = {
  type: "ReporterPlugin",
  name: "p",
  endpoint: path,
  registrationSocket: path,
  uid: 0,
  versions: [],
  generation: 1,
};

function context(release: () => Promise<void>): SessionContext {
  const clock = new FakeClock();
  return {
    clock,
    log: silentLogger,
    metrics: createPluginMetrics(new Registry()),
    handlers: new Map(),
    registered: { release } as unknown as RegisteredPlugins,
    handshakes: { first: new Semaphore({ permits: 1 }), retries: new Semaphore({ permits: 1 }) },
    trust: { checkRegistration: async () => {}, checkEndpoint: async () => {} } as unknown as SocketTrust,
    timeouts: { dialMs: 1, infoMs: 1, noticeMs: 1, handlerMs: 1 },
    // No handshake gets a response.
    liveness: { probe: () => new Promise(() => {}) } as unknown as Liveness,
    livenessIntervalMs: 1_000,
    onChange: () => {},
    vacancies: new Vacancies(),
  };
}

it("a socket re-created over and over before it can answer leaves one predecessor, whose registration ends with it", async () => {
  const release = vi.fn(async () => {});
  const shared = context(release);
  let predecessor: Predecessor | undefined;
  for (let at = 0; at < 20_000; at++) {
    const session = new PluginSession({ path, identity: String(at), bornNs: 0n }, at, predecessor, shared);
    if (at === 0) session.accepted(registration);
    const controller = new AbortController();
    const finished = session.run(controller.signal);
    controller.abort(new NodekeeperError("conflict", "its socket was re-created"));
    predecessor = { session, finished };
  }
  await predecessor!.finished;
  expect(predecessor!.session.held).toEqual([registration]);

  const last = new PluginSession({ path, identity: "last", bornNs: 0n }, 20_000, predecessor, shared);
  const controller = new AbortController();
  const finished = last.run(controller.signal);
  controller.abort(new NodekeeperError("notFound", "its socket was removed"));
  await finished;
  expect(release).toHaveBeenCalledExactlyOnceWith(registration, "its socket was removed");
});

it("a name that an earlier file left ends too where the next file was accepted under another and re-created at once", async () => {
  const release = vi.fn(async () => {});
  const shared = context(release);
  const ended = async (
    predecessor: Predecessor | undefined,
    code: "conflict" | "notFound",
    name?: string,
  ) => {
    const session = new PluginSession({ path, identity: `${name}`, bornNs: 0n }, 1, predecessor, shared);
    const controller = new AbortController();
    const finished = session.run(controller.signal);
    if (name) session.accepted({ ...registration, name });
    controller.abort(new NodekeeperError(code, "test"));
    await finished;
    return { session, finished };
  };
  const old = await ended(undefined, "conflict", "old");
  const next = await ended(old, "conflict", "new");
  await ended(next, "notFound");
  expect(release).toHaveBeenCalledWith(expect.objectContaining({ name: "old" }), "test");
  expect(release).toHaveBeenCalledWith(expect.objectContaining({ name: "new" }), "test");
});
