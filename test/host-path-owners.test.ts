import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ContainerEdits, type Plugin, serveDeviceDriver } from "@nodekeeper/sdk";
import { DraKubelet } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { NODE, startCluster, type TestCluster } from "./support/cluster.ts";
import { give, isRoot, rootDirectory, STRANGER } from "./support/owned-directory.ts";

// Whom the files on the node belong to that drivers' edits name: what another user than root can replace after it was
// checked may lead anywhere when the container runtime opens it.

const DRIVER = "accelerators.example.com";

let cluster: TestCluster;
let agent: RunningAgent;
let kubelet: DraKubelet;
// Short, for the sockets of plugins.
let directory: string;
let vendor: ReturnType<typeof rootDirectory>;
let driver: Plugin | undefined;
let edits: ContainerEdits;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "nkh-"));
  vendor = rootDirectory();
  chmodSync(vendor.path, 0o755);
  cluster = await startCluster();
  kubelet = new DraKubelet(join(directory, "reg"));
});

afterEach(async () => {
  kubelet[Symbol.dispose]();
  await agent.stop();
  await driver?.stop();
  await cluster.stop();
  vendor.remove();
  rmSync(directory, { recursive: true, force: true });
});

async function start(flags: Record<string, string> = {}): Promise<void> {
  agent = await startAgent(cluster, {
    devicesKubeletPluginEnabled: "true",
    devicesKubeletPluginRegistryDirectory: join(directory, "reg"),
    devicesKubeletPluginCdiDirectory: join(directory, "cdi"),
    devicesKubeletPluginHostPaths: vendor.path,
    devicesMinWriteInterval: "0s",
    pluginAllowedUids: String(STRANGER),
    ...flags,
  });
}

async function serve(): Promise<void> {
  driver = serveDeviceDriver({
    name: DRIVER,
    socketDir: agent.pluginDir,
    async *devices() {
      yield [{ devices: [{ name: "device-0" }, { name: "device-1" }] }];
    },
    prepare: (claim) => claim.devices.map(({ request, pool, device }) => ({ request, pool, device, edits })),
    unprepare: () => {},
  });
  await driver.ready;
}

function claim(name: string, device = "device-0") {
  const stored = cluster.server.store.put({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaim",
    metadata: { name, namespace: "default" },
    spec: {},
    status: {
      allocation: {
        devices: {
          results: [{ request: "req", driver: DRIVER, pool: NODE, device }],
          config: [],
        },
      },
      reservedFor: [{ resource: "pods", name: "pod", uid: "11111111-2222-3333-4444-555555555555" }],
    },
  });
  return { namespace: "default", name, uid: stored.metadata.uid! };
}

async function prepare(name = "wanted", device = "device-0"): Promise<string> {
  const wanted = claim(name, device);
  return (await kubelet.prepare(DRIVER, wanted))[wanted.uid]!.error;
}

function cdiFiles(): string[] {
  if (!existsSync(join(directory, "cdi"))) return [];
  return readdirSync(join(directory, "cdi")).filter((name) => name.endsWith(".yaml"));
}

/** Files on the node that the CDI files lead to, as a container runtime would open them. */
function opened(): string[] {
  const texts = cdiFiles().map((name) => readFileSync(join(directory, "cdi", name), "utf8"));
  const named = texts.flatMap((text) => [...text.matchAll(/"(?:hostPath|path)": "(.*)"/g)]);
  return named
    .map(([, path]) => path!)
    .filter((path) => existsSync(path))
    .map((path) => realpathSync(path));
}

