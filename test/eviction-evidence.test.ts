import type { KubeObject } from "@nodekeeper/core/kube";
import { until } from "@nodekeeper/testing/until";
import { describe, expect, it } from "vitest";
import { runCli } from "../packages/agent/src/cli/index.ts";
import { useEvictionNode } from "./support/eviction-node.ts";
import { hardPressure, pick, type TestEvictionPlugin } from "./support/eviction-plugin.ts";

// Only a pod of which a request was accepted counts as evicted: the explanation, the rounds, the API, the metrics and the
// Events of the whole agent, while another client ends the pod in front of the embedded API server.
const node = useEvictionNode({ removePodsAfterGrace: false });
let plugin: TestEvictionPlugin;

async function start(...names: string[]): Promise<void> {
  await node.start();
  plugin = await node.addPlugin("pressure");
  plugin.top = pick(names);
  plugin.threshold = { ...hardPressure };
}

async function command(...args: string[]): Promise<string> {
  let text = "";
  const write = (more: string) => {
    text += more;
  };
  const output = { write, isTerminal: false, columns: 120 };
  expect(await runCli(["node", "nodekeeper", ...args, "--server", node.agent.address], output)).toBe(0);
  return text;
}

const remove = () => node.cluster.server.store.delete("pods", "web", "default");
function finish(): void {
  const web = structuredClone(node.cluster.server.store.get("pods", "web", "default")) as KubeObject;
  node.cluster.server.store.put({ ...web, status: { ...(web.status as object), phase: "Succeeded" } });
}
const reasons = () => node.cluster.server.store.list("events").map(({ reason }) => reason);
const ended = (metrics: string, outcome: string) =>
  Number(new RegExp(`nodekeeper_eviction_ended_total{outcome="${outcome}"} (\\d+)`).exec(metrics)?.[1]);
const outcomeOf = async () => (await node.agent.api("eviction/evictions")).items[0]?.outcome;

describe("a pod that another client ends", () => {
  it.each([
    [
      "by deleting it before the request",
      "GET",
      remove,
      "superseded",
      "pod deleted before its eviction was sent",
    ],
    [
      "as a Job whose pod finishes before the request",
      "GET",
      finish,
      "superseded",
      "pod finished (Succeeded) before its eviction was sent",
    ],
    [
      "by deleting it while the response to the request is lost",
      "POST",
      remove,
      "unknown",
      "pod deleted; its request may have been accepted: ",
    ],
  ])("%s is not reported as evicted", async (_name, method, end, result, message) => {
    node.cluster.addPod("web");
    const path = method === "GET" ? "/pods/web" : "/pods/web/eviction";
    let hasEnded = false;
    node.cluster.fault = (request) => {
      if (hasEnded || request.method !== method || !request.path.endsWith(path)) return undefined;
      hasEnded = true;
      end();
      return method === "POST" ? "cut" : undefined;
    };
    await start("web");
    await until("the recorded outcome", async () => (await outcomeOf()) != null, {
      explain: () => node.agent.logLines,
    });
    plugin.threshold = {};
    expect(await outcomeOf()).toMatchObject({ result, message: expect.stringContaining(message) });
    const page = await command("explain", "pod", "default/web");
    expect(page).toContain(message);
    expect(page).not.toMatch(/\nEvicted at|ended +evicted/);
    expect(await command("rounds", "--since", "1h")).not.toMatch(/web evicted:/);
    const metrics = await node.agent.metrics();
    expect([ended(metrics, result), ended(metrics, "terminated")]).toEqual([1, 0]);
    expect(reasons()).not.toContain("Evicted");
  });
});

it("evictions that are all refused for a missing right fail EvictionKillerReady, and have no Event for each pod", async () => {
  const names = ["a", "b", "c", "d"];
  for (const name of names) node.cluster.addPod(name);
  const message =
    'pods "a" is forbidden: User "nodekeeper" cannot create resource "pods/eviction" in API group "" in the namespace "default"';
  const body = {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    reason: "Forbidden",
    message,
    code: 403,
  };
  node.cluster.fault = ({ method, path }) =>
    method === "POST" && path.endsWith("/eviction") ? { status: 403, body } : undefined;
  await start(...names);
  await until("three failed evictions", async () => ended(await node.agent.metrics(), "failed") >= 3, {
    explain: () => node.agent.logLines,
  });
  const { text } = await node.agent.ready();
  expect(text).toMatch(/EvictionKillerReady.*cannot create resource "pods\/eviction"/);
  expect(reasons()).not.toContain("EvictionFailed");
});

it("the outcome of an accepted eviction is recorded after two restarts, though a 503 meets the first reading after the first", async () => {
  node.cluster.addPod("web");
  await start("web");
  await until("the recorded acceptance", async () => {
    const { pending } = await node.agent.api("eviction/budgets");
    return pending.some(({ acceptedAt }: { acceptedAt: number | null }) => acceptedAt !== null);
  });
  plugin.threshold = {};
  await plugin.stop();
  await node.agent.stop();
  remove();
  let reads = 0;
  node.cluster.fault = ({ method, path }) => {
    if (method !== "GET" || !path.endsWith("/pods/web")) return undefined;
    reads++;
    return { status: 503 };
  };
  await node.start();
  await until("a reading and a round", async () => {
    const isDone = /nodekeeper_eviction_rounds_total{result="done"} [1-9]/.test(await node.agent.metrics());
    return reads > 0 && isDone;
  });
  await node.agent.stop();
  node.cluster.fault = () => undefined;
  await node.start();
  await until("the recorded outcome", async () => (await outcomeOf()) != null, {
    explain: () => node.agent.logLines,
  });
  expect(await outcomeOf()).toMatchObject({ result: "terminated", message: "pod deleted" });
  // Its deletion was not watched: when it was is not known.
  const page = await command("explain", "pod", "default/web");
  expect(page).toMatch(/\nEvicted at .*, pod deleted: requested by /);
  expect(page).toContain("  pod found deleted\n");
  expect(page).not.toContain("  pod deleted\n");
});
