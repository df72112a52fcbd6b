import { expect, it } from "vitest";
import { eventsOf, readEventsOf } from "./events-of.ts";

const event = (sequence: number, uid = "1") => ({
  ...{ sequence, type: "ContainerDied" as const, at: sequence, reason: "" },
  pod: { uid, namespace: "default", name: "web" },
});
const item = (sequence: number, uid?: string) => ({
  kind: "event" as const,
  cursor: `log-${sequence}`,
  event: event(sequence, uid),
});

it("has each event of the log and of the stream once, in order", () => {
  const logged = [{ kind: "snapshot" as const, cursor: "log-0", pods: [] }, item(2), item(4), item(5, "2")];
  const live = [event(4), event(3), event(6), event(7, "2")];
  expect(eventsOf("1", logged, live).map(({ sequence }) => sequence)).toEqual([2, 3, 4, 6]);
});

it("reads the log to its end, though a page has no event of the pod", async () => {
  const pages = new Map([
    [undefined, { items: [item(2)], cursor: "log-20000", end: false }],
    ["log-20000", { items: [], cursor: "log-40000", end: false }],
    ["log-40000", { items: [item(40_001)], cursor: "log-40001", end: true }],
  ]);
  const items = await readEventsOf("1", async ({ cursor, uid }) => {
    expect(uid).toBe("1");
    return { ...pages.get(cursor as string | undefined)!, problems: [] };
  });
  expect(items).toEqual([item(2), item(40_001)]);
});
