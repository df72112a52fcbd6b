import type { RoundSummary } from "@nodekeeper/api/records";
import { NodekeeperError, systemClock } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { serveRoutes } from "../../server/testing/serve-routes.ts";
import { httpConnection } from "../agent-connection.ts";
import type { Output } from "../output.ts";
import { agentRecords } from "./agent-records.ts";
import { roundLine } from "./round-line.ts";
import { roundsCommand } from "./rounds.ts";

const NOON = Date.parse("2026-03-01T12:00:00.000Z");
const summary = (id: number, changes: Partial<RoundSummary> = {}): RoundSummary => ({
  id,
  at: NOON + id * 5_000,
  pods: 30,
  candidates: 28,
  plugins: 2,
  met: [],
  victims: [],
  dryRunVictims: [],
  refusals: {},
  withdrawals: 0,
  outcomes: [],
  failures: [],
  ...changes,
});
const pod = (name: string) => ({ uid: name, namespace: "shop", name });
const plain: Output = { write() {}, isTerminal: false, columns: 120 };

describe("a round in a line", () => {
  it.each<[Partial<RoundSummary>, string]>([
    [{}, ""],
    [
      {
        met: ["pressure memory hard 94.1 > 90", "disk  soft 5 < 10 (not long enough yet)"],
        victims: [pod("web"), pod("db")],
      },
      "; met: pressure memory hard 94.1 > 90, disk  soft 5 < 10 (not long enough yet); evicts: shop/web, shop/db",
    ],
    [{ dryRunVictims: [pod("web")] }, "; dry run, would evict: shop/web"],
    [
      { refusals: { critical: 2, dryRun: 1 }, withdrawals: 3 },
      "; not evicted: 2 (critical priority), 1 (plugin in dry run); withdrawn: 3",
    ],
    [{ refusals: { paused: 1 } }, "; not evicted: 1 (retry pending after a failed attempt)"],
    [
      { refusals: { paused: 1 }, paused: [{ retryAt: NOON + 50_000, budget: "default/thumb" }] },
      "; not evicted: 1 (retry in 45 s: PodDisruptionBudget default/thumb)",
    ],
    [
      { refusals: { paused: 1 }, paused: [{ retryAt: NOON + 50_000, budget: null }] },
      "; not evicted: 1 (retry in 45 s, after a failed attempt)",
    ],
    [
      {
        refusals: { paused: 3, critical: 1 },
        paused: [
          { retryAt: NOON + 65_000, budget: "shop/web" },
          { retryAt: NOON + 35_000, budget: "shop/db" },
          { retryAt: NOON + 45_000, budget: null },
        ],
      },
      "; not evicted: 3 (first retry in 30 s: PodDisruptionBudgets shop/db, shop/web), 1 (critical priority)",
    ],
    [
      {
        outcomes: [
          { ...pod("web"), result: "terminated", message: "pod deleted" },
          { uid: "u-1", namespace: "", name: "", result: "failed", message: "no" },
        ],
      },
      "; shop/web evicted: pod deleted; the pod with UID u-1 not evicted: no",
    ],
    [
      { failures: ["slow thresholdMet: no answer\u001b[2J\nround 9"] },
      "; failed: slow thresholdMet: no answer\\u001b[2J\\nround 9",
    ],
  ])("%j", (changes, expected) => {
    expect(roundLine(summary(1, changes), plain)).toBe(
      `2026-03-01T12:00:05.000Z  round 1  28 of 30 pods are candidates${expected}\n`,
    );
  });
});

describe("rounds --follow", () => {
  let rounds: RoundSummary[];
  let out: string[];
  let errors: string[];
  let asked: string[];
  let failing = false;

  beforeEach(() => {
    [rounds, out, errors, asked] = [[], [], [], []];
    failing = false;
    vi.spyOn(process.stderr, "write").mockImplementation((text) => {
      errors.push(String(text));
      return true;
    });
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  const serve = (address?: string) =>
    serveRoutes(
      [
        {
          path: "eviction/rounds",
          summary: "two at once",
          handle(query) {
            asked.push(String(query));
            if (failing) throw new NodekeeperError("unavailable", "the database is unavailable");
            const [since, after] = [Number(query.get("since")), Number(query.get("after"))];
            return rounds.filter(({ id, at }) => id > after && at >= since).slice(0, 2);
          },
        },
      ],
      address,
    );

  /** Follows the rounds from an hour before `now`. Between two reads the next of `between` is run. */
  async function follow(
    address: string,
    now: number,
    between: (() => Promise<void> | void)[],
    signal: AbortSignal,
  ) {
    const clock = { ...systemClock, now: () => now, sleep: async () => between.shift()?.() };
    const output = { ...plain, write: (text: string) => void out.push(text) };
    const options = { format: "json", since: "1h", follow: true, records: false } as const;
    await roundsCommand(recordsAt(address), options, { output, clock, signal });
  }

  it("shows each round once, also while the agent is unavailable for a time, until it is stopped", async () => {
    rounds = [1, 2, 3, 4, 5].map((id) => summary(id));
    let server = await serve();
    const { address } = server;
    const stop = new AbortController();
    const between: (() => Promise<void> | void)[] = [
      () => void rounds.push(summary(6)),
      () => {},
      () => server.stop(),
      () => {},
      async () => {
        rounds.push(summary(7), summary(8));
        server = await serve(address);
      },
      () => stop.abort(),
    ];
    await follow(address, summary(0).at + 3_600_000, between, stop.signal);
    await server.stop();
    expect(out.map((line) => JSON.parse(line).id)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(between).toEqual([]);
    expect(errors).toEqual([
      expect.stringMatching(/^nodekeeper: the agent does not respond .*; retrying\n$/),
    ]);
    const [first, ...later] = asked.map((query) => new URLSearchParams(query).get("since"));
    expect(first).toBe(String(summary(0).at));
    expect(later.at(-1)).toBe(String(summary(6).at + 1));
  });

  it("continues when the agent restarts with a new database", async () => {
    rounds = [summary(1_000), summary(1_001)];
    const server = await serve();
    const stop = new AbortController();
    const between = [
      () => {
        failing = true;
      },
      () => {
        failing = false;
        rounds = [summary(1, { at: summary(1_002).at }), summary(2, { at: summary(1_003).at })];
      },
      () => void rounds.push(summary(3, { at: summary(1_004).at })),
      () => stop.abort(),
    ];
    await follow(server.address, summary(1_000).at + 1_000, between, stop.signal);
    await server.stop();
    expect(out.map((line) => JSON.parse(line).id)).toEqual([1_000, 1_001, 1, 2, 3]);
  });

  it("gives up at once where no agent has answered yet", async () => {
    const options = {
      format: "text",
      since: "1h",
      follow: true,
      records: false,
    } as const;
    const { signal } = new AbortController();
    await expect(
      roundsCommand(recordsAt("127.0.0.1:1"), options, { output: plain, clock: systemClock, signal }),
    ).rejects.toThrow(/agent does not respond/);
  });
});

function recordsAt(address: string) {
  return agentRecords(httpConnection({ address, name: "agent", advice: "" }));
}
