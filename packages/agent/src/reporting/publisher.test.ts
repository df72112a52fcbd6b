import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { GetReportContentResponse } from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import {
  createKubeClient,
  createKubeMetrics,
  type KubeObject,
  loadClusterAccess,
  Watcher,
} from "@nodekeeper/core/kube";
import {
  FakeClock,
  LoopTurns,
  NodekeeperError,
  Registry,
  silentLogger,
  systemClock,
} from "@nodekeeper/core/lib";
import {
  createDevApiServer,
  type DevApiServer,
  type Fault,
  type ReceivedRequest,
  type RequestInfo,
} from "@nodekeeper/testing";
import { eventually } from "@nodekeeper/testing/until";
import { afterEach, describe, expect, it, vi } from "vitest";
import { defaultReportingSettings } from "../assembly/testing/defaults.ts";
import { ReporterStore, StateDatabase } from "../state/index.ts";
import type { PluginContent } from "./content.ts";
import type { ReportingContext } from "./context.ts";
import { customNodeResource, kindKey, kindPolicies, node, OWN_TAINTS } from "./kinds.ts";
import { createReportingMetrics } from "./metrics.ts";
import { Publisher } from "./publisher.ts";
import { contentOf, field, message, reportsOf } from "./testing/contents.ts";

const cnr = kindKey(customNodeResource);
const absent = { group: "absent.io", version: "v1", kind: "Absent" };
const ends: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

interface Setup {
  directory?: string;
  server?: DevApiServer;
  faults?: (request: RequestInfo) => Fault | undefined;
  minWriteInterval?: number;
  /** Applies whose body this matches get a 422, as from a schema that the embedded server does not have. */
  refuse?: (body: string) => boolean;
  /** Applies reach the server, but their responses are lost. */
  losesAnswers?: boolean;
}

/** A publisher with an in-memory API server. `report` sends a plugin's report. */
async function setUp(setup: Setup = {}) {
  const patches: ReceivedRequest[] = [];
  const notices: string[] = [];
  let faults = setup.faults;
  const directory = setup.directory ?? mkdtempSync(join(tmpdir(), "nodekeeper-publisher-"));
  if (!setup.directory) ends.push(() => rmSync(directory, { recursive: true, force: true }));
  const server =
    setup.server ??
    createDevApiServer({
      checkFields: false,
      clock: systemClock,
      log: silentLogger,
      faults: (request) => faults?.(request),
      onRequest: (request) => void (request.method === "PATCH" && patches.push(request)),
    });
  if (!setup.server) {
    await server.start();
    ends.push(() => server.stop());
  }
  const kubeconfig = join(directory, "kubeconfig");
  await server.writeKubeconfig(kubeconfig);
  const access = await loadClusterAccess({ kubeconfig, environment: {} });
  const registry = new Registry();
  const metrics = createKubeMetrics(registry);
  const common = { clock: systemClock, log: silentLogger, metrics };
  const client = createKubeClient({ ...common, access, version: "test", qps: 1_000, burst: 1_000 });
  if (setup.losesAnswers) {
    const apply = client.apply.bind(client);
    client.apply = async (resource, object, options) => {
      await apply(resource, object, options);
      throw new NodekeeperError("unavailable", "connection lost");
    };
  }
  const { refuse } = setup;
  if (refuse) {
    const apply = client.apply.bind(client);
    client.apply = async (resource, object, options) => {
      const body = JSON.stringify(object);
      if (refuse(body)) throw new NodekeeperError("invalid", `refused: ${body}`);
      return await apply(resource, object, options);
    };
  }
  const database = StateDatabase.open({ directory, clock: new FakeClock(), log: silentLogger });
  const store = new ReporterStore(database);
  const contents = new Map<string, PluginContent>();
  /** Keys of frozen taints. */
  const frozen = new Set<string>();
  const context: ReportingContext = {
    turns: new LoopTurns(systemClock),
    store,
    policies: kindPolicies([absent]),
    returnMs: 0,
    bootTime: () => undefined,
    notify: (reason) => void notices.push(reason),
    settings: () => ({
      ...defaultReportingSettings,
      minWriteInterval: setup.minWriteInterval ?? 20,
      resyncInterval: 600_000,
      pluginGracePeriod: 0,
    }),
    clock: systemClock,
    log: silentLogger,
    metrics: createReportingMetrics(registry),
  };
  const publisher = new Publisher(context, {
    client,
    fieldManager: "nodekeeper",
    watch: (target) => new Watcher({ ...common, client }, target),
    nodeName: "n1",
    reports: reportsOf(contents),
    isFrozenTaint: ({ key }) => frozen.has(String(key)),
  });
  const controller = new AbortController();
  const running = publisher.run(controller.signal);
  const stop = async () => {
    controller.abort();
    await running;
    client.close();
    database.close();
  };
  ends.push(stop);
  return {
    server,
    frozen,
    publisher,
    store,
    notices,
    patches,
    directory,
    stop,
    setFaults: (next: typeof faults) => {
      faults = next;
    },
    report(plugin: string, response: GetReportContentResponse | undefined) {
      const before = contents.get(plugin);
      if (response) contents.set(plugin, contentOf(response, before, [absent]));
      else contents.delete(plugin);
      const after = contents.get(plugin);
      publisher.touch(
        new Set([...(before?.fields ?? []), ...(after?.fields ?? [])].map(({ object }) => object)),
      );
    },
    object: () => server.store.get("customnoderesources.node.katalyst.kubewharf.io", "n1"),
    eventually,
  };
}

