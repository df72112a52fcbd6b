import { expect, it } from "vitest";
import { FakeClock } from "../lib/index.ts";
import type { WatchEvent } from "./types.ts";
import {
  WATCH_BYTES_AT_ONCE,
  WATCH_BYTES_PER_SECOND,
  WATCHED_BYTES,
  WatchBudget,
  WatchedObjects,
} from "./watch-budget.ts";

const MIB = 2 ** 20;
const exceeded = expect.objectContaining({ code: "exhausted", id: "NK1215" });

function event(type: WatchEvent["type"], name: string): WatchEvent {
  return { type, object: { metadata: { name, namespace: "default" } } };
}

it("a watch may send its burst at once, and then its rate", async () => {
  const clock = new FakeClock();
  const budget = new WatchBudget("watch pods", clock);
  budget.take(WATCH_BYTES_AT_ONCE);
  expect(() => budget.take(1)).toThrow(exceeded);
  await clock.step(1_000);
  budget.take(WATCH_BYTES_PER_SECOND);
  expect(() => budget.take(1)).toThrow(exceeded);
});

it("objects of watches count until they are deleted, replaced by a smaller event, or listed again", () => {
  const objects = new WatchedObjects("watch pods");
  const most = WATCHED_BYTES / MIB;
  for (let at = 0; at < most; at++) objects.take(event("ADDED", `p${at}`), MIB);
  expect(() => objects.take(event("ADDED", "more"), 1)).toThrow(exceeded);
  objects.take(event("DELETED", "p0"), MIB);
  objects.take(event("ADDED", "more"), MIB);
  for (let n = 0; n < 100; n++) objects.take(event("MODIFIED", "p1"), MIB);
  objects.take(event("BOOKMARK", ""), 100 * MIB);
  objects.clear();
  for (let at = 0; at < most; at++) objects.take(event("ADDED", `q${at}`), MIB);
});
