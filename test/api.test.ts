import { request } from "node:http";
import { eventually } from "@nodekeeper/testing/until";
import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import { DRIVER, useApiNode } from "./support/api-node.ts";

const CNR = "node.katalyst.kubewharf.io/v1alpha1/CustomNodeResource";

const node = useApiNode();
const { ask, url } = node;

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
    const result = await validator.validate(structuredClone(node.contract.document) as never);
    expect(result.errors ?? []).toEqual([]);
    expect(result.valid).toBe(true);
    expect(validator.version).toBe("3.1");
  });

  it("has every path that is served, and the answers of all are as it has them", async () => {
    const { routes } = await node.agent.api("");
    const served = routes.map(({ path }: { path: string }) => path);
    expect(Object.keys(node.contract.document.paths).sort()).toEqual(served.sort());
    for (const path of node.contract.paths) {
      const { status, headers } = await ask(queries[path] ?? path);
      expect([path, status]).toEqual([path, 200]);
      expect(headers.get("cache-control")).toBe("no-store");
    }
  });

  it("has the error that a wrong query is answered", async () => {
    for (const path of node.contract.paths) {
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
    await eventually(() => expect(node.cluster.cnr()?.status).toMatchObject(content.status));
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
    node.runtime.exit(node.containers.get("one")!, 3);
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
      const ofEach = <T>(value: T) => body.minutes.map(() => value);
      expect(body.signals).toMatchObject([
        {
          plugin: "pressure",
          scope: "memory",
          observed: ofEach(0.93),
          threshold: ofEach(0.8),
          met: ofEach("hard"),
        },
      ]);
      expect(body.minutes).not.toEqual([]);
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

  it("never has the credentials of the agent", async () => {
    for (const path of node.contract.paths) {
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
