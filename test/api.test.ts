import { request } from "node:http";
import { join } from "node:path";
import { systemClock } from "@nodekeeper/core/lib";
import { type Plugin, serveDeviceDriver } from "@nodekeeper/sdk";
import { SimulatedCri, SimulatedRuntime } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import { Validator } from "@seriousme/openapi-schema-validator";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { EventStreamClient } from "./support/event-stream.ts";
import {
  hardPressure,
  pick,
  startEvictionPlugin,
  type TestEvictionPlugin,
} from "./support/eviction-plugin.ts";
import { ApiContract } from "./support/open-api.ts";
import { type GoodPlugin, rawField, startGoodPlugin, widgets } from "./support/plugins.ts";

const DRIVER = "gpu.example.com";
const CNR = "node.katalyst.kubewharf.io/v1alpha1/CustomNodeResource";

// One agent with a part of every kind, whose answers are all checked against the document that it serves.
let cluster: TestCluster;
let agent: RunningAgent;
let runtime: SimulatedRuntime;
let cri: SimulatedCri;
let plugin: TestEvictionPlugin;
let driver: Plugin;
let reporters: GoodPlugin[];
let contract: ApiContract;
const containers = new Map<string, string>();

const start = () =>
  startAgent(cluster, {
    lifecycle: "true",
    lifecycleRelistPeriod: "100ms",
    runtimeEndpoint: `unix://${join(cluster.directory, "cri.sock")}`,
    devicesMinWriteInterval: "0s",
  });

beforeAll(async () => {
  cluster = await startCluster();
  runtime = new SimulatedRuntime({ clock: systemClock });
  cri = new SimulatedCri({ runtime, socket: join(cluster.directory, "cri.sock"), clock: systemClock });
  await cri.start();
  cluster.addPod("victim");
  cluster.addPod("witness");
  agent = await start();
  reporters = [
    await startGoodPlugin(agent.pluginDir, "alpha", widgets("shared", 1), widgets("alpha", 3)),
    await startGoodPlugin(agent.pluginDir, "beta", widgets("shared", 2), rawField("nonsense", "{")),
  ];
  driver = serveDeviceDriver({
    name: DRIVER,
    socketDir: agent.pluginDir,
    async *devices() {
      yield [{ devices: [{ name: "gpu-0", attributes: { model: { string: "x1" } } }, { name: "gpu-1" }] }];
    },
  });
  plugin = await startEvictionPlugin(agent.pluginDir, "pressure");
  plugin.top = pick(["victim"]);
  plugin.threshold = {
    ...hardPressure,
    condition: { conditionType: 0, effects: ["NoSchedule"], conditionName: "Hot", metCondition: true },
  };
  for (const name of ["one", "two", "three"]) {
    const sandbox = runtime.runSandbox({ uid: `uid-${name}`, name, namespace: "default" });
    containers.set(name, runtime.runContainer(sandbox, { name: "app" }));
  }
  await until("the pod is evicted", () => cluster.evictions().includes("victim"), {
    explain: () => agent.logLines.slice(-5),
  });
  contract = new ApiContract(await agent.api("openapi.json"));
});

afterAll(async () => {
  await plugin?.stop();
  await driver?.stop();
  for (const reporter of reporters ?? []) await reporter.stop();
  await agent?.stop();
  await cri?.stop();
  await cluster?.stop();
});

const url = (path: string) => `http://${agent.address}/api/v1/${path}`;

interface Answered {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read into documents of every shape
  body: any;
}

/** An answer that was checked against the document. */
async function ask(path: string, headers: Record<string, string> = {}): Promise<Answered> {
  const response = await fetch(url(path), { headers });
  const body = await response.json();
  contract.check(path, body, response.ok ? "200" : "default");
  return { status: response.status, headers: response.headers, body };
}

