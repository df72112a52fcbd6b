import { describe, expect, it } from "vitest";
import { barAt, isMatch, orderOf, rowsOf } from "./rows.ts";
import { barsOfAll, eventAt } from "./testing.ts";

const pod = (name: string) => ({ uid: name, namespace: "default", name });
const container = (id: string) => ({ id, name: "main", kind: "container" as const });
// "calm" and "aged" start before the range, "busy" exits and starts again in it, "later" after it.
const pods = barsOfAll([
  eventAt(1, { pod: pod("calm"), container: container("calm-1") }),
  eventAt(2, { pod: pod("aged"), container: container("aged-1") }),
  eventAt(3, { pod: pod("busy"), container: container("busy-1") }),
  eventAt(20, { pod: pod("busy"), container: container("busy-1"), type: "ContainerDied", exitCode: 1 }),
  eventAt(24, { pod: pod("busy"), container: container("busy-2") }),
  eventAt(90, { pod: pod("later"), container: container("later-1") }),
]);
const range = { from: 10_000, to: 30_000 };
const all = { range, filter: "", expanded: new Set<string>() };

describe("rows of pods", () => {
  it("begin with the pods to which something happened", () => {
    expect(orderOf(pods, range, new Set())).toEqual(["busy", "aged", "calm"]);
    expect(orderOf(pods, range, new Set(["calm"]))).toEqual(["busy", "calm", "aged"]);
  });

  it("keep the order they have; pods that it lacks follow", () => {
    expect(rowsOf(pods, ["calm"], all).map(({ key }) => key)).toEqual(["calm", "aged", "busy"]);
  });

  it("are those that match the filter, by namespace and name", () => {
    expect(isMatch(pod("Web"), " fault/we")).toBe(true);
    expect(isMatch(pod("Web"), "fault/wa")).toBe(false);
    expect(rowsOf(pods, [], { ...all, filter: "Default/BU" }).map(({ key }) => key)).toEqual(["busy"]);
  });

  it("have one for each container of an expanded pod, with all its lives", () => {
    const rows = rowsOf(pods, ["busy"], { ...all, filter: "busy", expanded: new Set(["busy"]) });
    expect(rows.map(({ key, bars }) => [key, bars.length])).toEqual([
      ["busy", 2],
      ["busy/main", 2],
    ]);
  });

  it("have the bar that is under a pointer, or so near that it was meant", () => {
    const [row] = rowsOf(pods, ["busy"], { ...all, filter: "busy" });
    expect(barAt(row!, 15_000, 500)?.id).toBe("busy-1");
    expect(barAt(row!, 20_400, 500)?.id).toBe("busy-1");
    expect(barAt(row!, 22_000, 500)).toBeUndefined();
    expect(barAt(row!, 25_000, 500)?.id).toBe("busy-2");
  });
});
