import type { KubeObject } from "@nodekeeper/core/kube";
import type { ReceivedRequest } from "@nodekeeper/testing";
import { eventually } from "@nodekeeper/testing/until";
import { afterEach, describe, expect, it } from "vitest";
import { devicesIn, NODE, refusal, SLICES, setUp, specOf, tearDown } from "../testing/device-cluster.ts";

afterEach(tearDown);

const gpu = "gpu.example.com";
const names = (count: number) => Array.from({ length: count }, (_, at) => `device-${at}`).sort();
const changed = (name: string, serial: number) => ({ name, attributes: { serial: { int: BigInt(serial) } } });
const refusesDevices =
  (...refused: string[]) =>
  (request: ReceivedRequest) =>
    request.method !== "DELETE" && devicesIn(request).some((name) => refused.includes(name))
      ? refusal(`no such thing: ${devicesIn(request).find((name) => refused.includes(name))}`)
      : undefined;

describe("a slice that the API server refuses", () => {
  it("costs the devices that are to blame, never the pool", async () => {
    const { startDriver, devices, verdicts, sync, setAdmit, server, events } = await setUp();
    const source = await startDriver(gpu, 256);
    await eventually(() => expect(devices()).toEqual(names(256)));
    // While the devices to blame are looked for, the scheduler allocates what it did before.
    const states = new Set<string>();
    setAdmit((request) => {
      if (request.query.has("dryRun")) states.add(verdicts()[0]!.state);
      return refusesDevices("device-3", "device-200")(request);
    });
    const all = Array.from({ length: 256 }, (_, at) => changed(`device-${at}`, at));
    source.report(all);
    await eventually(() =>
      expect(sync.status()[0]).toMatchObject({ reported: 256, devices: 254, quarantined: 2 }),
    );
    expect(devices()).toEqual(names(256).filter((name) => name !== "device-3" && name !== "device-200"));
    expect(sync.status()[0]!.problems).toMatchObject([
      { device: "device-3", message: expect.stringContaining("no such thing: device-3") },
      { device: "device-200", message: expect.stringContaining("no such thing: device-200") },
    ]);
    expect(sync.healthChecks().map((check) => check.check().ok)).toEqual([true, true]);
    await eventually(() => expect(events.join()).toMatch(/2 devices are quarantined/));
    expect(server.store.list(SLICES)).toHaveLength(2);
    expect([...states]).toEqual(["complete"]);
    // They are tried again, and published as soon as they are accepted.
    setAdmit(undefined);
    await eventually(() => expect(devices()).toEqual(names(256)));
    await eventually(() => expect(sync.status()[0]).toMatchObject({ devices: 256, quarantined: 0 }));
  });

  it("is found out by dry runs where the pool is in use: it stays complete meanwhile", async () => {
    const { startDriver, devices, verdicts, setAdmit, writes, sync } = await setUp();
    const source = await startDriver(gpu, 256);
    await eventually(() => expect(devices()).toEqual(names(256)));
    const before = writes.length;
    // Everything is refused: nothing may be touched.
    setAdmit(() => refusal("closed for today"));
    source.report(Array.from({ length: 256 }, (_, at) => changed(`device-${at}`, at)));
    await eventually(() => expect(sync.status()[0]!.writeError).toMatch(/closed for today/));
    expect(writes).toHaveLength(before);
    expect(verdicts()).toMatchObject([{ state: "complete", generation: 1 }]);
    expect(devices()).toEqual(names(256));
    setAdmit(undefined);
    await eventually(() => expect(verdicts()).toMatchObject([{ state: "complete", generation: 2 }]));
    expect(devices()).toEqual(names(256));
  });

  it("of a first publication costs the devices that are to blame", async () => {
    const { startDriver, devices, sync, setAdmit } = await setUp();
    setAdmit(refusesDevices("device-7"));
    const source = await startDriver(gpu, 300);
    await eventually(() => expect(devices()).toEqual(names(300).filter((name) => name !== "device-7")));
    // The driver corrects the device: it is published.
    setAdmit((request) => {
      const spec = specOf(request.body as KubeObject) as unknown as {
        devices?: { name: string; attributes?: object }[];
      };
      return spec?.devices?.some(({ name, attributes }) => name === "device-7" && !attributes)
        ? refusal("device-7 needs an attribute")
        : undefined;
    });
    source.report(
      Array.from({ length: 300 }, (_, at) => (at === 7 ? changed("device-7", 1) : { name: `device-${at}` })),
    );
    await eventually(() => expect(devices()).toEqual(names(300)));
    await eventually(() => expect(sync.status()[0]).toMatchObject({ quarantined: 0 }));
  });

  it("that even without devices is refused leaves out its devices, and the rest of the pool is complete", async () => {
    const { startDriver, devices, setAdmit, sync } = await setUp();
    setAdmit(({ body, method }) =>
      method === "POST" && (body as KubeObject).metadata.name?.startsWith("00001")
        ? refusal("no second slice")
        : undefined,
    );
    await startDriver(gpu, 256);
    await eventually(() => expect(devices()).toHaveLength(128));
    await eventually(() =>
      expect(sync.status()[0]).toMatchObject({ reported: 256, devices: 128, quarantined: 128 }),
    );
  });

  it.each([1, 9])(
    "does not keep the rest of a large new pool from being written: %i slices",
    async (count) => {
      const blamed = Array.from({ length: count }, (_, at) => `device-${at * 125 + 3}`);
      const { startDriver, devices, sync, verdicts } = await setUp({ admit: refusesDevices(...blamed) });
      await startDriver(gpu, 2_000);
      await eventually(() => expect(devices()).toHaveLength(2_000 - count));
      expect(verdicts()).toMatchObject([{ state: "complete" }]);
      await eventually(() => expect(sync.status()).toMatchObject([{ quarantined: count }]));
    },
  );
});