const queries: Record<string, string> = {
  "objects/fields": `objects/fields?object=${encodeURIComponent(CNR)}`,
  "objects/content": `objects/content?object=${encodeURIComponent(CNR)}`,
  "plugins/exchange": "plugins/exchange?type=EvictionPlugin&name=pressure",
  "devices/list": `devices/list?driver=${DRIVER}`,
  "eviction/explain": "eviction/explain?pod=default/victim",
};

describe("the OpenAPI document", () => {
  it("is valid OpenAPI 3.1", async () => {
    const validator = new Validator();
    const result = await validator.validate(structuredClone(contract.document) as never);
    expect(result.errors ?? []).toEqual([]);
    expect(result.valid).toBe(true);
    expect(validator.version).toBe("3.1");
  });

  it("has every path that is served, and the answers of all are as it has them", async () => {
    const { routes } = await agent.api("");
    const served = routes.map(({ path }: { path: string }) => path);
    expect(Object.keys(contract.document.paths).sort()).toEqual(served.sort());
    for (const path of contract.paths) {
      const { status, headers } = await ask(queries[path] ?? path);
      expect([path, status]).toEqual([path, 200]);
      expect(headers.get("cache-control")).toBe("no-store");
    }
  });

  it("has the error that a wrong query is answered", async () => {
    for (const path of contract.paths) {
      const { status, body } = await ask(`${path}?sicne=5`);
      expect([path, status]).toEqual([path, 400]);
      expect(body.error.message).toMatch(/unknown parameter "sicne"/);
    }
  });
});