const properties = (...names: string[]) =>
  field(
    "spec",
    "NodeResourceProperties",
    names.map((propertyName) => ({ propertyName })),
  );
const resources = (name: string, value: string) =>
  field("status", "Resources", { capacity: { [name]: value } });

function specOf(object: KubeObject | undefined): Record<string, unknown> {
  return (object?.spec ?? {}) as Record<string, unknown>;
}

describe("Publisher", () => {
  it("creates, updates and empties the CNR with one field manager", async () => {
    const { report, object, eventually } = await setUp();
    report(
      "a",
      message([properties("cpu"), resources("x.io/a", "1"), field("metadata", "labels", { l: "1" })]),
    );
    await eventually(() => expect(object()?.status).toEqual({ resources: { capacity: { "x.io/a": "1" } } }));
    expect(specOf(object())).toEqual({ nodeResourceProperties: [{ propertyName: "cpu" }] });
    expect(object()?.metadata.labels).toEqual({ l: "1" });
    expect(object()?.metadata.managedFields?.map(({ manager }) => manager)).toEqual([
      "nodekeeper",
      "nodekeeper",
    ]);

    report("b", message([resources("x.io/b", "2")]));
    await eventually(() =>
      expect(object()?.status).toEqual({ resources: { capacity: { "x.io/a": "1", "x.io/b": "2" } } }),
    );
    report("a", undefined);
    await eventually(() => expect(object()?.status).toEqual({ resources: { capacity: { "x.io/b": "2" } } }));
    await eventually(() => expect(object()?.metadata.labels).toBeUndefined());
    expect(specOf(object())).toEqual({});
    report("b", undefined);
    await eventually(() => expect(object()?.status ?? {}).toEqual({}));
  });

  it("writes nothing when nothing changes", async () => {
    const { report, object, patches, eventually, publisher } = await setUp();
    report("a", message([resources("x.io/a", "1")]));
    await eventually(() => expect(publisher.status()[0]).toMatchObject({ pending: false, writes: 2 }));
    const { resourceVersion } = object()!.metadata;
    report("a", message([resources("x.io/a", "1")]));
    report("b", message([field("status", "resources", null)]));
    await eventually(() => expect(publisher.status()[0]?.pending).toBe(false));
    expect(patches).toHaveLength(2);
    expect(object()?.metadata.resourceVersion).toBe(resourceVersion);
  });

  it("combines bursts into one write, always with the last value", async () => {
    const { report, object, patches, eventually } = await setUp({ minWriteInterval: 100 });
    for (let value = 0; value <= 200; value++) {
      report("a", message([resources("x.io/a", String(value))]));
      if (value % 20 === 0) await systemClock.sleep(10);
    }
    await eventually(() =>
      expect(object()?.status).toEqual({ resources: { capacity: { "x.io/a": "200" } } }),
    );
    expect(patches.length).toBeLessThan(12);
  });

  it("keeps fields of other clients, and restores its own", async () => {
    const { report, object, server, eventually } = await setUp();
    report("a", message([resources("x.io/a", "1")]));
    await eventually(() => expect(object()?.status).toBeDefined());
    const foreign = structuredClone(object()!);
    foreign.metadata.labels = { theirs: "1" };
    await put(server, foreign);
    const taken = structuredClone(object()!);
    taken.status = { resources: { capacity: { "x.io/a": "666" } } };
    await put(server, taken, "/status");
    await eventually(() => expect(object()?.status).toEqual({ resources: { capacity: { "x.io/a": "1" } } }));
    expect(object()?.metadata.labels).toEqual({ theirs: "1" });
  });

  it("recreates the CNR after another client deleted it", async () => {
    const { report, object, server, eventually } = await setUp();
    report("a", message([properties("cpu"), resources("x.io/a", "1")]));
    await eventually(() => expect(object()?.status).toBeDefined());
    const { uid } = object()!.metadata;
    server.store.delete("customnoderesources.node.katalyst.kubewharf.io", "n1");
    await eventually(() => expect(object()?.status).toEqual({ resources: { capacity: { "x.io/a": "1" } } }));
    expect(object()?.metadata.uid).not.toBe(uid);
    expect(specOf(object())).toEqual({ nodeResourceProperties: [{ propertyName: "cpu" }] });
  });

  it("keeps taints of other clients, also under katalyst's prefix, and removes only its own", async () => {
    const { report, object, server, eventually } = await setUp();
    const taint = (key: string) => ({ key, effect: "NoSchedule", qosLevel: "shared_cores" });
    const theirs = [taint("theirs"), taint("node.katalyst.kubewharf.io/theirs")];
    server.store.put({
      apiVersion: "node.katalyst.kubewharf.io/v1alpha1",
      kind: "CustomNodeResource",
      metadata: { name: "n1" },
      spec: { taints: theirs },
    });
    report("a", message([field("spec", "Taints", [taint("ours")])]));
    await eventually(() => expect(specOf(object()).taints).toEqual([...theirs, taint("ours")]));
    report("a", message([field("spec", "Taints", [taint("ours-2")])]));
    await eventually(() => expect(specOf(object()).taints).toEqual([...theirs, taint("ours-2")]));
    // The agent still owns the list, including the taints of other clients, so later writes must not omit it.
    for (const property of ["cpu", "memory"]) {
      report("a", message([properties(property)]));
      await eventually(() =>
        expect(specOf(object()).nodeResourceProperties).toEqual([{ propertyName: property }]),
      );
      expect(specOf(object()).taints).toEqual(theirs);
    }
  });

  it("leaves a taint of another client that equals a reported one, also when it is no longer reported", async () => {
    const { report, object, server, eventually } = await setUp();
    const theirs = {
      ...{ key: "a", effect: "NoSchedule", qosLevel: "shared_cores" },
      ...{ value: "x", timeAdded: "2026-01-01T00:00:00Z" },
    };
    const ours = { key: "b", effect: "NoSchedule", qosLevel: "shared_cores" };
    server.store.put({
      apiVersion: "node.katalyst.kubewharf.io/v1alpha1",
      kind: "CustomNodeResource",
      metadata: { name: "n1" },
      spec: { taints: [theirs] },
    });
    const { value: _value, timeAdded: _time, ...same } = theirs;
    report("a", message([field("spec", "Taints", [same, ours])]));
    await eventually(() => expect(specOf(object()).taints).toEqual([theirs, ours]));
    expect(object()?.metadata.annotations).toEqual({ [OWN_TAINTS]: '["b:NoSchedule:shared_cores"]' });
    report("a", message([properties("cpu")]));
    await eventually(() => expect(specOf(object()).taints).toEqual([theirs]));
    expect(object()?.metadata.annotations?.[OWN_TAINTS]).toBeUndefined();
  });

  it("leaves frozen taints of its own as they are, and lists them, until they are not frozen", async () => {
    const test = await setUp();
    const { report, object, eventually } = test;
    const taint = (key: string) => ({ key, effect: "NoSchedule", qosLevel: "shared_cores" });
    report("a", message([field("spec", "Taints", [taint("frozen"), taint("other")])]));
    await eventually(() => expect(specOf(object()).taints).toHaveLength(2));
    test.frozen.add("frozen");
    report("a", message([properties("cpu")]));
    await eventually(() => expect(specOf(object()).taints).toEqual([taint("frozen")]));
    expect(object()?.metadata.annotations).toEqual({ [OWN_TAINTS]: '["frozen:NoSchedule:shared_cores"]' });
    test.frozen.clear();
    report("a", message([properties("memory")]));
    await eventually(() => expect(specOf(object()).taints ?? []).toEqual([]));
  });

  it("waits for a Node instead of creating one, then writes the allowed fields", async () => {
    const { report, server, publisher, eventually } = await setUp();
    const capacity = field("status", "Capacity", { "x.io/a": "1", cpu: "99" });
    report("a", message([field("metadata", "labels", { "x.io/l": "1" }), capacity], node));
    await eventually(() => expect(publisher.status()[0]?.lastError).toMatch(/Node n1 does not exist/));
    expect(server.store.list("nodes")).toEqual([]);
    server.seedNode("n1");
    const written = () => server.store.get("nodes", "n1");
    await eventually(() =>
      expect(written()?.status).toMatchObject({ capacity: { "x.io/a": "1", cpu: "4" } }),
    );
    expect(written()?.metadata.labels).toMatchObject({ "x.io/l": "1", "kubernetes.io/hostname": "n1" });
  });

  it("quarantines a plugin whose content the server rejects, and publishes the others", async () => {
    const { report, object, publisher, notices, eventually } = await setUp({
      refuse: (body) => body.includes("poison"),
    });
    report("bad", message([resources("x.io/bad", "1")]));
    await eventually(() => expect(object()?.status).toBeDefined());
    report("bad", message([resources("x.io/poison", "1")]));
    report("good", message([resources("x.io/good", "1")]));
    await eventually(() =>
      expect(publisher.status()[0]?.quarantined).toEqual({ bad: expect.stringMatching(/poison/) }),
    );
    await eventually(() =>
      expect(object()?.status).toEqual({ resources: { capacity: { "x.io/bad": "1", "x.io/good": "1" } } }),
    );
    expect(notices).toEqual(["ReportRefused"]);
    report("bad", message([resources("x.io/fixed", "1")]));
    await eventually(() =>
      expect(object()?.status).toEqual({ resources: { capacity: { "x.io/fixed": "1", "x.io/good": "1" } } }),
    );
    await eventually(() => expect(publisher.status()[0]?.quarantined).toEqual({}));
  });

  it("stores the last known good content of a quarantined plugin once the disk has space again", async () => {
    const { report, object, publisher, store, eventually } = await setUp({
      refuse: (body) => body.includes("poison"),
    });
    report("bad", message([resources("x.io/bad", "1")]));
    await eventually(() => expect(object()?.status).toBeDefined());
    const full = vi.spyOn(store, "saveLastGood").mockImplementation(() => {
      throw new NodekeeperError("exhausted", "the disk is full");
    });
    report("bad", message([resources("x.io/poison", "1")]));
    report("good", message([resources("x.io/good", "1")]));
    await eventually(() =>
      expect(object()?.status).toEqual({ resources: { capacity: { "x.io/bad": "1", "x.io/good": "1" } } }),
    );
    await eventually(() => expect(publisher.status()[0]?.pending).toBe(false));
    expect(full).toHaveBeenCalled();
    full.mockRestore();
    report("good", message([resources("x.io/good", "2")]));
    await eventually(() => expect(store.lastGood()).toMatchObject([{ part: "status", plugin: "bad" }]));
  });

  it("names the kind that is not served, publishes the others, and fails its health check", async () => {
    const { report, object, publisher, eventually } = await setUp();
    report("a", message([field("spec", "x", 1)], absent));
    report("b", message([resources("x.io/a", "1")]));
    await eventually(() => expect(object()?.status).toBeDefined());
    await eventually(() => expect(publisher.health().ok).toBe(false));
    expect(publisher.health().message).toMatch(
      /does not serve absent\.io\/v1\/Absent .*CustomResourceDefinition/,
    );
    expect(publisher.status().find(({ object: name }) => name === cnr)).toMatchObject({
      lastError: undefined,
    });
  });

  it("writes the newest content once the server recovers", async () => {
    const { report, object, publisher, setFaults, patches, eventually } = await setUp();
    const answers: Fault[] = [
      { status: 500, body: { message: "boom" } },
      { status: 429, headers: { "Retry-After": "1" }, body: {} },
      { status: 200, headers: { "Content-Type": "text/html" }, body: "<html>captive portal</html>" },
      "cut",
    ];
    setFaults(({ method }) => (method === "PATCH" ? answers.shift() : undefined));
    report("a", message([resources("x.io/a", "1")]));
    await eventually(() => expect(publisher.status()[0]?.lastError).toBeDefined());
    report("a", message([resources("x.io/a", "2")]));
    await eventually(() => expect(object()?.status).toEqual({ resources: { capacity: { "x.io/a": "2" } } }));
    expect(answers).toEqual([]);
    await eventually(() =>
      expect(publisher.status()[0]).toMatchObject({ pending: false, lastError: undefined }),
    );
    expect(patches).toHaveLength(2);
  });

  it("fails its health check immediately if a permission is missing, and names it", async () => {
    const { report, publisher, eventually } = await setUp({
      faults: ({ method }) =>
        method === "PATCH"
          ? { status: 403, body: { kind: "Status", message: 'cannot patch "customnoderesources"' } }
          : undefined,
    });
    report("a", message([resources("x.io/a", "1")]));
    await eventually(() =>
      expect(publisher.health()).toEqual({
        ok: false,
        message: expect.stringMatching(/CustomNodeResource not written.*cannot patch "customnoderesources"/),
        errorId: "NK1207",
      }),
    );
  });

  it("removes after a restart the fields of an earlier agent that no plugin reports", async () => {
    const first = await setUp();
    first.report("a", message([properties("cpu"), resources("x.io/a", "1")]));
    await first.eventually(() => expect(first.object()?.status).toBeDefined());
    await first.stop();
    const second = await setUp({ directory: first.directory, server: first.server });
    await second.eventually(() => expect(second.object()?.status ?? {}).toEqual({}));
    await second.eventually(() => expect(specOf(second.object())).toEqual({}));
  });

  it("also removes fields of an earlier agent that never received the response", async () => {
    const first = await setUp({ losesAnswers: true });
    first.report("a", message([properties("cpu")]));
    await first.eventually(() => expect(specOf(first.object())).not.toEqual({}));
    await first.stop();
    const second = await setUp({ directory: first.directory, server: first.server });
    await second.eventually(() => expect(specOf(second.object())).toEqual({}));
  });
});

/** Writes as another client through the API. */
async function put(server: DevApiServer, object: KubeObject, subresource = ""): Promise<void> {
  const { server: base } = (/server: (?<server>\S+)/.exec(server.kubeconfig())?.groups ?? {}) as {
    server: string;
  };
  const url = `${base}/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources/n1${subresource}`;
  const answer = await fetch(url, {
    method: "PUT",
    headers: { "Content-Type": "application/json", "User-Agent": "another-client/1" },
    body: JSON.stringify(object),
  });
  expect(answer.status).toBe(200);
}
