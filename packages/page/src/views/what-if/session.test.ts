import { decide } from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { RoundRecord } from "@nodekeeper/api/records";
import { describe, expect, it } from "vitest";
import { evictPod, TestRounds, testPod, testPolicy } from "../../../../agent/src/eviction/testing/rounds.ts";
import { Refusal, Unreachable } from "../../api.ts";
import type { FromWorker, RecordsRead, ReplayResult } from "./messages.ts";
import { ReplaySession, type SessionParts } from "./session.ts";

type Page = ApiAnswers["eviction/records"];

const policy = testPolicy();
const dryRun = testPolicy({ dryRunPlugins: ["*"] });

/** Rounds that evict one pod each. */
function recordsOf(count: number, pods = 1): RoundRecord[] {
  const names = Array.from({ length: pods }, (_, at) => testPod(`pod-${at}`));
  return Array.from({ length: count }, (_, at) => {
    const rounds = new TestRounds(names);
    rounds.now = 1_000_000 + at * 5_000;
    const input = structuredClone(rounds.input({ force: { pods: [evictPod("pod-0", { force: true })] } }));
    return { id: at + 1, input, decision: decide(input) };
  });
}

/** A session over these records, `perPage` at a time. */
function open(records: readonly RoundRecord[], changes: Partial<SessionParts> = {}, perPage = 2) {
  const messages: FromWorker[] = [];
  const asked: [since: number, after: number][] = [];
  const session = new ReplaySession({
    async readPage(since, after): Promise<Page> {
      asked.push([since, after]);
      const left = records.filter(({ id, input }) => id > after && input.now >= since);
      const page = left.slice(0, perPage);
      return {
        records: page,
        tooLarge: [],
        ...(left.length > perPage ? { next: page.at(-1)!.id } : {}),
      } as Page;
    },
    post: (message) => messages.push(structuredClone(message)),
    pause: async () => {},
    now: () => 0,
    ...changes,
  });
  const last = <Kind extends FromWorker["kind"]>(kind: Kind) =>
    messages.findLast((message): message is Extract<FromWorker, { kind: Kind }> => message.kind === kind);
  return {
    session,
    messages,
    asked,
    read: (): RecordsRead => last("records")!.records,
    result: (): ReplayResult => last("result")!.result,
  };
}