describe("what one driver is refused", () => {
  it("fails that driver alone", async () => {
    const { driver, register, devices, sync, setAdmit } = await setUp();
    setAdmit(({ body, method }) =>
      method === "POST" && specOf(body as KubeObject).driver === "bad.example.com"
        ? refusal("driver bad.example.com is not allowed here", 403)
        : undefined,
    );
    const [bad, good] = [await driver("bad.example.com"), await driver("good.example.com")];
    bad.report([{ name: "bad" }]);
    good.report([{ name: "good" }]);
    await register("bad.example.com", bad);
    await register("good.example.com", good);
    await eventually(() => expect(devices()).toEqual(["good"]));
    await eventually(() => expect(sync.status()[0]!.writeError).toMatch(/not allowed here/));
    await eventually(() =>
      expect(sync.status()[1]).toMatchObject({ name: "good.example.com", writeError: undefined, devices: 1 }),
    );
    expect(sync.healthChecks().map((check) => check.check().ok)).toEqual([true, true]);
    expect(sync.healthChecks()[1]!.check().message).toMatch(/bad\.example\.com/);
    setAdmit(undefined);
    await eventually(() => expect(devices()).toEqual(["bad", "good"]));
  });

  it("teaches nothing about another's devices", async () => {
    const { driver, register, slices, setAdmit, sync } = await setUp();
    setAdmit((request) =>
      request.method !== "DELETE" &&
      specOf(request.body as KubeObject).driver === "bad.example.com" &&
      devicesIn(request).length > 0
        ? refusal("lists are not welcome")
        : undefined,
    );
    const cores = { cores: { ints: { values: [1n, 2n] } } };
    const [bad, good] = [await driver("bad.example.com"), await driver("good.example.com")];
    bad.report([{ name: "bad", attributes: cores }]);
    await register("bad.example.com", bad);
    await eventually(() => expect(sync.status()[0]).toMatchObject({ quarantined: 1 }));
    good.report([{ name: "good", attributes: cores }]);
    await register("good.example.com", good);
    await eventually(() =>
      expect(slices().flatMap((slice) => specOf(slice).devices ?? [])).toEqual([
        { name: "good", attributes: { cores: { ints: [1, 2] } } },
      ]),
    );
  });
});

