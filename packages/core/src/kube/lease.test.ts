import fc from "fast-check";
import { expect, test } from "vitest";
import { FakeClock, NodekeeperError, silentLogger, untilAborted } from "../lib/index.ts";
import { LeaseElection, type LeaseElectionOptions } from "./lease.ts";
import { recordOf } from "./objects.ts";
import type { CallOptions, KubeObject } from "./types.ts";

/** One Lease at an API server. */
class Server {
  lease: KubeObject | undefined;
  /** The requests that reached it, such as "get 0" from its cache. */
  readonly requests: string[] = [];
  #version = 0;
  readonly #clock: FakeClock;

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  get spec(): Record<string, unknown> {
    return recordOf(this.lease?.spec);
  }

  /** A client. `fails` decides about each of its requests. */
  client(
    fails: () => "refused" | "lost" | "hangs" | undefined = () => undefined,
  ): LeaseElectionOptions["client"] {
    const attempt = async (
      { signal, deadlineMs = Number.POSITIVE_INFINITY }: CallOptions,
      work: () => KubeObject,
    ): Promise<KubeObject> => {
      const how = fails();
      if (how === "hangs") await this.#clock.sleep(deadlineMs, signal);
      if (how === "refused" || how === "hangs") throw new NodekeeperError("unavailable", "no connection");
      const answer = work();
      if (how === "lost") throw new NodekeeperError("unavailable", "the response was lost");
      return structuredClone(answer);
    };
    const stored = (object: KubeObject) => {
      const metadata = { ...object.metadata, uid: "u", resourceVersion: `${++this.#version}` };
      this.lease = structuredClone({ ...object, metadata });
      return this.lease;
    };
    return {
      get: (_resource, _name, options = {}) =>
        attempt(options, () => {
          this.requests.push(`get ${options.resourceVersion ?? ""}`.trim());
          if (!this.lease) throw new NodekeeperError("notFound", "no lease");
          return this.lease;
        }),
      create: (_resource, object, options = {}) =>
        attempt(options, () => {
          if (this.lease) throw new NodekeeperError("conflict", "exists");
          return stored(object);
        }),
      update: (_resource, object, options = {}) =>
        attempt(options, () => {
          this.requests.push("update");
          // The API server creates a Lease that is updated, but not one with a UID.
          if (object.metadata.resourceVersion !== this.lease?.metadata.resourceVersion)
            throw new NodekeeperError("conflict", "changed");
          return stored(object);
        }),
      delete: async (_resource, _name, options = {}) => {
        await attempt(options, () => {
          this.requests.push("delete");
          if (!this.lease) throw new NodekeeperError("notFound", "no lease");
          const { uid, resourceVersion } = options.preconditions ?? {};
          const { metadata } = this.lease;
          if (uid !== metadata.uid || resourceVersion !== metadata.resourceVersion)
            throw new NodekeeperError("conflict", "changed");
          const deleted = this.lease;
          this.lease = undefined;
          return deleted;
        });
      },
    };
  }
}

interface Candidate {
  election: LeaseElection;
  /** Ends the process cleanly. */
  stop(): Promise<void>;
  isLeading: boolean;
  /** Whether it has nothing left to lead for. */
  isDone: boolean;
  terms: number;
}

const times = {
  durationMs: 40_000,
  deadlineMs: 30_000,
  renewMs: 10_000,
  lookMs: 30_000,
  abandonedMs: 600_000,
};

function start(
  clock: FakeClock,
  identity: string,
  client: LeaseElectionOptions["client"],
  isPatient = false,
): Candidate {
  const named = { namespace: "nodekeeper", name: "pools", identity };
  const election = new LeaseElection({
    ...named,
    client,
    clock,
    log: silentLogger,
    times,
    random: () => 0.5,
  });
  const end = new AbortController();
  const candidate: Candidate = {
    election,
    isLeading: false,
    isDone: false,
    terms: 0,
    stop: async () => {
      end.abort(new Error("stopped"));
      await running;
    },
  };
  const lead = async (signal: AbortSignal) => {
    candidate.isLeading = true;
    candidate.terms++;
    await untilAborted(signal);
    candidate.isLeading = false;
    return candidate.isDone;
  };
  const running = election.run(lead, end.signal, isPatient);
  return candidate;
}

test("the first one holds the lease and renews it, the others look on", async () => {
  const clock = new FakeClock();
  const server = new Server(clock);
  const a = start(clock, "a", server.client());
  await clock.step(0);
  const b = start(clock, "b", server.client());
  for (let at = 0; at < 30; at++) {
    await clock.step(10_000);
    expect([a.isLeading, b.isLeading]).toEqual([true, false]);
  }
  expect(server.spec).toMatchObject({ holderIdentity: "a", leaseDurationSeconds: 40, leaseTransitions: 0 });
  expect(b.election.holder).toBe("a");
  await Promise.all([a.stop(), b.stop()]);
});