describe("the API", () => {
  it("has the node in short", async () => {
    const { body } = await ask("node");
    expect(body).toMatchObject({
      nodeName: "worker-1",
      version: "0.0.0-test",
      eviction: { mode: "live", conditions: 1 },
      lifecycle: { pods: 3 },
    });
    expect(body.startedAt).toBeLessThanOrEqual(Date.now());
    expect(body.health.checks.map(({ name }: { name: string }) => name)).toContain("EvictionRoundsReady");
  });

  it("has each plugin's last contact and calls, and what is refused of it", async () => {
    const { body } = await ask("plugins");
    const row = (name: string) => body.find((each: { name: string }) => each.name === name);
    expect(row("pressure")).toMatchObject({ type: "EvictionPlugin", state: "registered" });
    expect(row("pressure").calls.count).toBeGreaterThan(0);
    expect(row("alpha")).toMatchObject({ calls: { count: expect.any(Number) }, problems: [] });
    expect(row("beta").problems).toHaveLength(1);
    for (const name of ["pressure", "alpha", DRIVER])
      expect(row(name).contactAt).toBeGreaterThan(Date.now() - 600_000);
  });

  it("has what a plugin and the agent exchanged last", async () => {
    const of = async (type: string, name: string) =>
      (await ask(`plugins/exchange?type=${type}&name=${name}`)).body;
    await eventually(async () => {
      const { calls, durations } = await of("EvictionPlugin", "pressure");
      const threshold = calls.find(({ call }: { call: string }) => call === "ThresholdMet");
      expect(JSON.parse(threshold.answer)).toMatchObject({ metType: "hard", observedValue: 0.93 });
      expect(JSON.parse(threshold.request)).toEqual({ pods: 1, bytes: expect.any(Number) });
      expect(durations.at(-1)).toMatchObject({ ok: true, ms: expect.any(Number) });
    });
    await eventually(async () => {
      const { calls } = await of("ReporterPlugin", "alpha");
      expect(calls.map(({ call }: { call: string }) => call).sort()).toEqual([
        "GetReportContent",
        "ListAndWatchReportContent",
      ]);
      expect(JSON.parse(calls[0].answer)[0]).toMatchObject({ object: CNR, part: "status" });
    });
    await eventually(async () => {
      const { calls } = await of("DRAPlugin", DRIVER);
      const answer = expect.stringContaining("gpu-0");
      expect(calls[0]).toMatchObject({ call: "ListAndWatchDevices", answer });
    });
    for (const query of ["type=EvictionPlugin&name=none", "type=toString&name=x"])
      expect((await ask(`plugins/exchange?${query}`)).status).toBe(404);
    expect((await ask("plugins/exchange?name=alpha")).status).toBe(400);
  });

  it("has the plugin that reported each field, in pages", async () => {
    const path = "status.resources.capacity.widgets.example/";
    const all = await ask(`objects/fields?object=${encodeURIComponent(CNR)}`);
    expect(all.body.items).toEqual(
      expect.arrayContaining([
        { path: `${path}alpha`, plugin: "alpha", others: [], value: '"3"' },
        { path: `${path}shared`, plugin: "beta", others: ["alpha"], value: '"2"' },
      ]),
    );
    const paged: unknown[] = [];
    for (let from = ""; ; ) {
      const { body } = await ask(`objects/fields?object=${encodeURIComponent(CNR)}&limit=1${from}`);
      paged.push(...body.items);
      if (body.continue === undefined) break;
      from = `&continue=${encodeURIComponent(body.continue)}`;
    }
    expect(paged).toEqual(all.body.items);
    expect((await ask("objects/fields?object=nothing")).status).toBe(404);
  });

  it("has a published object as the API server has the agent's fields of it", async () => {
    const { body } = await ask(`objects/content?object=${encodeURIComponent(CNR)}`);
    expect(body).toMatchObject({ object: CNR, plugins: expect.arrayContaining(["alpha", "beta"]) });
    const { content } = body;
    expect(content).toMatchObject({
      apiVersion: "node.katalyst.kubewharf.io/v1alpha1",
      kind: "CustomNodeResource",
      metadata: { name: "worker-1" },
      status: { resources: { capacity: { "widgets.example/alpha": "3", "widgets.example/shared": "2" } } },
    });
    await eventually(() => expect(cluster.cnr()?.status).toMatchObject(content.status));
    expect((await ask("objects/content?object=nothing")).status).toBe(404);
  });

  it("has the devices of a driver with their slices", async () => {
    await eventually(async () => {
      const { body } = await ask(`devices/list?driver=${DRIVER}`);
      expect(body.items).toMatchObject([
        { pool: "worker-1", name: "gpu-0", attributes: { model: '"x1"' }, slices: [expect.any(String)] },
        { name: "gpu-1", claims: [] },
      ]);
    });
    expect((await ask("devices/list?driver=none")).status).toBe(404);
  });

  it("has pods with their containers, in pages and by name", async () => {
    const { body } = await ask("pods");
    expect(body.items.map(({ name }: { name: string }) => name)).toEqual(["one", "three", "two"]);
    const first = await ask("pods?limit=2");
    expect(first.body.items).toHaveLength(2);
    const second = await ask(`pods?limit=2&continue=${encodeURIComponent(first.body.continue)}`);
    expect(second.body.items).toMatchObject([
      { name: "two", containers: [{ name: "app", state: "running" }] },
    ]);
    expect(second.body.continue).toBeUndefined();
    expect((await ask("pods?namespace=default&name=one")).body.items).toHaveLength(1);
    expect((await ask("pods?uid=nothing")).body.items).toEqual([]);
  });

  it("has what each pod uses, from the runtime where the kernel has no cgroup of it", async () => {
    await eventually(async () => {
      const { body } = await ask("pods/usage");
      const usage = body.items.find(({ uid }: { uid: string }) => uid === "uid-two");
      // A tenth of a CPU: what a simulated container uses.
      expect(usage).toMatchObject({ cpu: 0.1, memoryBytes: expect.any(Number) });
      expect(body.readAt).toBeGreaterThan(Date.now() - 600_000);
    });
  });

  it("has lifecycle events from a cursor on, and a snapshot for a cursor that it does not know", async () => {
    const { body: all } = await ask("events");
    expect(all.end).toBe(true);
    runtime.exit(containers.get("one")!, 3);
    await eventually(async () => {
      const { body } = await ask(`events?cursor=${all.cursor}`);
      expect(body.items).toMatchObject([
        { kind: "event", event: { type: "ContainerDied", pod: { name: "one" }, exitCode: 3 } },
      ]);
    });
    const one = await ask("events?limit=1");
    expect(one.body).toMatchObject({ items: [all.items[0]], end: false });
    const [log, last] = all.cursor.split("-");
    for (const cursor of [`another-${last}`, `${log}-99999999`]) {
      const { body } = await ask(`events?cursor=${cursor}`);
      expect(body).toMatchObject({ items: [{ kind: "snapshot" }], end: true });
      expect(body.items[0].pods).toHaveLength(3);
    }
    expect((await ask("events?cursor=nonsense")).status).toBe(400);
  });

  it("has readings, evictions with their outcome, conditions with owner and expiry, and rounds", async () => {
    await eventually(async () => {
      const { body: readings } = await ask("eviction/readings");
      const values = readings.rounds
        .at(-1)
        .readings.find((each: { plugin: string }) => each.plugin === "pressure");
      expect(values).toMatchObject({ scope: "memory", observed: 0.93, threshold: 0.8, met: "hard" });
    });
    await eventually(async () => {
      const { body } = await ask("eviction/evictions");
      expect(body.items[0]).toMatchObject({
        namespace: "default",
        name: "victim",
        plugin: "pressure",
        dryRun: false,
        outcome: { result: "terminated" },
      });
    });
    // A round in which the plugin was too slow to answer counts as one that did not report it.
    await eventually(async () => {
      const { body: node } = await ask("eviction/node");
      expect(node.conditions).toMatchObject([
        {
          plugin: "pressure",
          name: "Hot",
          taints: ["nodekeeper.dev/Hot:NoSchedule"],
          isMet: true,
          until: null,
        },
      ]);
    });
    expect((await ask("eviction/records?limit=2")).body.records.length).toBeGreaterThan(0);
    expect((await ask("eviction/explain?pod=default/witness")).status).toBe(200);
    expect((await ask("eviction/explain?pod=default/stranger")).status).toBe(404);
  });

  it("has the history of signals, of all plugins or of one", async () => {
    await eventually(async () => {
      const { body } = await ask("eviction/signals?plugin=pressure");
      expect(body.signals).toMatchObject([
        { plugin: "pressure", scope: "memory", observed: [0.93], threshold: [0.8], met: ["hard"] },
      ]);
      expect(body.minutes).toHaveLength(1);
    });
    expect((await ask("eviction/signals?plugin=none")).body.signals).toEqual([]);
  });

  it("has what limits evictions now, and the pods by QoS", async () => {
    await eventually(async () => {
      const { body: budgets } = await ask("eviction/budgets");
      expect(budgets).toMatchObject({
        node: { limit: null, used: 1, freeAt: null },
        namespaces: [{ namespace: "default", used: 1 }],
        queued: [],
        thresholds: [{ plugin: "pressure", metType: "hard", confirmed: true }],
      });
      const { body: counts } = await ask("eviction/candidates");
      expect(counts).toMatchObject({ pods: 1, candidates: 1, excluded: {} });
      const { body: pods } = await ask("eviction/eligibility");
      expect(pods).toMatchObject([{ pod: { namespace: "default", phase: "Running" }, eviction: "now" }]);
      expect(counts.mix).toEqual([{ qosLevel: expect.any(String), qosClass: expect.any(String), pods: 1 }]);
    });
  });

  it("has marks of a timeline, in pages and of a time", async () => {
    const kindsOf = (items: { kind: string }[]) => items.map(({ kind }) => kind);
    await eventually(async () => {
      const { body } = await ask("marks");
      expect(kindsOf(body.items)).toEqual(
        expect.arrayContaining(["pluginRegistered", "conditionSet", "taintAdded", "evictionEnded"]),
      );
    });
    const { items } = (await ask("marks")).body;
    expect(items[0]).toMatchObject({ kind: "agentStarted", title: "agent 0.0.0-test started" });
    const selected = items.find(({ kind }: { kind: string }) => kind === "evictionSelected");
    expect(selected).toMatchObject({
      plugin: "pressure",
      pod: { name: "victim" },
      round: expect.any(Number),
    });
    const { body: page } = await ask("marks?limit=2");
    const { body: rest } = await ask(`marks?after=${page.next}`);
    expect([...page.items, ...rest.items].slice(0, items.length)).toEqual(items);
    expect((await ask(`marks?since=${selected.at}&until=${selected.at}`)).body.items).toContainEqual(
      selected,
    );
    expect((await ask("marks?until=5")).body).toEqual({ items: [], oldest: expect.any(Number), gaps: [] });
  });

  it("never has the credentials of the agent", async () => {
    for (const path of contract.paths) {
      const { body } = await ask(queries[path] ?? path);
      expect(JSON.stringify(body)).not.toMatch(/BEGIN [A-Z ]*PRIVATE KEY|Bearer /);
    }
  });
});