describe("a server that drops what it does not know", () => {
  const taints = [{ key: "example.com/broken", effect: "NoSchedule" }];
  const dropsTaints = (slice: KubeObject) => {
    for (const device of specOf(slice).devices ?? []) delete device.taints;
  };

  it("never shows a tainted device as healthy, not even for a moment", async () => {
    const { startDriver, devices, writes, dryRuns, sync, events } = await setUp({ drops: dropsTaints });
    await startDriver(gpu, [{ name: "good" }, { name: "tainted", taints }]);
    await eventually(() => expect(devices()).toEqual(["good"]));
    expect(writes.flatMap(devicesIn)).toEqual(["good"]);
    expect(dryRuns.flatMap(devicesIn)).toEqual(["tainted"]);
    expect(sync.status()).toMatchObject([
      { quarantined: 1, problems: [{ device: "tainted", message: /DRADeviceTaints/ }] },
    ]);
    await eventually(() => expect(events.join()).toMatch(/DRADeviceTaints/));
    // Another driver's devices are judged by what is known already.
    await startDriver("nic.example.com", [{ name: "nic", taints }]);
    await eventually(() => expect(sync.status()[1]).toMatchObject({ quarantined: 1 }));
    expect(dryRuns).toHaveLength(1);
    expect(devices()).toEqual(["good"]);
  });

  it("is asked again when it may have been restarted, at the same version", async () => {
    const { startDriver, devices, writes, setDrops, server, verdicts } = await setUp();
    await startDriver(gpu, [{ name: "good" }, { name: "tainted", taints }]);
    const stored = () =>
      server.store.list(SLICES).flatMap((slice) => specOf(slice).devices?.map(({ name }) => name) ?? []);
    await eventually(() => expect(stored()).toEqual(["good", "tainted"]));
    setDrops(dropsTaints);
    server.cutWatches();
    await eventually(() => expect(stored()).toEqual(["good"]));
    expect(devices()).toEqual(["good"]);
    expect(writes.at(-1)!.method).toBe("PUT");
    setDrops(undefined);
    server.cutWatches();
    await eventually(() => expect(stored()).toEqual(["good", "tainted"]));
    expect(devices()).toEqual(["good"]);
    expect(verdicts()).toMatchObject([{ state: "complete" }]);
  });

  it("is asked once for what it refuses to answer, not with each message", async () => {
    const { startDriver, slices, setAdmit, dryRuns } = await setUp();
    const lists = { cores: { ints: { values: [1n, 2n] } } };
    setAdmit(({ method, body }) => {
      const devices = method === "DELETE" ? [] : (specOf(body as KubeObject).devices ?? []);
      const hasList = devices.some(
        (device) => "cores" in ((device as { attributes?: object }).attributes ?? {}),
      );
      return hasList
        ? refusal("spec.devices[0].attributes[cores]: exactly one value must be specified")
        : undefined;
    });
    const source = await startDriver(gpu, [{ name: "gpu", attributes: lists }]);
    // Without the list, as a server that drops it would have it.
    const stored = () => slices().flatMap((slice) => specOf(slice).devices?.map(({ name }) => name) ?? []);
    await eventually(() => expect(stored()).toEqual(["gpu"]));
    const asked = dryRuns.length;
    source.report([{ name: "gpu", attributes: lists }, { name: "more" }]);
    await eventually(() => expect(stored()).toEqual(["gpu", "more"]));
    expect(dryRuns).toHaveLength(asked);
  });

  it("leaves out what it can't learn: broken is never published as healthy", async () => {
    const { startDriver, devices, setAdmit, sync } = await setUp({ drops: dropsTaints });
    setAdmit(({ query }) => (query.has("dryRun") ? refusal("no dry runs here") : undefined));
    await startDriver(gpu, [{ name: "good" }, { name: "tainted", taints }]);
    await eventually(() => expect(devices()).toEqual(["good"]));
    expect(sync.status()).toMatchObject([
      { problems: [{ device: "tainted", message: /not known whether/ }] },
    ]);
  });

  it("is asked again, without a new message, what it refused to answer for a while", async () => {
    const { startDriver, server, setAdmit, sync } = await setUp();
    setAdmit(({ query }) => (query.has("dryRun") ? refusal("closed for today") : undefined));
    await startDriver(gpu, [{ name: "good" }, { name: "tainted", taints }]);
    await eventually(() => expect(sync.status()).toMatchObject([{ quarantined: 1 }]));
    setAdmit(undefined);
    const stored = () => server.store.list(SLICES).flatMap((slice) => specOf(slice).devices ?? []);
    await eventually(() =>
      expect(stored()).toMatchObject([{ name: "good" }, { name: "tainted", taints: [{}] }]),
    );
  });
});

