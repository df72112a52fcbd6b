import { WatchResponse } from "@nodekeeper/core/gen/nodekeeper/lifecycle/v1alpha1/api.ts";
import { FakeClock } from "@nodekeeper/core/lib";
import { beforeEach, describe, expect, it } from "vitest";
import type { LogItem, PodCacheEntry } from "../lifecycle/index.ts";
import { WatchAnswers } from "./watch-answers.ts";

const clock = new FakeClock();
let entry: PodCacheEntry;
let version: number;
let answers: WatchAnswers;
const newEntry = (ip: string): PodCacheEntry => ({
  status: { uid: "a", name: "pod-a", namespace: "default", ips: [ip], sandboxes: [], containers: [] },
  error: undefined,
  modifiedAt: 0,
  observedAt: 0,
});
beforeEach(() => {
  entry = newEntry("10.0.0.1");
  version = 1;
  const statuses = {
    get: () => entry,
    get version() {
      return version;
    },
  };
  answers = new WatchAnswers({ statuses, clock });
});

function event(sequence: number, log = "log1"): Extract<LogItem, { kind: "event" }> {
  const pod = { uid: "a", namespace: "default", name: "pod-a" };
  const container = { id: `c${sequence}`, name: "app", kind: "container" as const };
  const about = { type: "ContainerStarted" as const, exitCode: undefined, reason: "", at: 7 };
  return { kind: "event", position: { log, sequence }, event: { ...about, sequence, pod, container } };
}

const decode = (answer: { bytes: Uint8Array }) => WatchResponse.decode(answer.bytes);

describe("answers of Watch", () => {
  it("are encoded once for each event, and again for another status, log, or an event in the same place", () => {
    const first = answers.event(event(1), false);
    expect(answers.event(event(1), false)).toBe(first);
    expect(decode(first)).toMatchObject({ cursor: "log1-1", event: { container: { id: "c1" } } });
    const withStatus = answers.event(event(1), true);
    expect(answers.event(event(1), true)).toBe(withStatus);
    entry = newEntry("10.0.0.2");
    expect(decode(answers.event(event(1), true)).event?.status?.ips).toEqual(["10.0.0.2"]);
    expect(decode(answers.event(event(1, "log2"), false)).cursor).toBe("log2-1");
    const same = event(1 + answers.mostInBatch);
    expect(decode(answers.event(same, false)).event?.sequence).toBe(BigInt(same.event.sequence));
    expect(decode(answers.event(event(1), false)).event?.sequence).toBe(1n);
  });

  it("come as one batch, the same for all who get the same events", () => {
    const batchesOf = (...sequences: number[]) => [
      ...answers.batches(sequences.map((sequence) => answers.event(event(sequence), false))),
    ];
    const [batch, ...more] = batchesOf(1, 2, 3);
    expect(more).toEqual([]);
    expect(batchesOf(1, 2, 3)[0]).toBe(batch);
    const { cursor, batch: decoded } = WatchResponse.decode(batch!);
    expect([cursor, decoded?.answers.map((answer) => answer.cursor)]).toEqual([
      "log1-3",
      ["log1-1", "log1-2", "log1-3"],
    ]);
    const others = WatchResponse.decode(batchesOf(1, 3)[0]!);
    expect(others.batch?.answers.map((answer) => answer.event?.sequence)).toEqual([1n, 3n]);
    expect(batchesOf(1)).toEqual([answers.event(event(1), false).bytes]);
    expect(batchesOf()).toEqual([]);
  });

  it("come in several batches where they are large", () => {
    const large = Array.from({ length: 10 }, (_, at) => ({
      position: { log: "log1", sequence: at + 1 },
      bytes: answers.event(
        { ...event(at + 1), event: { ...event(at + 1).event, reason: "x".repeat(400_000) } },
        false,
      ).bytes,
    }));
    const batches = [...answers.batches(large)].map((bytes) => WatchResponse.decode(bytes));
    expect(batches.map(({ cursor }) => cursor)).toEqual(["log1-3", "log1-6", "log1-9", "log1-10"]);
    const sequences = batches.flatMap((each) =>
      (each.batch?.answers ?? [each]).map(({ event }) => event?.sequence),
    );
    expect(sequences).toEqual(large.map(({ position }) => BigInt(position.sequence)));
  });

  it("share a snapshot of all pods until something changes, and none of a selection", () => {
    const pods = [{ uid: "a", name: "pod-a", namespace: "default", sandboxes: [], containers: [] }];
    const item = {
      kind: "snapshot" as const,
      position: { log: "log1", sequence: 3 },
      why: "fellOff" as const,
      missed: 4,
      pods,
    };
    const whole = answers.snapshot(item, true, true);
    expect(answers.snapshot(item, true, true)).toBe(whole);
    expect(decode(whole).snapshot).toMatchObject({ missed: 4n, pods: [{ pod: { uid: "a" } }] });
    expect(decode(answers.snapshot({ ...item, pods: [] }, true, false)).snapshot?.pods).toEqual([]);
    version++;
    entry = newEntry("10.0.0.9");
    expect(decode(answers.snapshot(item, true, true)).snapshot?.pods[0]?.status?.ips).toEqual(["10.0.0.9"]);
  });
});
