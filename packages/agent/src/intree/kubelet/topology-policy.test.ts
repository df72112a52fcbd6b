import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { KubeletConfig, topologyManagerOf, topologyPolicy } from "./topology-policy.ts";

describe("topologyPolicy", () => {
  it.each([
    ["none", "container", "None"],
    ["none", "pod", "None"],
    ["best-effort", "container", "BestEffortContainerLevel"],
    ["best-effort", "pod", "BestEffortPodLevel"],
    ["restricted", "container", "RestrictedContainerLevel"],
    ["restricted", "pod", "RestrictedPodLevel"],
    ["single-numa-node", "container", "SingleNUMANodeContainerLevel"],
    ["single-numa-node", "pod", "SingleNUMANodePodLevel"],
  ])("%s by %s is %s", (policy, scope, expected) => {
    expect(topologyPolicy({ policy, scope })).toBe(expected);
  });

  it.each([
    ["Restricted", "pod", /"Restricted" is not a topology manager policy/],
    ["constructor", "pod", /is not a topology manager policy/],
    ["restricted", "node", /"node" is not a topology manager scope/],
  ])("%s by %s is refused", (policy, scope, message) => {
    expect(() => topologyPolicy({ policy, scope })).toThrow(message);
  });
});

const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

describe("topologyManagerOf", () => {
  it.each([
    ["nothing", header, "none", "container"],
    [
      "a policy",
      `${header}topologyManagerPolicy: restricted\ncpuManagerPolicy: static\n`,
      "restricted",
      "container",
    ],
    [
      "both",
      `${header}topologyManagerPolicy: best-effort\ntopologyManagerScope: pod\n`,
      "best-effort",
      "pod",
    ],
    ["empty words", `${header}topologyManagerPolicy: ""\ntopologyManagerScope:\n`, "none", "container"],
    [
      "JSON",
      '{"kind":"KubeletConfiguration","topologyManagerPolicy":"restricted"}',
      "restricted",
      "container",
    ],
  ])("uses the kubelet's default if the file has %s", (_, text, policy, scope) => {
    expect(topologyManagerOf(text)).toEqual({ policy, scope });
  });

  it.each([
    ["another kind", "kind: KubeProxyConfiguration", /"KubeProxyConfiguration", not KubeletConfiguration/],
    ["a list", "- a", /not a map/],
    ["nothing at all", "", /not a map/],
    ["no YAML", "a: [", /not valid YAML/],
    ["a number for a policy", `${header}topologyManagerPolicy: 3`, /topologyManagerPolicy is not a string/],
    ["a bomb of aliases", bomb(), /not valid YAML/],
  ])("refuses %s", (_, text, message) => {
    expect(() => topologyManagerOf(text)).toThrow(message);
  });
});

describe("the kubelet's configuration file", () => {
  let directory: string;
  let path: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "nodekeeper-policy-"));
    path = join(directory, "config.yaml");
  });
  afterEach(() => rm(directory, { recursive: true }));

  it("is named when it is missing, too large or wrong", async () => {
    const file = new KubeletConfig(path);
    await expect(file.topologyManager()).rejects.toMatchObject({ code: "notFound" });
    await writeFile(path, "#".repeat(1024 * 1024 + 1));
    await expect(file.topologyManager()).rejects.toMatchObject({ code: "exhausted" });
    await writeFile(path, "kind: Pod");
    await expect(file.topologyManager()).rejects.toMatchObject({
      code: "invalid",
      message: `kubelet configuration ${path}`,
    });
    await writeFile(path, `${header}topologyManagerScope: pod`);
    await expect(file.topologyManager()).resolves.toEqual({ policy: "none", scope: "pod" });
  });

  it("is read again only when it has changed", async () => {
    const file = new KubeletConfig(path);
    await writeFile(path, `${header}topologyManagerPolicy: restricted`);
    const first = await file.topologyManager();
    expect(await file.topologyManager()).toBe(first);
    await writeFile(path, `${header}topologyManagerPolicy: best-effort`);
    await expect(file.topologyManager()).resolves.toEqual({ policy: "best-effort", scope: "container" });
    // As a mounted ConfigMap is swapped: a new file takes the name.
    await writeFile(`${path}.new`, `${header}topologyManagerPolicy: none`);
    await rename(`${path}.new`, path);
    await expect(file.topologyManager()).resolves.toEqual({ policy: "none", scope: "container" });
  });
});

describe("the kubelet's drop-in directory", () => {
  let directory: string;
  let config: KubeletConfig;
  const write = async (name: string, settings: string) => {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), header + settings);
  };
  const read = () => config.topologyManager(join(directory, "conf.d"));
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "nodekeeper-drop-ins-"));
    config = new KubeletConfig(join(directory, "config.yaml"));
    await write("config.yaml", "topologyManagerPolicy: best-effort\ntopologyManagerScope: pod\n");
  });
  afterEach(() => rm(directory, { recursive: true }));

  it("overrides the file in lexical order, also by files of subdirectories", async () => {
    await write("conf.d/10-policy.conf", "topologyManagerPolicy: restricted");
    await write("conf.d/20-other.conf", "cpuManagerPolicy: static");
    await write("conf.d/30-ignored.yaml", "topologyManagerPolicy: none");
    expect(await read()).toEqual({ policy: "restricted", scope: "pod" });
    await write("conf.d/20/99.conf", "topologyManagerPolicy: single-numa-node");
    expect(await read()).toEqual({ policy: "single-numa-node", scope: "pod" });
    await write("conf.d/20.conf", "topologyManagerPolicy: best-effort\ntopologyManagerScope: null");
    expect(await read()).toEqual({ policy: "best-effort", scope: "container" });
    await rm(join(directory, "conf.d/20.conf"));
    expect(await read()).toEqual({ policy: "single-numa-node", scope: "pod" });
  });

  it("is named when it is missing, has too many files or a wrong one", async () => {
    await expect(read()).rejects.toMatchObject({
      code: "notFound",
      message: `failed to read kubelet configuration ${directory}/conf.d`,
    });
    await write("conf.d/a.conf", "topologyManagerPolicy: 3");
    await expect(read()).rejects.toMatchObject({
      code: "invalid",
      message: `kubelet configuration ${directory}/conf.d/a.conf`,
    });
    for (let file = 0; file <= 100; file++) await write(`conf.d/${file}.conf`, "");
    await expect(read()).rejects.toMatchObject({ code: "exhausted" });
  });
});

function bomb(): string {
  const lines = ["a0: &a0 [x]"];
  for (let at = 1; at < 10; at++) {
    lines.push(`a${at}: &a${at} [${Array.from({ length: 10 }, () => `*a${at - 1}`).join(", ")}]`);
  }
  return lines.join("\n");
}