describe("a webhook that changes slices", () => {
  const marks = (slice: KubeObject) => {
    for (const device of specOf(slice).devices ?? [])
      Object.assign(device, { attributes: { marked: { bool: true } } });
  };

  it("is recognized: the same is not sent again, and no generation is spent, not even by an agent that starts", async () => {
    const first = await setUp({ drops: marks });
    const source = await first.driver(gpu);
    source.report(256);
    await first.register(gpu, source);
    await eventually(() => expect(first.devices()).toEqual(names(256)));
    await eventually(() => expect(first.sync.status()[0]!.dropped.length).toBeGreaterThan(0));
    const other = await first.driver("nic.example.com");
    other.report(1);
    await first.register("nic.example.com", other);
    source.report(
      Array.from({ length: 256 }, (_, at) => (at === 9 ? changed("device-9", 1) : { name: `device-${at}` })),
    );
    await eventually(() => expect(first.writes.length).toBe(4));
    expect(first.verdicts()[0]).toMatchObject({ driver: gpu, generation: 1, state: "complete" });
    await first.stop();

    const second = await setUp({ server: first.server });
    await second.register(gpu, source);
    await eventually(() =>
      expect(second.sync.status()[0]).toMatchObject({ state: "streaming", reported: 256 }),
    );
    await eventually(() => expect(first.dryRuns.length).toBeGreaterThanOrEqual(2));
    await eventually(() => expect(second.sync.status()[0]).toMatchObject({ devices: 256 }));
    second.setDrops(marks);
    expect(first.verdicts()[0]).toMatchObject({ driver: gpu, generation: 1, state: "complete" });
  });
});

it("our label and the owner reference are restored", async () => {
  const { startDriver, devices, slices, server } = await setUp();
  await startDriver(gpu, 3);
  await eventually(() => expect(devices()).toHaveLength(3));
  const [slice] = slices();
  const { labels, ownerReferences, ...metadata } = slice!.metadata;
  server.store.put({ ...slice!, metadata });
  await eventually(() => expect(slices()[0]!.metadata).toMatchObject({ labels, ownerReferences }));
  expect(slices()[0]!.metadata.ownerReferences).toMatchObject([{ kind: "Node", name: NODE }]);
  expect(specOf(slices()[0]!).pool.generation).toBe(1);
});

it("a refusal that is taken back while devices are looked for quarantines none", async () => {
  const { startDriver, devices, sync, setAdmit, verdicts } = await setUp();
  const source = await startDriver(gpu, 256);
  await eventually(() => expect(devices()).toEqual(names(256)));
  // Both changed slices are refused once.
  let refusals = 2;
  const states = new Set<string>();
  setAdmit(() => {
    states.add(`${devices().length} ${sync.status()[0]!.quarantined}`);
    return refusals-- > 0 ? refusal("not now") : undefined;
  });
  source.report(Array.from({ length: 256 }, (_, at) => changed(`device-${at}`, at)));
  await eventually(() => expect(verdicts()).toMatchObject([{ state: "complete", generation: 2 }]));
  expect(devices()).toEqual(names(256));
  expect(states).not.toContain("256 128");
  await eventually(() => expect(sync.status()[0]).toMatchObject({ quarantined: 0 }));
});

it("a refusal that dry runs do not show costs the devices that changed, and the rest stays", async () => {
  const { startDriver, devices, sync, setAdmit, verdicts } = await setUp();
  const source = await startDriver(gpu, 100);
  await eventually(() => expect(devices()).toEqual(names(100)));
  setAdmit((request) =>
    request.query.has("dryRun") || !devicesIn(request).includes("new")
      ? undefined
      : refusal("not the new one, though the dry run accepted it"),
  );
  source.report([...Array.from({ length: 100 }, (_, at) => ({ name: `device-${at}` })), { name: "new" }]);
  await eventually(() => expect(sync.status()[0]).toMatchObject({ quarantined: 1, devices: 100 }));
  expect(devices()).toEqual(names(100));
  expect(verdicts()).toMatchObject([{ state: "complete" }]);
});
