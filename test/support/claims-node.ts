import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Plugin } from "@nodekeeper/sdk";
import { DraKubelet } from "@nodekeeper/testing";
import { afterEach, beforeEach } from "vitest";
import { type RunningAgent, startAgent } from "./agent.ts";
import { startCluster, type TestCluster } from "./cluster.ts";

/** A node of its own for each test of a file: the whole agent between drivers and a kubelet that asks for claims. */
export interface ClaimsNode {
  /** Has a short path, for the sockets of plugins; "cdi" in it is the CDI directory. */
  directory: string;
  cluster: TestCluster;
  kubelet: DraKubelet;
  agent: RunningAgent;
  /** Stopped after the test. */
  drivers: Plugin[];
  /** Starts the agent as the kubelet's plugin. Tests that start it again stop it before. */
  start(flags?: Record<string, string>): Promise<void>;
}

/** Starts a cluster and a kubelet before each test, and ends them with the agent and the drivers after it. */
export function useClaimsNode(common: Record<string, string> = {}): ClaimsNode {
  const node = {
    drivers: [] as Plugin[],
    async start(flags) {
      node.agent = await startAgent(node.cluster, {
        devicesKubeletPluginEnabled: "true",
        devicesKubeletPluginRegistryDirectory: join(node.directory, "reg"),
        devicesKubeletPluginCdiDirectory: join(node.directory, "cdi"),
        ...common,
        ...flags,
      });
    },
  } as ClaimsNode;
  beforeEach(async () => {
    node.directory = mkdtempSync(join(tmpdir(), "nkc-"));
    node.cluster = await startCluster();
    node.kubelet = new DraKubelet(join(node.directory, "reg"));
  });
  afterEach(async () => {
    node.kubelet[Symbol.dispose]();
    await node.agent.stop();
    await Promise.all(node.drivers.splice(0).map((driver) => driver.stop()));
    await node.cluster.stop();
    rmSync(node.directory, { recursive: true, force: true });
  });
  return node;
}