test("a holder that stops releases it once its work has ended, and the next one need not wait", async () => {
  const clock = new FakeClock();
  const server = new Server(clock);
  const a = start(clock, "a", server.client());
  await clock.step(0);
  const b = start(clock, "b", server.client());
  await clock.step(0);
  await a.stop();
  expect(a.isLeading).toBe(false);
  expect(server.spec.holderIdentity).toBe("");
  await clock.step(times.lookMs);
  expect(b.isLeading).toBe(true);
  expect(server.spec).toMatchObject({ holderIdentity: "b", leaseTransitions: 1 });
  await b.stop();
});

test.each(["hangs", "lost"] as const)(
  "a holder that stops while its renewal %s releases it once",
  async (how) => {
    const clock = new FakeClock();
    const server = new Server(clock);
    let fault: typeof how | undefined;
    const a = start(
      clock,
      "a",
      server.client(() => fault),
    );
    await clock.step(0);
    fault = how;
    await clock.step(times.renewMs);
    fault = undefined;
    await a.stop();
    expect(server.spec.holderIdentity).toBe("");
    const b = start(clock, "b", server.client());
    await clock.step(0);
    expect(b.isLeading).toBe(true);
    expect(server.spec.leaseTransitions).toBe(1);
    await b.stop();
  },
);

test("a holder that stops while its renewal fails leaves the lease of another", async () => {
  const clock = new FakeClock();
  const server = new Server(clock);
  let fault: "hangs" | undefined;
  const a = start(
    clock,
    "a",
    server.client(() => fault),
  );
  await clock.step(0);
  fault = "hangs";
  await clock.step(times.renewMs);
  fault = undefined;
  const metadata = { ...server.lease!.metadata, resourceVersion: "1000" };
  server.lease = { metadata, spec: { ...server.spec, holderIdentity: "intruder" } };
  await a.stop();
  expect(server.spec.holderIdentity).toBe("intruder");
  expect(server.lease.metadata.resourceVersion).toBe("1000");
});

test("a holder that is done deletes its lease", async () => {
  const clock = new FakeClock();
  const server = new Server(clock);
  const a = start(clock, "a", server.client());
  await clock.step(0);
  a.isDone = true;
  await a.stop();
  expect(server.lease).toBeUndefined();
});

test("a holder that is done leaves a lease that another holds", async () => {
  const clock = new FakeClock();
  const server = new Server(clock);
  const a = start(clock, "a", server.client());
  await clock.step(0);
  const metadata = { ...server.lease!.metadata, resourceVersion: "1000" };
  server.lease = { metadata, spec: { ...server.spec, holderIdentity: "intruder" } };
  a.isDone = true;
  await a.stop();
  expect(server.spec.holderIdentity).toBe("intruder");
});

test("those that do not hold it are answered from the server's cache", async () => {
  const clock = new FakeClock();
  const server = new Server(clock);
  const a = start(clock, "a", server.client());
  await clock.step(0);
  server.requests.length = 0;
  const b = start(clock, "b", server.client());
  for (let at = 0; at < 30; at++) await clock.step(10_000);
  expect(new Set(server.requests)).toEqual(new Set(["get 0", "update"]));
  expect(server.requests.filter((each) => each === "get 0")).toHaveLength(11);
  await Promise.all([a.stop(), b.stop()]);
});

test("a patient one creates no lease, and leaves it to others until it is abandoned", async () => {
  const clock = new FakeClock();
  const server = new Server(clock);
  const patient = start(clock, "patient", server.client(), true);
  for (let at = 0; at < 100; at++) await clock.step(10_000);
  expect(server.lease).toBeUndefined();
  const a = start(clock, "a", server.client());
  for (let at = 0; at < 100; at++) await clock.step(10_000);
  expect([a.isLeading, patient.isLeading]).toEqual([true, false]);
  await a.stop();
  let waited = 0;
  for (; !patient.isLeading; waited += 10_000) {
    expect(waited).toBeLessThan(2 * times.abandonedMs);
    await clock.step(10_000);
  }
  expect(waited).toBeGreaterThanOrEqual(times.abandonedMs);
  await patient.stop();
});

test("a holder that is gone is replaced when its lease has not changed for its whole duration", async () => {
  const clock = new FakeClock();
  const server = new Server(clock);
  let isGone = false;
  const a = start(
    clock,
    "a",
    server.client(() => (isGone ? "refused" : undefined)),
  );
  await clock.step(0);
  const b = start(clock, "b", server.client());
  await clock.step(times.lookMs);
  isGone = true;
  let waited = 0;
  for (; !b.isLeading; waited += 1_000) {
    expect(waited).toBeLessThan(2 * times.durationMs + times.lookMs);
    await clock.step(1_000);
  }
  expect(waited).toBeGreaterThanOrEqual(times.durationMs);
  expect(a.isLeading).toBe(false);
  await Promise.all([a.stop(), b.stop()]);
});

