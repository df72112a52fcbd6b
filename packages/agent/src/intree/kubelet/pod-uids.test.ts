import { expect, it } from "vitest";
import type { ContainerState, Pod } from "../../runtime/index.ts";
import { podUidLookup } from "./pod-uids.ts";

function pod(uid: string, name: string, ...sandboxes: [state: ContainerState, createdAt: bigint][]): Pod {
  return {
    uid,
    name,
    namespace: "default",
    containers: [],
    sandboxes: sandboxes.map(([state, createdAt], at) => ({
      id: `${uid}-${at}`,
      name: "",
      kind: "sandbox" as const,
      state,
      attempt: 0,
      createdAt,
    })),
  };
}

it.each<[string, Pod[], string | undefined]>([
  ["that runs", [pod("u1", "web", ["running", 5n])], "u1"],
  ["that is unknown", [pod("u1", "other", ["running", 5n])], undefined],
  ["that has ended", [pod("u1", "web", ["exited", 5n])], undefined],
  ["without a sandbox", [pod("u1", "web")], undefined],
  ["whose sandbox was recreated", [pod("u1", "web", ["running", 9n], ["exited", 5n])], "u1"],
  [
    "recreated with its old name",
    [pod("old", "web", ["exited", 9n]), pod("new", "web", ["running", 5n])],
    "new",
  ],
  ["that still runs twice", [pod("new", "web", ["running", 9n]), pod("old", "web", ["running", 5n])], "new"],
])("finds the UID of a pod %s", (_, pods, expected) => {
  expect(podUidLookup(pods)("default", "web")).toBe(expected);
  expect(podUidLookup([...pods].reverse())("default", "web")).toBe(expected);
});