describe("a replay session", () => {
  it("reads page by page, and replays with the policy that it was given before", async () => {
    const { session, asked, read, result } = open(recordsOf(5));
    await session.take({ kind: "replay", run: 1, policy: dryRun });
    await session.take({ kind: "read", since: 1_000_000 });
    expect(asked).toEqual([
      [1_000_000, 0],
      [1_000_000, 2],
      [1_000_000, 4],
    ]);
    expect(read()).toMatchObject({
      rounds: 5,
      first: 1_000_000,
      last: 1_020_000,
      isReading: false,
      hasMore: false,
      policy,
    });
    expect(result()).toMatchObject({
      run: 1,
      replay: { rounds: 5, victimsBefore: 5, victimsAfter: 0 },
      policy: [{ field: "dryRunPlugins", recorded: [], replayed: ["*"] }],
      malformed: [],
    });
  });

  it("reads a batch, and the next when it is asked for", async () => {
    const { session, read, result } = open(recordsOf(7, 10_000), {}, 1);
    await session.take({ kind: "replay", run: 1, policy });
    await session.take({ kind: "read", since: 0 });
    expect(read()).toMatchObject({ rounds: 5, hasMore: true, isFull: false });
    await session.take({ kind: "readMore" });
    expect(read()).toMatchObject({ rounds: 7, hasMore: false });
    expect(result().replay).toMatchObject({ rounds: 7, differing: [] });
  });

  it("reads what has been recorded since, without the rounds that it has", async () => {
    const all = recordsOf(5);
    const known = all.slice(0, 3);
    const { session, asked, read, result } = open(known);
    await session.take({ kind: "replay", run: 1, policy });
    await session.take({ kind: "read", since: 0 });
    known.push(...all.slice(3));
    await session.take({ kind: "readMore" });
    expect(asked.at(-1)).toEqual([0, 3]);
    expect(read()).toMatchObject({ rounds: 5, lastId: 5, hasMore: false });
    expect(result().replay.rounds).toBe(5);
  });

  it("forgets what it read when it reads from another time", async () => {
    const { session, read, result } = open(recordsOf(5));
    await session.take({ kind: "replay", run: 1, policy });
    await session.take({ kind: "read", since: 0 });
    await session.take({ kind: "read", since: 1_015_000 });
    expect(read()).toMatchObject({ rounds: 2, first: 1_015_000 });
    expect(result().replay.rounds).toBe(2);
  });

  it("a newer policy replaces the replay that runs", async () => {
    let now = 0;
    const waiting: (() => void)[] = [];
    const { session, messages, result } = open(recordsOf(4), {
      now() {
        now += 1_000;
        return now;
      },
      pause: () => new Promise((resolve) => waiting.push(resolve)),
    });
    await session.take({ kind: "read", since: 0 });
    const first = session.take({ kind: "replay", run: 1, policy });
    const second = session.take({ kind: "replay", run: 2, policy: dryRun });
    let isDone = false;
    void Promise.all([first, second]).then(() => {
      isDone = true;
    });
    while (!isDone) {
      for (const resume of waiting.splice(0)) resume();
      await Promise.resolve();
    }
    expect(messages.filter(({ kind }) => kind === "result")).toHaveLength(1);
    expect(result()).toMatchObject({ run: 2, replay: { victimsAfter: 0 } });
    expect(messages).toContainEqual({ kind: "progress", run: 2, done: 2, of: 4 });
  });

  it("stops on request, and keeps what it read", async () => {
    const all = recordsOf(6);
    const { session, read, result } = open(all, {
      async readPage(_since, after) {
        if (after === 2) void session.take({ kind: "stop" });
        return { records: all.slice(after, after + 2), tooLarge: [], next: after + 2 } as Page;
      },
    });
    await session.take({ kind: "replay", run: 1, policy });
    await session.take({ kind: "read", since: 0 });
    expect(read()).toMatchObject({ rounds: 4, hasMore: true, isReading: false });
    expect(read().failure).toBeUndefined();
    expect(result().replay.rounds).toBe(2);
    await session.take({ kind: "resume" });
    expect(result().replay.rounds).toBe(4);
  });

  it("has a result while it reads", async () => {
    let now = 0;
    const { session, messages } = open(recordsOf(5), {
      now() {
        now += 1_000;
        return now;
      },
    });
    await session.take({ kind: "replay", run: 1, policy });
    await session.take({ kind: "read", since: 0 });
    const rounds = messages.flatMap((message) =>
      message.kind === "result" ? [message.result.replay.rounds] : [],
    );
    expect(rounds).toEqual([2, 4, 5, 5]);
  });

  it("replays what it could read where the agent stops answering, and continues there", async () => {
    const all = recordsOf(4);
    let isDown = true;
    const { session, read, result } = open(all, {
      async readPage(_since, after) {
        if (after === 2 && isDown) throw new Unreachable("the agent does not answer");
        return {
          records: all.slice(after, after + 2),
          tooLarge: [],
          ...(after === 0 ? { next: 2 } : {}),
        } as Page;
      },
    });
    await session.take({ kind: "replay", run: 1, policy });
    await session.take({ kind: "read", since: 0 });
    expect(read()).toMatchObject({ rounds: 2, hasMore: true, failure: { kind: "unreachable" } });
    expect(result().replay.rounds).toBe(2);
    isDown = false;
    await session.take({ kind: "readMore" });
    expect(read()).toMatchObject({ rounds: 4, hasMore: false });
    expect(read().failure).toBeUndefined();
    expect(result().replay.rounds).toBe(4);
  });

  it("has the agent's refusal and the rounds that are too large", async () => {
    const refused = open([], {
      readPage: async () => {
        throw new Refusal(404, "eviction/records is not served: eviction.enabled is off", undefined);
      },
    });
    await refused.session.take({ kind: "read", since: 0 });
    expect(refused.read().failure).toEqual({
      kind: "refused",
      status: 404,
      message: "eviction/records is not served: eviction.enabled is off",
    });
    const large = open([], {
      readPage: async () => ({ records: [], tooLarge: [{ id: 7, bytes: 13_000_000 }] }),
    });
    await large.session.take({ kind: "read", since: 0 });
    expect(large.read()).toMatchObject({
      rounds: 0,
      tooLarge: [{ id: 7, bytes: 13_000_000 }],
      hasMore: false,
    });
  });

  it("leaves out a malformed round, and names it", async () => {
    const [good, bad] = recordsOf(2);
    const { session, result } = open([good!, { ...bad!, input: { ...bad!.input, plugins: null as never } }]);
    await session.take({ kind: "replay", run: 1, policy });
    await session.take({ kind: "read", since: 0 });
    expect(result().replay.rounds).toBe(1);
    expect(result().malformed).toMatchObject([{ id: 2, message: expect.any(String) }]);
  });
});