test.each(["refused", "hangs"] as const)("a holder whose renewals are %s ends in time", async (how) => {
  const clock = new FakeClock();
  const server = new Server(clock);
  let isOut = false;
  const a = start(
    clock,
    "a",
    server.client(() => (isOut ? how : undefined)),
  );
  await clock.step(0);
  isOut = true;
  for (let at = 0; at < times.deadlineMs - 1_000; at += 1_000) await clock.step(1_000);
  expect(a.isLeading).toBe(true);
  await clock.step(1_000);
  expect(a.isLeading).toBe(false);
  isOut = false;
  for (let at = 0; at < 3; at++) await clock.step(times.lookMs);
  expect(a).toMatchObject({ isLeading: true, terms: 2 });
  await a.stop();
});

test("a renewal whose response was lost, and an edit by another client, end no term", async () => {
  const clock = new FakeClock();
  const server = new Server(clock);
  let isLost = false;
  const a = start(
    clock,
    "a",
    server.client(() => (isLost ? "lost" : undefined)),
  );
  await clock.step(0);
  isLost = true;
  await clock.step(times.renewMs);
  isLost = false;
  await clock.step(5_000);
  await clock.step(5_000);
  server.lease!.metadata = { ...server.lease!.metadata, labels: { team: "x" }, resourceVersion: "1000" };
  for (let at = 0; at < 10; at++) await clock.step(5_000);
  expect(a).toMatchObject({ isLeading: true, terms: 1 });
  expect(server.lease!.metadata.labels).toEqual({ team: "x" });
  await a.stop();
});

test("a lease that another took is left", async () => {
  const clock = new FakeClock();
  const server = new Server(clock);
  const a = start(clock, "a", server.client());
  await clock.step(0);
  const metadata = { ...server.lease!.metadata, resourceVersion: "1000" };
  server.lease = { metadata, spec: { ...server.spec, holderIdentity: "intruder" } };
  await clock.step(times.renewMs);
  await clock.step(2_000);
  expect(a.isLeading).toBe(false);
  expect(server.spec.holderIdentity).toBe("intruder");
  await a.stop();
});

test("a lease that was deleted ends the term, and another one begins", async () => {
  const clock = new FakeClock();
  const server = new Server(clock);
  const a = start(clock, "a", server.client());
  await clock.step(0);
  server.lease = undefined;
  await clock.step(times.renewMs);
  await clock.step(2_000);
  expect(a).toMatchObject({ isLeading: true, terms: 2 });
  expect(server.spec.holderIdentity).toBe("a");
  await a.stop();
});

test("never do two hold it, however requests fail, and one does after the failures", async () => {
  const fault = fc.constantFrom(undefined, undefined, "refused", "lost", "hangs");
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fault, fault, fault), { maxLength: 60 }),
      fc.integer({ min: 500, max: 9_000 }),
      async (steps, stepMs) => {
        const clock = new FakeClock();
        const server = new Server(clock);
        let faults: (typeof steps)[number] = [undefined, undefined, undefined];
        const all = ["a", "b", "c"].map((name, at) =>
          start(
            clock,
            name,
            server.client(() => faults[at]),
          ),
        );
        for (faults of steps) {
          await clock.step(stepMs);
          expect(all.filter(({ isLeading }) => isLeading).length).toBeLessThanOrEqual(1);
        }
        faults = [undefined, undefined, undefined];
        for (let at = 0; at < 30; at++) {
          await clock.step(5_000);
          expect(all.filter(({ isLeading }) => isLeading).length).toBeLessThanOrEqual(1);
        }
        expect(all.filter(({ isLeading }) => isLeading)).toHaveLength(1);
        await Promise.all(all.map(({ stop }) => stop()));
      },
    ),
    { numRuns: 40 },
  );
});

test.each([
  ["the API server refuses all requests", () => "refused" as const, "failed to acquire lease, retrying"],
  ["its work fails", () => undefined, "work under the lease failed, retrying"],
])("if %s, it says so and goes on", async (_why, fails, message) => {
  const clock = new FakeClock();
  const server = new Server(clock);
  const messages: string[] = [];
  const log = { ...silentLogger, warn: (_fields: object, text: string) => messages.push(text) };
  const end = new AbortController();
  const election = new LeaseElection({
    ...{ namespace: "nodekeeper", name: "pools", identity: "a", client: server.client(fails) },
    ...{ clock, log: log as unknown as typeof silentLogger, times, random: () => 0.5 },
  });
  let terms = 0;
  const running = election.run(async () => {
    terms++;
    throw new Error("no slices can be written");
  }, end.signal);
  await clock.step(0);
  await clock.step(times.lookMs);
  expect(messages).toEqual([message, message]);
  expect(terms).toBe(fails() ? 0 : 2);
  expect(election.problem).toBeDefined();
  end.abort(new Error("stopped"));
  await running;
});
