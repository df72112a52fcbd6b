import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ContainerState, ListedContainer, Pod } from "../runtime/index.ts";
import { diffPods, samePods, transitionTypes } from "./diff.ts";
import { recordedState } from "./events.ts";

const containerOf = (
  id: string,
  state: ContainerState,
  kind: "container" | "sandbox" = "container",
): ListedContainer => ({
  id,
  name: id,
  kind,
  state,
  attempt: 0,
  createdAt: 0n,
});
const podOf = (...all: ListedContainer[]): Pod => ({
  uid: "a",
  name: "a",
  namespace: "default",
  sandboxes: all.filter(({ kind }) => kind === "sandbox"),
  containers: all.filter(({ kind }) => kind === "container"),
});
const emitted = (old: Pod | undefined, current: Pod | undefined) =>
  diffPods(old, current).map(({ type, container }) => `${type.replace("Container", "")} ${container.id}`);

describe("transitions", () => {
  it.each([
    ["missing", "running", "ContainerStarted"],
    ["missing", "exited", "ContainerDied"],
    ["missing", "unknown", "ContainerChanged"],
    ["unknown", "running", "ContainerStarted"],
    ["unknown", "exited", "ContainerDied"],
    ["unknown", "missing", "ContainerDied ContainerRemoved"],
    ["running", "exited", "ContainerDied"],
    ["running", "unknown", "ContainerChanged"],
    ["running", "missing", "ContainerDied ContainerRemoved"],
    ["exited", "running", "ContainerStarted"],
    ["exited", "unknown", "ContainerChanged"],
    ["exited", "missing", "ContainerRemoved"],
    ["running", "running", ""],
    ["missing", "missing", ""],
  ] as const)("%s to %s: %s", (old, current, types) => {
    expect(transitionTypes(old, current).join(" ")).toBe(types);
  });

  it.each([
    ["created", "unknown"],
    ["CONTAINER_PAUSED_SOME_DAY", "unknown"],
    [undefined, "missing"],
  ])("takes the state %s as %s", (state, recorded) => {
    expect(recordedState(state as ContainerState)).toBe(recorded);
  });
});

describe("diffPods", () => {
  it("starts sandboxes before containers and ends them after, with older containers first", () => {
    const pod = podOf(
      containerOf("c2", "running"),
      containerOf("c1", "running"),
      containerOf("s", "running", "sandbox"),
    );
    expect(emitted(undefined, pod)).toEqual(["Started s", "Started c1", "Started c2"]);
    expect(emitted(pod, undefined)).toEqual([
      "Died c1",
      "Removed c1",
      "Died c2",
      "Removed c2",
      "Died s",
      "Removed s",
    ]);
  });

  it("has the exits of several runs of a container in their order", () => {
    const before = podOf(containerOf("run1", "running"));
    const after = podOf(
      containerOf("run3", "running"),
      containerOf("run2", "exited"),
      containerOf("run1", "exited"),
    );
    expect(emitted(before, after)).toEqual(["Died run1", "Died run2", "Started run3"]);
  });

  it("counts an id that is listed twice once", () => {
    const twice = podOf(containerOf("c", "running"), containerOf("c", "exited"));
    expect(emitted(undefined, twice)).toEqual(["Started c"]);
    expect(emitted(twice, podOf(containerOf("c", "running")))).toEqual([]);
  });

  it("takes a container without a sandbox, and a pod without either", () => {
    expect(emitted(undefined, podOf(containerOf("c", "running")))).toEqual(["Started c"]);
    expect(emitted(undefined, podOf())).toEqual([]);
  });

  const states = fc.dictionary(
    fc.constantFrom("a", "b", "c", "d"),
    fc.constantFrom<ContainerState>("created", "running", "exited", "unknown"),
  );
  const podFrom = (found: Record<string, ContainerState>, reversed = false) => {
    const all = Object.entries(found).map(([id, state]) => containerOf(id, state));
    return podOf(...(reversed ? all.reverse() : all));
  };

  it("has the transitions of the table for each container, regardless of the order of the lists", () => {
    fc.assert(
      fc.property(states, states, fc.boolean(), (before, after, reversed) => {
        const found = diffPods(podFrom(before), podFrom(after, reversed));
        for (const id of ["a", "b", "c", "d"]) {
          const types = found.filter(({ container }) => container.id === id).map(({ type }) => type);
          expect(types).toEqual(transitionTypes(recordedState(before[id]), recordedState(after[id])));
        }
      }),
    );
  });

  it("finds nothing between a reading and itself", () => {
    fc.assert(
      fc.property(states, (found) => {
        expect(samePods(podFrom(found), podFrom(found))).toBe(true);
        expect(diffPods(podFrom(found), podFrom(found, true))).toEqual([]);
      }),
    );
  });
});
