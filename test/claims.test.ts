import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  type ClaimToPrepare,
  type ClaimToUnprepare,
  type DeviceDriverOptions,
  type DeviceHealth,
  type Plugin,
  type PreparedDevice,
  serveDeviceDriver,
} from "@nodekeeper/sdk";
import { DraKubelet } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import { beforeEach, describe, expect, it } from "vitest";
import { prepareAccelerators } from "../examples/driver/preparation.ts";
import { useClaimsNode } from "./support/claims-node.ts";
import { NODE } from "./support/cluster.ts";

const DRIVER = "accelerators.example.com";
const SLICES = "resourceslices.resource.k8s.io";
const CLAIMS = "resourceclaims.resource.k8s.io";

const node = useClaimsNode({ devicesMinWriteInterval: "0s" });

beforeEach(() => node.start());

/** What a driver of a test was asked. */
interface DriverCalls {
  prepared: ClaimToPrepare[];
  unprepared: ClaimToUnprepare[];
}

function edits(claim: ClaimToPrepare): PreparedDevice[] {
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

/** Stores an allocated claim, and gives it as the kubelet names it. */
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
      reservedFor: [{ resource: "pods", name: "pod-of-claim", uid: "11111111-2222-3333-4444-555555555555" }],
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

describe("prepare", () => {
  it.each(["v1", "v1beta1"] as const)(
    "a claim by DRAPlugin %s: the driver is asked, the CDI file is there",
    async (version) => {
      using own = new DraKubelet(join(node.directory, "reg"), version);
      const driver = await serve();
      const wanted = claim(
        "two",
        ["device-0", "device-1"],
        [
          { source: "FromClaim", requests: ["req"], opaque: { driver: DRIVER, parameters: { mode: "b" } } },
          { source: "FromClass", requests: [], opaque: { driver: DRIVER, parameters: { mode: "a" } } },
          { source: "FromClaim", requests: ["other"], opaque: { driver: DRIVER, parameters: { mode: "c" } } },
          { source: "FromClaim", requests: [], opaque: { driver: "other.example.com", parameters: {} } },
        ],
      );
      const answer = await own.prepare(DRIVER, wanted);
      const ids = ["device-0", "device-1"].map((device) => `k8s.${DRIVER}/claim=${wanted.uid}_${device}`);
      expect(answer[wanted.uid]).toMatchObject({
        error: "",
        devices: ["device-0", "device-1"].map((deviceName, at) => ({
          requestNames: ["req"],
          poolName: NODE,
          deviceName,
          cdiDeviceIds: [ids[at]],
        })),
      });
      expect(driver.prepared).toEqual([
        {
          ...wanted,
          labels: {},
          annotations: {},
          requests: [],
          pods: [{ namespace: "default", name: "pod-of-claim", uid: "11111111-2222-3333-4444-555555555555" }],
          devices: ["device-0", "device-1"].map((device) => ({
            request: "req",
            pool: NODE,
            device,
            consumedCapacity: {},
            adminAccess: false,
            configuration: [
              { source: "FromClass", parameters: { mode: "a" }, parametersText: '{"mode":"a"}' },
              { source: "FromClaim", parameters: { mode: "b" }, parametersText: '{"mode":"b"}' },
            ],
            bindingConditions: [],
            bindingFailureConditions: [],
          })),
        },
      ]);
      expect(cdiFiles()).toEqual([
        {
          name: `nodekeeper-${DRIVER}_${wanted.uid}.yaml`,
          spec: {
            cdiVersion: "0.5.0",
            kind: `k8s.${DRIVER}/claim`,
            devices: ["device-0", "device-1"].map((device) => ({
              name: `${wanted.uid}_${device}`,
              containerEdits: {
                env: [`${device.toUpperCase().replace("-", "_")}=1`],
                deviceNodes: [{ path: `/dev/${device}`, hostPath: "/dev/null" }],
              },
            })),
          },
        },
      ]);
      // Again, as the kubelet does after its restart: from the record.
      expect(await own.prepare(DRIVER, wanted)).toEqual(answer);
      expect(driver.prepared).toHaveLength(1);
      expect(await claimsOfDriver()).toMatchObject({
        kubelet: "registered",
        claims: [
          {
            name: "two",
            state: "prepared",
            pods: ["default/pod-of-claim"],
            devices: [`${NODE}/device-0`, `${NODE}/device-1`],
          },
        ],
      });

      expect(await own.unprepare(DRIVER, wanted)).toEqual({ [wanted.uid]: { error: "" } });
      expect(driver.unprepared).toMatchObject([
        { ...wanted, devices: [{ device: "device-0" }, { device: "device-1" }] },
      ]);
      expect(cdiFiles()).toEqual([]);
      expect((await claimsOfDriver()).claims).toEqual([]);
    },
  );

  it("one claim that fails fails alone, with the driver's message", async () => {
    await serve({
      prepare(claim) {
        if (claim.name === "bad") throw new Error("firmware does not answer");
        return edits(claim);
      },
    });
    const [good, bad] = [claim("good"), claim("bad", ["device-1"])];
    const answer = await node.kubelet.prepare(DRIVER, good, bad);
    expect(answer[good.uid]).toMatchObject({ error: "" });
    expect(answer[bad.uid]).toMatchObject({
      error: `NK1508: driver ${DRIVER}: firmware does not answer`,
      devices: [],
    });
  });

  it.each([
    ["empty edits", { edits: {} }, "edits must not be empty"],
    [
      "a device that the node has not",
      { edits: { deviceNodes: [{ path: "/dev/nodekeeper-none" }] } },
      '"/dev/nodekeeper-none" does not exist on the node',
    ],
    [
      "a file that is no device",
      { edits: { deviceNodes: [{ path: "/dev/x", hostPath: "/etc/hosts" }] } },
      "is not a device on the node",
    ],
    [
      "a relative path",
      { edits: { mounts: [{ hostPath: "/etc", containerPath: "etc" }] } },
      'edits.mounts[0].containerPath: "etc" is not an absolute path',
    ],
    [
      "a path upwards",
      { edits: { mounts: [{ hostPath: "/tmp/../etc", containerPath: "/x" }] } },
      "is not a normalized path",
    ],
    ["a variable without a name", { edits: { env: { "": "1" } } }, "is not NAME=value"],
    [
      "an unknown hook",
      { edits: { hooks: [{ hookName: "later" as "poststop", path: "/bin/true" }] } },
      'hooks[0].hookName: "later"',
    ],
    ["a CDI id that is none", { cdiDeviceIds: ["nonsense"] }, 'is not "<vendor>/<class>=<name>"'],
    ["another device", { device: "device-7" }, "which the claim does not have"],
  ] as [string, Partial<PreparedDevice>, string][])(
    "%s is an error of the claim that names it",
    async (_, part, message) => {
      await serve({
        prepare: (claim) =>
          claim.devices.map(({ request, pool, device }) => ({ request, pool, device, ...part })),
      });
      const wanted = claim("wrong");
      const answer = await node.kubelet.prepare(DRIVER, wanted);
      expect(answer[wanted.uid]!.error).toMatch(/^NK1507: /);
      expect(answer[wanted.uid]!.error).toContain(message);
      expect(cdiFiles()).toEqual([]);
    },
  );

  it("edits for the whole claim are in the file once, for containers with any of its devices", async () => {
    await serve({
      prepare: (claim) => ({
        devices: claim.devices.map(({ request, pool, device }) => ({ request, pool, device })),
        edits: { env: { A: "b" }, additionalGids: [44] },
      }),
    });
    const wanted = claim("whole", ["device-0", "device-1"]);
    const answer = await node.kubelet.prepare(DRIVER, wanted);
    const names = ["device-0", "device-1"].map((device) => `${wanted.uid}_${device}`);
    expect(answer[wanted.uid]).toMatchObject({
      error: "",
      devices: names.map((name) => ({ cdiDeviceIds: [`k8s.${DRIVER}/claim=${name}`] })),
    });
    expect(cdiFiles()).toMatchObject([
      {
        spec: {
          cdiVersion: "0.7.0",
          containerEdits: { env: ["A=b"], additionalGids: [44] },
          devices: names.map((name) => ({ name })),
        },
      },
    ]);
  });

  it("what the kubelet names but the API server does not have, or has as another one, is an error", async () => {
    const driver = await serve();
    const wanted = claim("real");
    const absent = { ...wanted, name: "absent", uid: "00000000-0000-0000-0000-000000000001" };
    const other = { ...wanted, uid: "00000000-0000-0000-0000-000000000002" };
    const escaping = { ...wanted, uid: "../../etc/passwd" };
    const answer = await node.kubelet.prepare(DRIVER, absent, other, escaping);
    expect(answer[absent.uid]!.error).toMatch(/^NK1506: .*absent/);
    expect(answer[other.uid]!.error).toMatch(/^NK1506: .*was replaced/);
    expect(answer[escaping.uid]!.error).toContain("is not the UID of a ResourceClaim");
    expect(driver.prepared).toEqual([]);
  });

  it("without the right to get claims the message names what is missing", async () => {
    await serve();
    const wanted = claim("secret");
    node.cluster.fault = ({ path }) => (path.includes("resourceclaims") ? { status: 403 } : undefined);
    const answer = await node.kubelet.prepare(DRIVER, wanted);
    expect(answer[wanted.uid]!.error).toMatch(
      /^NK1506: .*is not allowed to get resourceclaims \(deploy\/rbac-optional\.yaml\)/,
    );
  });

  it("different claims at once, the same one in turn", async () => {
    const inside = new Map<string, number>();
    let most = 0;
    const all = Promise.withResolvers<void>();
    await serve({
      async prepare(claim) {
        const number = (inside.get(claim.uid) ?? 0) + 1;
        inside.set(claim.uid, number);
        most = Math.max(most, number);
        if (inside.size === 10) all.resolve();
        await all.promise;
        inside.set(claim.uid, number - 1);
        return edits(claim);
      },
    });
    const claims = Array.from({ length: 10 }, (_, at) => claim(`claim-${at}`, [`device-${at}`]));
    const answers = await Promise.all([
      node.kubelet.prepare(DRIVER, ...claims),
      node.kubelet.prepare(DRIVER, ...claims),
    ]);
    for (const answer of answers)
      for (const { uid } of claims) expect(answer[uid]).toMatchObject({ error: "" });
    expect(most).toBe(1);
  });

  it("a shared device: share and consumed capacity reach the driver and the kubelet", async () => {
    const driver = await serve();
    const shares = ["one", "two"].map((shareID) => ({
      request: "req/sub",
      driver: DRIVER,
      pool: NODE,
      device: "device-0",
      shareID,
      consumedCapacity: { memory: "10Gi" },
    }));
    const wanted = claim("shares", shares);
    const answer = await node.kubelet.prepare(DRIVER, wanted);
    expect(answer[wanted.uid]!.devices).toMatchObject([
      { requestNames: ["req"], shareId: "one", cdiDeviceIds: [`k8s.${DRIVER}/claim=${wanted.uid}_device-0`] },
      {
        requestNames: ["req"],
        shareId: "two",
        cdiDeviceIds: [`k8s.${DRIVER}/claim=${wanted.uid}_device-0_2`],
      },
    ]);
    expect(driver.prepared[0]!.devices).toMatchObject([
      { request: "req/sub", shareId: "one", consumedCapacity: { memory: "10Gi" } },
      { request: "req/sub", shareId: "two" },
    ]);
  });
});

describe("unprepare", () => {
  const parameters = { mode: "exclusive" };
  const config = [{ source: "FromClaim", requests: [], opaque: { driver: DRIVER, parameters } }];
  const devices = [
    {
      request: "req",
      driver: DRIVER,
      pool: NODE,
      device: "device-0",
      shareID: "one",
      consumedCapacity: { memory: "10Gi" },
    },
    { request: "watch", driver: DRIVER, pool: NODE, device: "device-1", adminAccess: true },
  ];

  const untilConnected = () => until("connected", async () => (await claimsOfDriver())?.isPreparing === true);

  it("carries what prepare had, also after the agent was restarted", async () => {
    const driver = await serve();
    const wanted = claim("whole", devices, config);
    await node.kubelet.prepare(DRIVER, wanted);
    await node.agent.stop();
    await node.start();
    await untilConnected();
    expect(await node.kubelet.unprepare(DRIVER, wanted)).toEqual({ [wanted.uid]: { error: "" } });
    expect(driver.unprepared).toEqual(driver.prepared);
    expect(driver.unprepared[0]).toMatchObject({
      pods: [{ name: "pod-of-claim" }],
      devices: [
        { shareId: "one", consumedCapacity: { memory: "10Gi" }, configuration: [{ parameters }] },
        { device: "device-1", adminAccess: true },
      ],
    });
  });

  it("has no configuration where the state directory was lost, and all else", async () => {
    const driver = await serve();
    const wanted = claim("found", devices, config);
    await node.kubelet.prepare(DRIVER, wanted);
    await node.agent.stop();
    rmSync(node.agent.stateDir, { recursive: true });
    await node.start();
    await untilConnected();
    await until("recorded", async () => (await claimsOfDriver())?.claims.length === 1);
    expect(await node.kubelet.unprepare(DRIVER, wanted)).toEqual({ [wanted.uid]: { error: "" } });
    const [{ devices: prepared, ...rest }] = driver.prepared as [ClaimToPrepare];
    const left = prepared.map((device) => ({ ...device, configuration: [] }));
    expect(driver.unprepared).toEqual([{ ...rest, devices: left }]);
  });
});

describe("opaque parameters", () => {
  // What a parser of JSON in JavaScript changes: integers beyond 2^53, forms of numbers, keys of digits, escapes.
  const parameters =
    '{"seed":5764611469732290987,"ratio":1.0,"far":1E400,"10":"\\u003cb\\u003e","2":[-9223372036854775808],"a":1,"a":2}';

  it("reach the driver byte for byte as the API server sent them, also after the agent was restarted", async () => {
    const driver = await serve();
    const wanted = claim(
      "exact",
      ["device-0"],
      [{ source: "FromClaim", requests: [], opaque: { driver: DRIVER, parameters: {} } }],
    );
    const sent = JSON.stringify(node.cluster.server.store.get(CLAIMS, "exact", "default")).replace(
      '"parameters":{}',
      `"parameters":${parameters}`,
    );
    node.cluster.fault = ({ method, path }) =>
      method === "GET" && path.endsWith("/resourceclaims/exact") ? { status: 200, body: sent } : undefined;
    expect((await node.kubelet.prepare(DRIVER, wanted))[wanted.uid]).toMatchObject({ error: "" });
    expect(driver.prepared[0]!.devices[0]!.configuration).toEqual([
      {
        source: "FromClaim",
        parametersText: parameters,
        parameters: {
          seed: 5764611469732290987n,
          ratio: 1,
          far: Number.POSITIVE_INFINITY,
          10: "<b>",
          2: [-9223372036854775808n],
          a: 2,
        },
      },
    ]);
    await node.agent.stop();
    await node.start();
    await until("connected", async () => (await claimsOfDriver())?.isPreparing === true);
    expect(await node.kubelet.unprepare(DRIVER, wanted)).toEqual({ [wanted.uid]: { error: "" } });
    expect(driver.unprepared[0]!.devices).toEqual(driver.prepared[0]!.devices);
  });
});

describe("the sample driver's preparation", () => {
  it("names the device and the mode of the claim's configuration, which goes before the class's", async () => {
    await serve({ prepare: prepareAccelerators });
    const config = ["timeSliced", "exclusive"].map((mode, at) => ({
      source: at === 0 ? "FromClaim" : "FromClass",
      requests: [],
      opaque: { driver: DRIVER, parameters: { mode } },
    }));
    const wanted = claim("sample", ["accelerator-3"], config);
    expect((await node.kubelet.prepare(DRIVER, wanted))[wanted.uid]).toMatchObject({ error: "" });
    expect(cdiFiles()[0]?.spec.devices).toMatchObject([
      {
        containerEdits: { env: ["ACCELERATOR_3=timeSliced"], deviceNodes: [{ path: "/dev/accelerator-3" }] },
      },
    ]);
  });

  it("refuses a configuration that makes no sense, with a message for the pod", async () => {
    await serve({ prepare: prepareAccelerators });
    const config = [
      { source: "FromClaim", requests: [], opaque: { driver: DRIVER, parameters: { mode: "warp" } } },
    ];
    const wanted = claim("sample", ["accelerator-3"], config);
    const answer = await node.kubelet.prepare(DRIVER, wanted);
    expect(answer[wanted.uid]!.error).toContain('mode "warp" is neither');
  });
});

describe("the kubelet's registration", () => {
  it("holds through the agent's restart, and the new process has a socket of its own", async () => {
    await serve();
    const wanted = claim("kept");
    await node.kubelet.prepare(DRIVER, wanted);
    const before = (await node.kubelet.untilRegistered(DRIVER)).socket;
    await node.agent.stop();
    expect(node.kubelet.sockets()).toEqual([]);
    await node.start();
    const after = (await node.kubelet.untilRegistered(DRIVER)).socket;
    expect(after).not.toBe(before);
    expect((await node.kubelet.unprepare(DRIVER, wanted))[wanted.uid]).toEqual({ error: "" });
  });

  it("comes again when the registry's directory is emptied", async () => {
    await serve();
    const { socket } = await node.kubelet.untilRegistered(DRIVER);
    rmSync(join(node.directory, "reg", socket));
    await until("the socket is there again", () => node.kubelet.sockets().includes(socket));
    await node.kubelet.untilRegistered(DRIVER);
  });

  it("ends for a driver that was removed when the kubelet has unprepared its last claim", async () => {
    await node.agent.stop();
    await node.start({ devicesWipeDelay: "100ms" });
    const driver = await serve();
    const wanted = claim("last");
    await node.kubelet.prepare(DRIVER, wanted);
    await driver.stop();
    // The agent may notice a moment later that the driver is disconnected: the kubelet asks again.
    await eventually(async () =>
      expect((await node.kubelet.unprepare(DRIVER, wanted))[wanted.uid]).toEqual({ error: "" }),
    );
    await eventually(() => expect(node.kubelet.sockets()).toEqual([]));
  });

  it("is left to a driver that keeps its own plugin", async () => {
    const driver = serveDeviceDriver({
      name: DRIVER,
      socketDir: node.agent.pluginDir,
      ownKubeletPlugin: true,
      async *devices() {
        yield [{ devices: [{ name: "device-0" }] }];
      },
    });
    node.drivers.push(driver);
    await until("left alone", async () => (await claimsOfDriver())?.kubelet === "ownPlugin");
    expect(node.kubelet.sockets()).toEqual([]);
  });

  it("a driver with nothing to prepare: devices without any change to containers", async () => {
    const driver = serveDeviceDriver({
      name: DRIVER,
      socketDir: node.agent.pluginDir,
      async *devices() {
        yield [{ devices: [{ name: "device-0" }] }];
      },
    });
    node.drivers.push(driver);
    await node.kubelet.untilRegistered(DRIVER);
    // The kubelet of a server that keeps it does not call the plugin.
    await eventually(() =>
      expect(node.cluster.server.store.list(SLICES)).toMatchObject([{ spec: { skipNodeOperations: ["*"] } }]),
    );
    const wanted = claim("plain");
    const answer = await node.kubelet.prepare(DRIVER, wanted);
    expect(answer[wanted.uid]).toMatchObject({
      error: "",
      devices: [{ deviceName: "device-0", cdiDeviceIds: [] }],
    });
    expect((await node.kubelet.unprepare(DRIVER, wanted))[wanted.uid]).toEqual({ error: "" });
  });
});

describe("what happens in between", () => {
  it("a CDI directory that is emptied is filled again, without the driver", async () => {
    const driver = await serve();
    const wanted = claim("lasting");
    await node.kubelet.prepare(DRIVER, wanted);
    const before = cdiFiles();
    rmSync(join(node.directory, "cdi"), { recursive: true });
    await eventually(() => expect(cdiFiles()).toEqual(before));
    expect(driver.prepared).toHaveLength(1);
  });

  it("files are there again after the agent was stopped", async () => {
    await serve();
    const wanted = claim("lasting");
    await node.kubelet.prepare(DRIVER, wanted);
    const before = cdiFiles();
    await node.agent.stop();
    rmSync(join(node.directory, "cdi"), { recursive: true });
    await node.start();
    await eventually(() => expect(cdiFiles()).toEqual(before));
  });

  it("a claim that ends while its driver is disconnected ends; the driver undoes it when it is back", async () => {
    const first = await serve();
    const wanted = claim("orphan");
    await node.kubelet.prepare(DRIVER, wanted);
    await first.stop();
    await until("disconnected", async () => (await claimsOfDriver())?.isPreparing === false);
    expect((await node.kubelet.unprepare(DRIVER, wanted))[wanted.uid]).toEqual({ error: "" });
    expect(cdiFiles()).toEqual([]);

    const second = await serve();
    await until("undone", () => second.unprepared.length === 1);
    expect(second.unprepared).toMatchObject([{ ...wanted, devices: [{ device: "device-0" }] }]);
    await until("forgotten", async () =>
      (await claimsOfDriver()).claims.every(({ name }: { name: string }) => name !== "orphan"),
    );
    const next = claim("next");
    expect((await node.kubelet.prepare(DRIVER, next))[next.uid]).toMatchObject({ error: "" });
  });

  it("a lost state database is made again of the files", async () => {
    await serve();
    const wanted = claim("remembered");
    const answer = await node.kubelet.prepare(DRIVER, wanted);
    await node.agent.stop();
    rmSync(node.agent.stateDir, { recursive: true });
    await node.start();
    await until("recorded", async () => (await claimsOfDriver())?.claims.length === 1);
    expect(cdiFiles()).toHaveLength(1);
    expect(await node.kubelet.prepare(DRIVER, wanted)).toEqual(answer);
  });
});

describe("devices that no pod could use", () => {
  const taints = () =>
    node.cluster.server.store
      .list(SLICES)
      // biome-ignore lint/suspicious/noExplicitAny: the shape of a slice
      .flatMap(({ spec }: any) => spec.devices.map(({ taints = [] }: any) => taints));

  it("a driver that is disconnected for a while has its devices tainted until it is back", async () => {
    await node.agent.stop();
    await node.start({ devicesTaintDelay: "100ms" });
    const first = await serve();
    await node.kubelet.untilRegistered(DRIVER);
    await until("published", () => taints().length === 2);
    await first.stop();
    await eventually(() =>
      expect(taints()).toMatchObject([
        [{ key: "nodekeeper.dev/driver-disconnected", effect: "NoSchedule" }],
        [{ key: "nodekeeper.dev/driver-disconnected", effect: "NoSchedule" }],
      ]),
    );
    await serve();
    await node.kubelet.untilRegistered(DRIVER);
    await eventually(() => expect(taints()).toEqual([[], []]));
  });

  it("health reaches the kubelet, and taints where the driver asks for one", async () => {
    let report = Promise.withResolvers<DeviceHealth[]>();
    await serve({
      async *health() {
        yield [
          { device: "device-0", healthy: true },
          { device: "device-1", healthy: true },
        ];
        yield await report.promise;
        report = Promise.withResolvers();
        yield await report.promise;
      },
    });
    const { versions } = await node.kubelet.untilRegistered(DRIVER);
    expect(versions).toContain("v1.DRAResourceHealth");
    expect(versions).toContain("v1alpha1.DRAResourceHealth");
    const ending = new AbortController();
    const seen: string[] = [];
    const watching = (async () => {
      for await (const { devices } of node.kubelet.health(DRIVER, ending.signal))
        seen.push(
          devices
            .map(
              ({ device, health, message }) =>
                `${device?.poolName}/${device?.deviceName}:${health}${message}`,
            )
            .join(),
        );
    })();
    await until("healthy", () => seen.includes(`${NODE}/device-0:1,${NODE}/device-1:1`));
    report.resolve([
      { device: "device-0", healthy: true },
      { device: "device-1", healthy: false, message: "too hot", taintEffect: "NoSchedule" },
    ]);
    await until("unhealthy", () => seen.includes(`${NODE}/device-0:1,${NODE}/device-1:2too hot`));
    await eventually(() =>
      expect(taints()).toMatchObject([[], [{ key: `${DRIVER}/unhealthy`, effect: "NoSchedule" }]]),
    );
    report.resolve([
      { device: "device-0", healthy: true },
      { device: "device-1", healthy: true },
    ]);
    await eventually(() => expect(taints()).toEqual([[], []]));
    ending.abort();
    await watching.catch(() => {});
  });

  it("the taint of an unhealthy device outlives restarts of the driver and of the agent", async () => {
    const broken = { device: "device-0", healthy: false, taintEffect: "NoSchedule" as const };
    // A slow start adds the taint of a driver that is disconnected.
    const unhealthy = expect.arrayContaining([expect.objectContaining({ key: `${DRIVER}/unhealthy` })]);
    /** A driver with so many devices, and what it reports of their health, if anything. */
    const serveWith = async (count: number, health?: DeviceHealth[]) => {
      const driver = await serve({
        async *devices() {
          yield [{ devices: Array.from({ length: count }, (_, at) => ({ name: `device-${at}` })) }];
        },
        async *health(signal) {
          if (health) yield health;
          else await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        },
      });
      await node.kubelet.untilRegistered(DRIVER);
      return driver;
    };
    const expectTainted = (count: number) =>
      eventually(() => {
        expect(taints()).toHaveLength(count);
        expect(taints()[0]).toEqual(unhealthy);
      });
    const first = await serveWith(1, [broken]);
    await expectTainted(1);
    await first.stop();
    const second = await serveWith(2);
    await expectTainted(2);
    await node.agent.stop();
    expect(taints()[0]).toEqual(unhealthy);
    await second.stop();
    await node.start();
    // Whatever is written, its taint is never missing.
    const written: unknown[] = [];
    node.cluster.fault = ({ path, method }) => {
      if (method !== "GET" && path.includes("resourceslices")) written.push(taints()[0]);
      return undefined;
    };
    await serveWith(3, [broken]);
    await expectTainted(3);
    for (const before of written) expect(before).toEqual(unhealthy);
  });
});
