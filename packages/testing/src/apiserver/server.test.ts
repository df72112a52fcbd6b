import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, describe, expect, test } from "vitest";
import { createDevApiServer } from "./dev-api-server.ts";
import type { DevApiServerOptions } from "./options.ts";
import { CONFIG_MAPS, type Harness, NODES, startServer } from "./testing/server.ts";

const running: Harness[] = [];
async function start(options: Partial<DevApiServerOptions> = {}): Promise<Harness> {
  const api = await startServer(options);
  running.push(api);
  return api;
}
afterEach(async () => {
  await Promise.all(running.splice(0).map((api) => api.server.stop()));
});

const configMap = (name: string, value = "1", labels = {}) => ({
  metadata: { name, labels },
  data: { a: value },
});

describe("watch", () => {
  test("begins with what is there, then sends changes in order, with a DELETED of a revision of its own", async () => {
    const api = await start();
    await api.call("POST", CONFIG_MAPS, configMap("a"));
    const watch = await api.watch(`${CONFIG_MAPS}?watch=true`);
    expect(await watch.next()).toMatchObject({ type: "ADDED", object: { metadata: { name: "a" } } });
    await api.patch(`${CONFIG_MAPS}/a`, "merge", { data: { a: "2" } });
    const modified = await watch.next();
    expect(modified).toMatchObject({ type: "MODIFIED", object: { data: { a: "2" } } });
    await api.call("DELETE", `${CONFIG_MAPS}/a`);
    const deleted = await watch.next();
    expect(deleted.type).toBe("DELETED");
    expect(Number(deleted.object.metadata.resourceVersion)).toBeGreaterThan(
      Number(modified.object.metadata.resourceVersion),
    );
  });

  test("continues from a list without a gap", async () => {
    const api = await start();
    const { body } = await api.call("GET", CONFIG_MAPS);
    for (const name of ["a", "b", "c"]) await api.call("POST", CONFIG_MAPS, configMap(name));
    const watch = await api.watch(`${CONFIG_MAPS}?watch=1&resourceVersion=${body.metadata.resourceVersion}`);
    const names = [];
    for (let i = 0; i < 3; i++) names.push((await watch.next()).object.metadata.name);
    expect(names).toEqual(["a", "b", "c"]);
  });

  test("an object appears to a selector when it begins to match, and goes when it stops", async () => {
    const api = await start();
    const watch = await api.watch(`${CONFIG_MAPS}?watch=true&labelSelector=on%3Dyes`);
    await api.call("POST", CONFIG_MAPS, configMap("a"));
    await api.patch(`${CONFIG_MAPS}/a`, "merge", { metadata: { labels: { on: "yes" } } });
    expect((await watch.next()).type).toBe("ADDED");
    await api.patch(`${CONFIG_MAPS}/a`, "merge", { metadata: { labels: { on: "no" } } });
    expect((await watch.next()).type).toBe("DELETED");
  });

  test("history that is no longer kept is a 410 in the stream", async () => {
    const api = await start({ historyLimit: 8 });
    const { body } = await api.call("GET", CONFIG_MAPS);
    for (let i = 0; i < 12; i++) await api.call("POST", CONFIG_MAPS, configMap(`c${i}`));
    const watch = await api.watch(
      `${CONFIG_MAPS}?watch=true&resourceVersion=${body.metadata.resourceVersion}`,
    );
    expect(await watch.next()).toMatchObject({
      type: "ERROR",
      object: { kind: "Status", code: 410, reason: "Expired" },
    });
    expect(await watch.next()).toBeUndefined();
  });

  test("bookmarks, initial events and the timeout", async () => {
    const api = await start();
    api.server.seedNode("n1");
    const watch = await api.watch(
      `${NODES}?watch=true&allowWatchBookmarks=true&timeoutSeconds=90&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`,
    );
    expect((await watch.next()).type).toBe("ADDED");
    const annotations = { "k8s.io/initial-events-end": "true" };
    expect(await watch.next()).toMatchObject({ type: "BOOKMARK", object: { metadata: { annotations } } });
    await api.clock.step(60_000);
    expect(await watch.next()).toMatchObject({
      type: "BOOKMARK",
      object: { kind: "Node", metadata: { resourceVersion: String(api.server.store.revision) } },
    });
    await api.clock.step(30_000);
    expect(await watch.next()).toBeUndefined();
    expect(api.server.watches).toBe(0);
  });

  test("a watcher that does not read is cut, and the others continue", async () => {
    const api = await start({ maxWatchBufferBytes: 1024 * 1024 });
    await new Promise<void>((resolve) => {
      const slow = request(`${api.url}${CONFIG_MAPS}?watch=true`, (response) => {
        response.on("error", () => {});
        resolve();
      });
      slow.on("error", () => {});
      slow.end();
    });
    const reader = await api.watch(`${CONFIG_MAPS}?watch=true`);
    const seen = (async () => {
      for (let i = 0; i < 40; i++) await reader.next();
    })();
    for (let i = 0; i < 40; i++) {
      api.server.store.put({
        apiVersion: "v1",
        kind: "ConfigMap",
        ...configMap("big", "x".repeat(512 * 1024)),
        metadata: { name: "big", namespace: "default" },
      });
      await new Promise((resolve) => setImmediate(resolve));
      await api.call("GET", "/version");
    }
    await seen;
    expect(api.server.watches).toBe(1);
  });
});

