import { describe, expect, it } from "vitest";
import { Mi, testPod } from "../intree/eviction/testing/parts.ts";
import { memoryRequest, podRequests, unitsOf } from "./pod-resources.ts";

const container = (memory: string, more: Record<string, unknown> = {}) => ({
  name: "c",
  resources: { requests: { memory } },
  ...more,
});
const sidecar = (memory: string) => container(memory, { restartPolicy: "Always" });

describe("requests of a pod", () => {
  it.each([
    ["containers add up", { containers: [container("1Mi"), container("2Mi")] }, 3, 3],
    [
      "a larger init container counts while it starts",
      { containers: [container("1Mi")], initContainers: [container("5Mi")] },
      5,
      1,
    ],
    ["a smaller one does not", { containers: [container("3Mi")], initContainers: [container("2Mi")] }, 3, 3],
    ["sidecars run beside", { containers: [container("1Mi")], initContainers: [sidecar("2Mi")] }, 3, 3],
    [
      "an init container runs beside the sidecars before it",
      { containers: [container("1Mi")], initContainers: [sidecar("2Mi"), container("4Mi")] },
      6,
      3,
    ],
    [
      "and not beside those after it",
      { containers: [container("1Mi")], initContainers: [container("4Mi"), sidecar("2Mi")] },
      4,
      3,
    ],
    ["overhead is added", { containers: [container("1Mi")], overhead: { memory: "1Mi" } }, 2, 2],
    [
      "the pod's own request holds",
      { containers: [container("1Mi")], resources: { requests: { memory: "9Mi" } } },
      9,
      9,
    ],
  ])("%s", (_, spec, starting, running) => {
    const pod = testPod("p", { spec }).details;
    expect(unitsOf(podRequests(pod).get("memory")!)).toBe(starting * Mi);
    expect(memoryRequest(pod)).toBe(running * Mi);
  });

  it("are none where none are stated, not 0", () => {
    const pod = testPod("p").details;
    expect(podRequests(pod).size).toBe(0);
    expect(memoryRequest(pod)).toBeUndefined();
  });
});
