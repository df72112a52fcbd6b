import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Cluster } from "./cluster.ts";
import { Kubectl } from "./kubectl.ts";
import { kubectlScript } from "./testing/kubectl-script.ts";

// A connection to the agent of one node while its pod is replaced, with a script for kubectl.
let directory: string;
let kubectl: Kubectl;
const server = createServer((_, response) => response.end("[]"));

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "nk-kubectl-"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const path = kubectlScript(
    directory,
    `case "$1" in
  get) cat pods.json ;;
  port-forward)
    [ ! -e refused ] || { cat refused >&2; exit 1; }
    echo $$ > pid
    echo "Forwarding from 127.0.0.1:${(server.address() as AddressInfo).port} -> 10290"
    exec sleep 600 ;;
esac`,
  );
  kubectl = new Kubectl(path, []);
});

afterEach(async () => {
  kubectl.stop();
  await new Promise((resolve) => server.close(resolve));
  rmSync(directory, { recursive: true });
});

const write = (name: string, text: string) => writeFileSync(join(directory, name), text);

function haveAgents(...pods: readonly string[]): void {
  const items = pods.map((name) => ({
    metadata: { namespace: "nodekeeper", name, creationTimestamp: "2026-11-22T08:00:00Z" },
    spec: { nodeName: "n1", containers: [{}] },
    status: { phase: "Running", containerStatuses: [{ state: { running: {} } }] },
  }));
  write("pods.json", JSON.stringify({ items }));
}

/** Ends the forward, as the deletion of its pod does. */
function endForward(): void {
  process.kill(Number(readFileSync(join(directory, "pid"), "utf8")));
}

const cluster = () => new Cluster({ kubectl, namespace: "nodekeeper", selector: "app=x", parallel: 1 });

it("an agent whose pod is replaced is unavailable until it has another", async () => {
  haveAgents("agent-1");
  using agent = await cluster().connect("n1");
  expect(await agent.get("plugins")).toEqual([]);

  haveAgents();
  endForward();
  const missing = { code: "unavailable", message: expect.stringContaining("no pods match app=x") };
  await eventually(() => expect(agent.get("plugins")).rejects.toMatchObject(missing));

  haveAgents("agent-2");
  write("refused", 'Error from server (NotFound): pods "agent-2" not found\n');
  const deleted = { code: "unavailable", message: expect.stringContaining("(NotFound)") };
  await expect(agent.get("plugins")).rejects.toMatchObject(deleted);

  rmSync(join(directory, "refused"));
  expect(await agent.get("plugins")).toEqual([]);
});

it("an agent that is not there at first is not found", async () => {
  haveAgents();
  await expect(cluster().connect("n1")).rejects.toMatchObject({ code: "notFound", id: "NK1716" });
});

it("an agent whose pod is deleted after it was listed has not answered that it has no record", async () => {
  haveAgents("agent-1");
  write("refused", 'Error from server (NotFound): pods "agent-1" not found\n');
  const explained = cluster().explainPod({ namespace: "default", name: "web" }, undefined);
  await expect(explained).rejects.toMatchObject({
    code: "unavailable",
    id: "NK1710",
    message: expect.stringContaining("of which 1 did not answer: n1 ("),
  });
});