describe.runIf(isRoot)("of a directory that belongs to the driver's user", () => {
  let data: string;

  beforeEach(async () => {
    data = join(vendor.path, "data");
    mkdirSync(join(data, "etc"), { recursive: true });
    writeFileSync(join(data, "etc/shadow"), "the driver's own\n", { mode: 0o755 });
    give(STRANGER, data, join(data, "etc"), join(data, "etc/shadow"));
    await start();
    await serve();
  });

  const kinds: [string, string, (path: string) => ContainerEdits][] = [
    ["a mount", "mounts[0].hostPath", (hostPath) => ({ mounts: [{ hostPath, containerPath: "/data" }] })],
    ["a hook", "hooks[0].path", (path) => ({ hooks: [{ hookName: "createRuntime", path }] })],
    [
      "a device node",
      "deviceNodes[0].hostPath",
      (hostPath) => ({ deviceNodes: [{ path: "/dev/x", hostPath, type: "p" }] }),
    ],
  ];

  it.each(kinds)(
    "%s is refused, and can't be swapped for a link after the check",
    async (_, field, editing) => {
      edits = editing(join(data, "etc/shadow"));
      const error = await prepare();
      // What the driver does once the check is over.
      renameSync(join(data, "etc"), join(data, "before"));
      symlinkSync("/etc", join(data, "etc"));
      expect(opened()).not.toContain("/etc/shadow");
      expect(error).toMatch(/^NK1513: /);
      expect(error).toContain(
        `edits.${field}: ${JSON.stringify(data)} on the way to ${JSON.stringify(join(data, "etc/shadow"))} belongs to user ID ${STRANGER}`,
      );
      expect(cdiFiles()).toEqual([]);
    },
  );

  it("a link of root's that leads there is refused as well", async () => {
    symlinkSync("data/etc", join(vendor.path, "link"));
    edits = { mounts: [{ hostPath: join(vendor.path, "link"), containerPath: "/data" }] };
    expect(await prepare()).toContain(`${JSON.stringify(data)} on the way to`);
  });
});

describe.runIf(isRoot)("of a directory that passes into another user's hands after the preparation", () => {
  let data: string;

  beforeEach(async () => {
    data = join(vendor.path, "data");
    mkdirSync(data);
    edits = { mounts: [{ hostPath: data, containerPath: "/data" }] };
    await start();
    await serve();
  });

  it("no CDI file is written again, until root owns the directory again", async () => {
    const wanted = claim("wanted");
    expect((await kubelet.prepare(DRIVER, wanted))[wanted.uid]!.error).toBe("");
    give(STRANGER, data);
    rmSync(join(directory, "cdi", cdiFiles()[0]!));
    // A call that comes after the comparison of the directory with the records is refused as well.
    await eventually(async () => {
      const [row] = await agent.api("claims");
      expect(row.problem).toContain(`${JSON.stringify(data)} belongs to user ID ${STRANGER}`);
    });
    expect((await kubelet.prepare(DRIVER, wanted))[wanted.uid]!.error).toMatch(
      /^NK1513: .*belongs to user ID/,
    );
    expect(cdiFiles()).toEqual([]);
    give(0, data);
    await until("the file is there again", () => cdiFiles().length === 1);
  });

  it("its CDI file is removed when the agent starts", async () => {
    expect(await prepare()).toBe("");
    await agent.stop();
    give(STRANGER, data);
    await start();
    await until("the file is removed", () => cdiFiles().length === 0);
    await eventually(() =>
      expect(agent.logLines).toContainEqual(
        expect.objectContaining({ errorId: "NK1513", msg: expect.stringContaining("CDI file removed") }),
      ),
    );
    give(0, data);
    await until("the file is there again", () => cdiFiles().length === 1);
  });
});

describe.runIf(isRoot)("with devices.kubeletPlugin.exemptRootDrivers", () => {
  it("a driver of root may use paths that others can change, one of another user may not", async () => {
    const data = join(vendor.path, "data");
    mkdirSync(data);
    give(STRANGER, data);
    edits = { mounts: [{ hostPath: data, containerPath: "/data" }] };
    await start({ devicesKubeletPluginExemptRootDrivers: "true" });
    await serve();
    expect(await prepare()).toBe("");
    expect(cdiFiles()).toHaveLength(1);

    const socket = (await agent.plugin(DRIVER))!.registrationSocket!;
    await agent.stop();
    give(STRANGER, socket);
    // The name belongs to root while the claim is prepared, unless it is bound to another user.
    await start({ devicesKubeletPluginExemptRootDrivers: "true", pluginNameOwners: `${DRIVER}=${STRANGER}` });
    await until("registered", async () => (await agent.plugin(DRIVER))?.state === "registered");
    expect(await prepare("second", "device-1")).toContain(
      `${JSON.stringify(data)} belongs to user ID ${STRANGER}`,
    );
  });

  it("is no right to leave devices.kubeletPlugin.hostPaths", async () => {
    edits = { mounts: [{ hostPath: "/etc", containerPath: "/data" }] };
    await start({ devicesKubeletPluginExemptRootDrivers: "true" });
    await serve();
    expect(await prepare()).toContain("is outside of");
  });
});