describe("a request", () => {
  it.each([
    ["of another page", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" }, 403],
    ["of a page at another port", { "sec-fetch-site": "same-site", "sec-fetch-mode": "cors" }, 403],
    [
      "of a frame in another page",
      { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" },
      403,
    ],
    ["of a browser without fetch metadata", { origin: "http://evil.example" }, 403],
    [
      "that follows a link",
      { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
      200,
    ],
    ["of the agent's own page", { "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors" }, 200],
    ["that a user typed", { "sec-fetch-site": "none", "sec-fetch-mode": "navigate" }, 200],
  ])("%s is answered %j with %i", async (_, headers, status) => {
    // fetch() sets these headers itself.
    const answered = new Promise<number | undefined>((resolve, reject) => {
      request(url("version"), { headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on("error", reject)
        .end();
    });
    expect(await answered).toBe(status);
  });
});

describe("the stream", () => {
  const streams: EventStreamClient[] = [];
  const open = async (query = "", headers = {}) => {
    // The server may not have noticed yet that those of the test before have ended.
    const stream = await until("a place for a stream", async () => {
      const opened = await EventStreamClient.open(url(`stream${query}`), headers);
      if (opened.response.status !== 429) return opened;
      await opened.ended;
      return undefined;
    });
    streams.push(stream);
    return stream;
  };
  afterEach(async () => {
    for (const stream of streams.splice(0)) {
      await stream.close();
      for (const { event, data } of stream.events) contract.checkEvent(event, data);
    }
  });

  it("sends all states at the start, and what changes", async () => {
    const stream = await open();
    expect(stream.response.headers.get("content-type")).toBe("text/event-stream");
    expect(stream.response.headers.get("cache-control")).toBe("no-store");
    for (const name of [
      "open",
      "node",
      "plugins",
      "objects",
      "devices",
      "claims",
      "eviction/node",
      "eviction/budgets",
      "eviction/candidates",
      "readings",
    ])
      await stream.untilEvent(name);
    reporters[0]!.say(widgets("alpha", 4));
    const before = stream.of("objects").length;
    await until("objects are sent again", () => stream.of("objects").length > before);
    runtime.exit(containers.get("two")!, 4);
    await stream.untilEvent("events", ({ event }) => event.pod.name === "two" && event.exitCode === 4);
  });

  it("sends marks in order, each once, and continues after the last that a client had", async () => {
    const first = await open("?topics=marks");
    await first.untilEvent("open");
    const late = await startGoodPlugin(agent.pluginDir, "late", widgets("late", 1));
    await first.untilEvent("marks", ({ plugin }) => plugin === "late");
    await first.close();
    await late.stop();
    await eventually(async () => {
      const { items } = (await ask("marks")).body;
      expect(items).toContainEqual(expect.objectContaining({ kind: "pluginLost", plugin: "late" }));
    });
    const second = await open(`?topics=marks&cursor=${first.lastId}`);
    await second.untilEvent("marks", ({ kind, plugin }) => kind === "pluginLost" && plugin === "late");
    const ids = [...first.of("marks"), ...second.of("marks")].map(({ data }) => data.id);
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("continues after the last event that a client had, each once", async () => {
    const first = await open("?topics=events,rounds");
    await first.untilEvent("open");
    runtime.startContainer(runtime.createContainer(runtime.sandboxesOf("uid-one")[0]!.id, { name: "a" }));
    await first.untilEvent("events", ({ event }) => event.container?.name === "a");
    const { lastId } = first;
    await first.close();
    runtime.startContainer(runtime.createContainer(runtime.sandboxesOf("uid-one")[0]!.id, { name: "b" }));
    const { body } = await ask("events");
    await until("it is in the log", async () => (await ask(`events?cursor=${body.cursor}`)).body.end);
    const second = await open("?topics=events,rounds", { "last-event-id": lastId });
    await second.untilEvent("events", ({ event }) => event.container?.name === "b");
    const third = await open(`?topics=events,rounds&cursor=${lastId}`);
    await third.untilEvent("events", ({ event }) => event.container?.name === "b");
    for (const { events } of [second, third]) {
      const names = events.flatMap(({ event, data }) =>
        event === "events" ? [data.event.container?.name] : [],
      );
      expect(names.filter((name) => name === "a" || name === "b")).toEqual(["b"]);
    }
  });

  it("sends a snapshot for a cursor of another log, and rounds of a new state directory from the first", async () => {
    const stream = await open("?topics=events,rounds&cursor=another-5.99999999.-");
    expect((await stream.untilEvent("snapshot")).data.pods).toHaveLength(3);
    expect((await stream.untilEvent("rounds")).data.id).toBe(1);
  });

  it.each([
    ["?topics=nothing", 400],
    ["?topics=events,", 400],
    ["?cursor=nonsense", 400],
    ["?topcis=events", 400],
  ])("refuses %s", async (query, status) => {
    const response = await fetch(url(`stream${query}`));
    expect(response.status).toBe(status);
    contract.check("version", await response.json(), "default");
  });

  it("refuses streams beyond 16, and serves others again when one ends", async () => {
    const all = await Promise.all(Array.from({ length: 16 }, () => open("?topics=node")));
    const refused = await fetch(url("stream"));
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "2"]);
    expect((await ask("version")).status).toBe(200);
    await all[0]!.close();
    await eventually(async () => {
      const again = await open("?topics=node");
      expect(again.response.status).toBe(200);
      await again.untilEvent("node");
    });
  });

  it("continues after the last event that a client had when the agent was restarted", async () => {
    const sandbox = runtime.sandboxesOf("uid-three")[0]!.id;
    const first = await open("?topics=events,rounds");
    await first.untilEvent("open");
    runtime.startContainer(runtime.createContainer(sandbox, { name: "before" }));
    await first.untilEvent("events", ({ event }) => event.container?.name === "before");
    const { lastId } = first;
    await agent.stop();
    await first.ended;
    runtime.startContainer(runtime.createContainer(sandbox, { name: "meanwhile" }));
    agent = await start();
    const second = await open("?topics=events,rounds", { "last-event-id": lastId });
    await second.untilEvent("events", ({ event }) => event.container?.name === "meanwhile");
    expect(second.of("snapshot")).toEqual([]);
    const names = second.of("events").map(({ data }) => data.event.container?.name);
    expect(names.filter((name) => name === "before")).toEqual([]);
    const rounds = second.of("rounds").map(({ data }) => data.id);
    expect(new Set(rounds).size).toBe(rounds.length);
    const starts = (await ask("marks")).body.items.filter(({ kind }: { kind: string }) =>
      /^agent/.test(kind),
    );
    expect(starts.map(({ kind }: { kind: string }) => kind)).toEqual([
      "agentStarted",
      "agentStopped",
      "agentStarted",
    ]);
  });
});
