import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type ClaimToPrepare,
  type ClaimToUnprepare,
  type DeviceDriverOptions,
  type Plugin,
  type PreparedDevice,
  serveDeviceDriver,
} from "@nodekeeper/sdk";
import { beforeEach } from "vitest";
import { useClaimsNode } from "./claims-node.ts";
import { NODE } from "./cluster.ts";

export const DRIVER = "accelerators.example.com";

/** What a driver of a test was asked. */
interface DriverCalls {
  prepared: ClaimToPrepare[];
  unprepared: ClaimToUnprepare[];
}

export function edits(claim: ClaimToPrepare): PreparedDevice[] {
  return claim.devices.map(({ request, pool, device, shareId }) => ({
    request,
    pool,
    device,
    ...(shareId ? { shareId } : {}),
    edits: {
      env: { [device.toUpperCase().replaceAll("-", "_")]: "1" },
      deviceNodes: [{ path: `/dev/${device}`, hostPath: "/dev/null" }],
    },
  }));
}

/** Starts a node with its agent for each test of a file. Returns it with functions that serve a driver and store its claims. */
export function useClaimsDriver() {
  const node = useClaimsNode({ devicesMinWriteInterval: "0s" });

  beforeEach(() => node.start());

  async function serve(options: Partial<DeviceDriverOptions> = {}): Promise<Plugin & DriverCalls> {
    const calls: DriverCalls = { prepared: [], unprepared: [] };
    const { prepare = edits, unprepare = () => {}, ...rest } = options;
    const driver = serveDeviceDriver({
      name: DRIVER,
      socketDir: node.agent.pluginDir,
      async *devices() {
        yield [{ devices: [{ name: "device-0" }, { name: "device-1" }] }];
      },
      prepare(claim, signal) {
        calls.prepared.push(claim);
        return prepare(claim, signal);
      },
      unprepare(claim, signal) {
        calls.unprepared.push(claim);
        return unprepare(claim, signal);
      },
      ...rest,
    });
    node.drivers.push(driver);
    await driver.ready;
    return Object.assign(driver, calls);
  }

  /** Stores an allocated claim. Returns the kubelet's reference to it. */
  function claim(name: string, devices: string[] | object[] = ["device-0"], config: object[] = []) {
    const results = devices.map((device) =>
      typeof device === "string" ? { request: "req", driver: DRIVER, pool: NODE, device } : device,
    );
    const stored = node.cluster.server.store.put({
      apiVersion: "resource.k8s.io/v1",
      kind: "ResourceClaim",
      metadata: { name, namespace: "default" },
      spec: {},
      status: {
        allocation: { devices: { results, config } },
        reservedFor: [
          { resource: "pods", name: "pod-of-claim", uid: "11111111-2222-3333-4444-555555555555" },
        ],
      },
    });
    return { namespace: "default", name, uid: stored.metadata.uid! };
  }

  /** The CDI files, read as a container runtime reads YAML that is JSON but for a comment. */
  function cdiFiles(): { name: string; spec: Record<string, unknown> }[] {
    if (!existsSync(join(node.directory, "cdi"))) return [];
    return readdirSync(join(node.directory, "cdi"))
      .filter((name) => name.endsWith(".yaml"))
      .map((name) => {
        const text = readFileSync(join(node.directory, "cdi", name), "utf8");
        return { name, spec: JSON.parse(text.slice(text.indexOf("\n"))) };
      });
  }

  const claimsOfDriver = async () =>
    (await node.agent.api("claims")).find(({ driver }: { driver: string }) => driver === DRIVER);

  return { node, serve, claim, cdiFiles, claimsOfDriver };
}
