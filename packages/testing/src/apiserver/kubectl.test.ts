import { execFile, execFileSync, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../until.ts";
import { createDevApiServer, type DevApiServer } from "./dev-api-server.ts";

const run = promisify(execFile);

function kubectlIsHere(): boolean {
  try {
    execFileSync("kubectl", ["version", "--client"], { stdio: "ignore", timeout: 10_000 });
    return true;
  } catch {
    return false;
  }
}

const here = kubectlIsHere();

test.skipIf(here)("kubectl is not installed: what it sees of the dev cluster is not tested", (context) => {
  context.skip("no kubectl on the PATH");
});

describe.skipIf(!here)("kubectl", () => {
  let server: DevApiServer;
  let home: string;
  let env: NodeJS.ProcessEnv;

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), "dev-cluster-kubectl-"));
    const kubeconfig = join(home, "kubeconfig");
    // A home of its own: kubectl keeps what it discovers by address, and test ports come again.
    env = { PATH: process.env.PATH, HOME: home, KUBECACHEDIR: join(home, "cache"), KUBECONFIG: kubeconfig };
    server = createDevApiServer({ clock: systemClock, log: silentLogger });
    await server.start();
    server.seedNode("n1");
    await server.writeKubeconfig(kubeconfig);
  });

  afterAll(async () => {
    await server.stop();
    await rm(home, { recursive: true });
  });

  async function kubectl(...args: string[]): Promise<string> {
    const { stdout } = await run("kubectl", args, { env });
    return stdout.trim();
  }

  async function manifest(name: string, text: string): Promise<string> {
    const path = join(home, name);
    await writeFile(path, text);
    return path;
  }

  test("get, describe, label, annotate, taint and patch a node", async () => {
    expect(await kubectl("get", "nodes", "--no-headers")).toMatch(/^n1\s+Ready\s+<none>\s+\d+s\s+v1/);
    expect(await kubectl("label", "node", "n1", "a=b")).toBe("node/n1 labeled");
    expect(await kubectl("annotate", "node", "n1", "c=d")).toBe("node/n1 annotated");
    expect(await kubectl("taint", "node", "n1", "k=v:NoSchedule")).toBe("node/n1 tainted");
    const patch = '{"status":{"capacity":{"example.com/x":"3"}}}';
    await kubectl("patch", "node", "n1", "--subresource=status", "--type=merge", "-p", patch);
    const described = await kubectl("describe", "node", "n1");
    for (const part of ["a=b", "c: d", "k=v:NoSchedule", "example.com/x:  3"])
      expect(described).toContain(part);
  });

  test("apply on the client, then on the server, without a flag for validation", async () => {
    const text = (value: string) =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: "${value}"}\n`;
    expect(await kubectl("apply", "-f", await manifest("c.yaml", text("1")))).toBe("configmap/c created");
    expect(await kubectl("apply", "-f", join(home, "c.yaml"))).toBe("configmap/c unchanged");
    expect(await kubectl("apply", "-f", await manifest("c.yaml", text("2")))).toBe("configmap/c configured");
    const path = await manifest("c.yaml", text("3"));
    expect(await kubectl("apply", "--server-side", "-f", path)).toBe("configmap/c serverside-applied");
    await expect(
      kubectl("apply", "--server-side", "--field-manager=other", "-f", await manifest("d.yaml", text("4"))),
    ).rejects.toThrow('conflict with "kubectl": .data.a');
    expect(await kubectl("get", "cm", "c", "-o", "jsonpath={.data.a}")).toBe("3");
  });

  test("a CustomNodeResource by its short names", async () => {
    const text =
      "apiVersion: node.katalyst.kubewharf.io/v1alpha1\nkind: CustomNodeResource\nmetadata: {name: n1}\n";
    await kubectl(
      "apply",
      "-f",
      await manifest("cnr.yaml", `${text}spec: {nodeResourceProperties: [{propertyName: cpu}]}\n`),
    );
    expect(await kubectl("get", "kcnr", "--no-headers")).toMatch(/^n1\s+1\s+0\s/);
    expect(await kubectl("describe", "cnr", "n1")).toContain("Property Name:  cpu");
    expect(await kubectl("delete", "cnr", "n1")).toContain('"n1" deleted');
  });

  test("a CustomResourceDefinition makes a kind", async () => {
    const spec =
      "spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}";
    const crd = `apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n${spec}\n`;
    await kubectl("apply", "-f", await manifest("crd.yaml", crd));
    await kubectl("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=180s");
    await kubectl(
      "apply",
      "-f",
      await manifest("w.yaml", "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n"),
    );
    expect(await kubectl("get", "widgets", "-o", "name")).toBe("widget.example.com/w");
    expect(await kubectl("api-resources")).toMatch(/widgets\s+example.com\/v1\s+true\s+Widget/);
  });

  test("create, which sends protobuf, and delete a namespace with its contents", async () => {
    expect(await kubectl("create", "namespace", "team")).toBe("namespace/team created");
    expect(await kubectl("-n", "team", "create", "configmap", "m", "--from-literal=a=b")).toBe(
      "configmap/m created",
    );
    await kubectl("-n", "team", "create", "pdb", "b", "--selector=app=x", "--min-available=50%");
    expect(await kubectl("-n", "team", "get", "pdb", "--no-headers")).toMatch(/^b\s+50%\s+N\/A\s+0/);
    expect(await kubectl("-n", "team", "get", "cm", "m", "-o", "jsonpath={.data.a}")).toBe("b");
    expect(await kubectl("auth", "can-i", "create", "pods")).toBe("yes");
    await kubectl("delete", "namespace", "team");
    expect(await kubectl("get", "cm", "-A", "-o", "name")).not.toContain("/m");
  });

  test("get -w shows a change as it happens", async () => {
    const watcher = spawn("kubectl", ["get", "nodes", "-w", "--no-headers"], { env });
    const lines = createInterface(watcher.stdout)[Symbol.asyncIterator]();
    try {
      expect((await lines.next()).value).toMatch(/^n1\s+Ready /);
      await until("the watch", () => server.watches > 0);
      await kubectl("cordon", "n1");
      expect((await lines.next()).value).toMatch(/^n1\s+Ready,SchedulingDisabled /);
    } finally {
      watcher.kill();
    }
  });
});