describe("lists", () => {
  test("all pages show one revision, whatever happens between them", async () => {
    const api = await start();
    for (const name of ["a", "b", "c", "d", "e"]) await api.call("POST", CONFIG_MAPS, configMap(name));
    const first = await api.call("GET", `${CONFIG_MAPS}?limit=2`);
    expect(first.body.metadata.remainingItemCount).toBe(3);
    await api.call("DELETE", `${CONFIG_MAPS}/d`);
    const second = await api.call("GET", `${CONFIG_MAPS}?limit=2&continue=${first.body.metadata.continue}`);
    const third = await api.call("GET", `${CONFIG_MAPS}?limit=2&continue=${second.body.metadata.continue}`);
    const names = [first, second, third].flatMap(({ body }) =>
      body.items.map((item: { metadata: { name: string } }) => item.metadata.name),
    );
    expect(names).toEqual(["a", "b", "c", "d", "e"]);
    expect(third.body.metadata).toEqual({ resourceVersion: first.body.metadata.resourceVersion });
    const lost = Buffer.from("deleted/2").toString("base64url");
    expect((await api.call("GET", `${CONFIG_MAPS}?limit=2&continue=${lost}`)).status).toBe(410);
  });

  test("a revision of the future is a timeout", async () => {
    const api = await start();
    expect((await api.call("GET", `${NODES}?watch=true&resourceVersion=999999`)).status).toBe(504);
    expect(await api.call("GET", `${NODES}?resourceVersion=999999`)).toMatchObject({
      status: 504,
      body: { reason: "Timeout" },
    });
  });

  test("tables and metadata on request", async () => {
    const api = await start();
    api.server.seedNode("n1");
    await api.clock.step(90_000);
    const table = await api.call("GET", NODES, undefined, {
      accept: "application/json;as=Table;v=v1;g=meta.k8s.io, application/json",
    });
    expect(table.body).toMatchObject({
      kind: "Table",
      rows: [
        {
          cells: [
            "n1",
            "Ready",
            "<none>",
            "90s",
            "v1.34.0",
            "127.0.0.1",
            "development",
            "development",
            "simulated://0.1.0",
          ],
        },
      ],
    });
    const metadata = await api.call("GET", `${NODES}/n1`, undefined, {
      accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    });
    expect(Object.keys(metadata.body).sort()).toEqual(["apiVersion", "kind", "metadata"]);
  });
});

