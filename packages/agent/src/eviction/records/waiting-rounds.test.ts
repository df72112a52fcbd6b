import { emptyEvictionState } from "@nodekeeper/api/decide";
import type { RoundRecord } from "@nodekeeper/api/records";
import { describe, expect, it } from "vitest";
import { waitingRounds } from "./records.ts";

const round = (id: number, victims: number, plugin = "pressure") =>
  ({
    id,
    input: { outcomes: [], plugins: [], state: emptyEvictionState() },
    decision: {
      victims: Array(victims).fill({ plugin }),
      ...{ dryRunVictims: [], withdrawals: [], refusals: [], thresholds: [], failures: [] },
      state: emptyEvictionState(),
    },
  }) as unknown as RoundRecord;

const upTo = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, at) => first + at);

function drained(waiting: ReturnType<typeof waitingRounds>): number[] {
  const ids: number[] = [];
  waiting.drain(({ id }) => void ids.push(id));
  return ids;
}

function addTo(waiting: ReturnType<typeof waitingRounds>, record: RoundRecord): number[] {
  waiting.add(record);
  return waiting.bound().map(({ id }) => id);
}

describe("rounds that wait for room on the disk", () => {
  it("are written once, in their order, and wait on from the one that can't be written", () => {
    const waiting = waitingRounds();
    for (const id of [1, 2, 3]) waiting.add(round(id, 0));
    const written: number[] = [];
    const write = ({ id }: RoundRecord) => {
      if (id === 2) throw new Error("full");
      written.push(id);
    };
    expect(() => waiting.drain(write)).toThrow("full");
    expect(written).toEqual([1]);
    expect(drained(waiting)).toEqual([2, 3]);
    expect(waiting.items.length).toBe(0);
  });

  it("are 64 at most, of which those that decided something stay", () => {
    const waiting = waitingRounds();
    for (let id = 1; id <= 1_000; id++) addTo(waiting, round(id, id % 20 === 0 ? 1 : 0));
    const ids = drained(waiting);
    expect(ids).toHaveLength(64);
    expect(ids.filter((id) => id % 20 === 0)).toHaveLength(50);
    expect(ids.at(-1)).toBe(1_000);
    for (let id = 1; id <= 100; id++) addTo(waiting, round(id, 1));
    expect(drained(waiting)).toEqual(Array.from({ length: 64 }, (_, at) => 37 + at));
  });

  it("of one plugin do not displace those of another", () => {
    const waiting = waitingRounds();
    waiting.add(round(1, 1, "rare"));
    const dropped: number[] = [];
    for (let id = 2; id <= 100; id++) dropped.push(...addTo(waiting, round(id, 1, "often")));
    expect(drained(waiting)).toContain(1);
    expect(dropped).toEqual(upTo(2, 37));
  });
});