describe("the server", () => {
  test.each(["0.0.0.0", "10.0.0.1", "::", "example.com"])("refuses to listen on %s", (address) => {
    expect(() => createDevApiServer({ clock: new FakeClock(), log: silentLogger, address })).toThrow(
      "loopback",
    );
  });

  test("answers under loopback names only", async () => {
    const api = await start();
    const status = await new Promise((resolve, reject) => {
      request(`${api.url}/version`, { headers: { host: "evil.example" } }, (response) =>
        resolve(response.statusCode),
      )
        .on("error", reject)
        .end();
    });
    expect(status).toBe(400);
  });

  test("asks for the token when it has one", async () => {
    const api = await start({ token: "secret" });
    expect((await api.call("GET", NODES)).status).toBe(401);
    expect((await api.call("GET", NODES, undefined, { authorization: "Bearer wrong!" })).status).toBe(401);
    expect((await api.call("GET", NODES, undefined, { authorization: "Bearer secret" })).status).toBe(200);
    expect((await api.call("GET", "/readyz")).status).toBe(200);
    expect(api.server.kubeconfig()).toContain("token: secret");
  });

  test("stops with open watches and hanging requests, and starts again on its port with everything it had", async () => {
    const api = await start({ faults: ({ path }) => (path === "/hang" ? "hang" : undefined) });
    await api.call("POST", CONFIG_MAPS, configMap("a"));
    const { body } = await api.call("GET", CONFIG_MAPS);
    const watch = await api.watch(`${CONFIG_MAPS}?watch=true`);
    const hanging = api.call("GET", "/hang").catch(() => "cut");
    await watch.next();
    await api.server.stop();
    expect(await hanging).toBe("cut");
    await expect(api.call("GET", CONFIG_MAPS)).rejects.toThrow();
    expect(await api.server.start()).toEqual({ url: api.url });
    expect((await api.call("GET", CONFIG_MAPS)).body).toEqual(body);
  });

  test("faults answer, cut and delay; the request log sees what is handled", async () => {
    const seen: string[] = [];
    const api = await start({
      faults: ({ resource, query }) => {
        if (query.get("fault") === "429")
          return { status: 429, headers: { "retry-after": "7" }, body: { kind: "Status" } };
        if (query.get("fault") === "cut") return "cut";
        return resource?.plural === "nodes" ? { delayMs: 5000 } : undefined;
      },
      onRequest: ({ method, path, body }) => seen.push(`${method} ${path} ${JSON.stringify(body)}`),
    });
    const limited = await fetch(`${api.url}${CONFIG_MAPS}?fault=429`);
    expect([limited.status, limited.headers.get("retry-after"), await limited.json()]).toEqual([
      429,
      "7",
      { kind: "Status" },
    ]);
    await expect(fetch(`${api.url}${CONFIG_MAPS}?fault=cut`)).rejects.toThrow();
    const delayed = api.call("GET", NODES);
    while (api.clock.timers === 0) await new Promise((resolve) => setImmediate(resolve));
    await api.clock.step(5000);
    expect((await delayed).status).toBe(200);
    await api.call("DELETE", `${CONFIG_MAPS}/x`, { gracePeriodSeconds: 0 });
    expect(seen).toEqual([`GET ${NODES} undefined`, `DELETE ${CONFIG_MAPS}/x {"gracePeriodSeconds":0}`]);
  });

  test("cutWatches breaks them without an end", async () => {
    const api = await start();
    const watch = await api.watch(`${NODES}?watch=true`);
    api.server.cutWatches();
    await expect(watch.next()).rejects.toThrow();
  });

  test("a body over 3 MiB, an unknown path, method and media type are refused", async () => {
    const api = await start();
    expect((await api.call("POST", CONFIG_MAPS, configMap("big", "x".repeat(4 * 1024 * 1024)))).status).toBe(
      413,
    );
    expect((await api.call("GET", "/apis/none/v1/things")).status).toBe(404);
    expect((await api.call("GET", "/api/v1/%zz")).status).toBe(404);
    expect((await api.call("POST", `${CONFIG_MAPS}/a`, {})).status).toBe(405);
    expect((await api.call("POST", CONFIG_MAPS, "x", { "content-type": "text/plain" })).status).toBe(415);
  });

  test("access reviews follow the rules", async () => {
    const api = await start({ rules: ({ verb }) => verb !== "delete" });
    const ask = async (verb: string) => {
      const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
      return (await api.call("POST", path, { spec: { resourceAttributes: { verb, resource: "pods" } } })).body
        .status.allowed;
    };
    expect([await ask("get"), await ask("delete")]).toEqual([true, false]);
  });

  test("discovery: aggregated and one by one list the same kinds", async () => {
    const api = await start();
    const whole = await api.call("GET", "/apis", undefined, {
      accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    });
    const { body } = await api.call("GET", "/apis");
    expect(whole.body.items.map((item: { metadata: { name: string } }) => item.metadata.name).sort()).toEqual(
      body.groups.map(({ name }: { name: string }) => name).sort(),
    );
    const nodes = await api.call("GET", "/api/v1");
    expect(nodes.body.resources).toContainEqual(
      expect.objectContaining({ name: "nodes/status", kind: "Node", verbs: ["get", "patch", "update"] }),
    );
  });
});

describe("the data directory", () => {
  test("keeps objects, identities, ownership and the revision over a restart", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "dev-cluster-"));
    try {
      const before = await start({ dataDir });
      await before.apply(
        `${CONFIG_MAPS}/kept`,
        { apiVersion: "v1", kind: "ConfigMap", ...configMap("kept") },
        "alice",
      );
      await before.call("POST", CONFIG_MAPS, configMap("deleted"));
      await before.call("DELETE", `${CONFIG_MAPS}/deleted`);
      const { body } = await before.call("GET", CONFIG_MAPS);
      await before.server.stop();
      const after = await start({ dataDir });
      expect((await after.call("GET", CONFIG_MAPS)).body).toEqual(body);
      const watch = await after.watch(`${CONFIG_MAPS}?watch=true&resourceVersion=2`);
      expect(await watch.next()).toMatchObject({ type: "ERROR", object: { code: 410 } });
    } finally {
      await Promise.all(running.splice(0).map((api) => api.server.stop()));
      await rm(dataDir, { recursive: true });
    }
  });

  test("that can't be read is a clear error; a kubeconfig is for its owner alone", async () => {
    const directory = await mkdtemp(join(tmpdir(), "dev-cluster-"));
    await writeFile(
      join(directory, "dev-cluster.db"),
      "this is no database, and long enough to be seen as none at all",
    );
    await expect(startServer({ dataDir: directory })).rejects.toMatchObject({ code: "corrupt" });
    const api = await start();
    const path = join(directory, "kubeconfig");
    await api.server.writeKubeconfig(path);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readFile(path, "utf8")).toContain(`server: ${api.url}`);
    await rm(directory, { recursive: true });
  });
});
