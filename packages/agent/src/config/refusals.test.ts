import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { header, WrittenConfiguration } from "./testing/written-configuration.ts";

const written = new WrittenConfiguration();

describe("refusals", () => {
  it("lists every problem of every source with its position, the given and the expected value", async () => {
    const text = `${header}
nodeName: 5
kube: {qps: fast, tokn: x}
reporting:
  collectInterval: 5 hours
  callTimeout: 1h
  colectInterval: 5s
maxPlugins: 3
`;
    const loading = written.loadText(text, {
      flags: { logLevel: "loud" },
      env: { NODEKEEPER_KUBE_API_BURST: "0" },
    });
    expect((await written.problemsOf(loading)).sort()).toEqual(
      [
        "/config.yaml:4:11|nodeName|got 5, expected the name of a Node object",
        '/config.yaml:5:13|kube.qps|got "fast", expected a number from 0.1 to 1000',
        "/config.yaml:5:19|kube.tokn|unknown setting",
        '/config.yaml:7:20|reporting.collectInterval|got "5 hours", expected a duration from 1s to 10m, such as "5s"',
        '/config.yaml:8:16|reporting.callTimeout|got "1h", expected a duration from 100ms to 5m, such as "10s"',
        "/config.yaml:9:3|reporting.colectInterval|unknown setting; did you mean reporting.collectInterval?",
        "/config.yaml:10:1|maxPlugins|unknown setting; did you mean plugins.maxPlugins?",
        'flag --log-level|log.level|got "loud", expected one of debug, info, warn, error',
        "env NODEKEEPER_KUBE_API_BURST|kube.burst|got 0, expected a whole number from 1 to 2000",
      ].sort(),
    );
  });

  it.each([
    ["empty", "", ".yaml||the file is empty"],
    ["comments alone", "# nothing\n", ".yaml||the file is empty"],
    ["no map", "- a\n", ".yaml:1:1||expected a map of settings"],
    ["a text", "hello\n", ".yaml:1:1||expected a map of settings"],
    ["two documents", `${header}---\n${header}`, ".yaml:3:1||more than one YAML document"],
    ["a key twice", `${header}log: {}\nlog: {}\n`, ".yaml:4:1||Map keys must be unique"],
    [
      "a nested key twice",
      `${header}log:\n  level: info\n  level: warn\n`,
      ".yaml:5:3||Map keys must be unique",
    ],
    ["no YAML", `${header}log: [`, ".yaml:3:7||"],
    [
      "a section that is a text",
      `${header}kube: yes please\n`,
      '|kube|got "yes please", expected a map of settings',
    ],
    ["a setting without a value", `${header}stateDir:\n`, "|stateDir|got null, expected an absolute path"],
    ["a map for a text", `${header}stateDir: {a: 1}\n`, '|stateDir|got {"a":1}, expected an absolute path'],
    ["a relative path", `${header}stateDir: state\n`, '|stateDir|got "state", expected an absolute path'],
    ["prototype names", `${header}__proto__: {a: 1}\n`, "|__proto__|unknown setting"],
    ["constructor", `${header}log: {constructor: 1}\n`, "|log.constructor|unknown setting"],
    [
      "an attribute of the agent itself",
      `${header}archive: {attributes: [k8s.cluster.name=prod, k8s.node.name=other]}\n`,
      "with names that the agent does not use itself (service.name, service.version, k8s.node.name,",
    ],
    ["an item twice", `${header}plugins: {directories: [/a, /a]}\n`, "without duplicates"],
    [
      "a directory of plugins that is the kubelet's",
      `${header}plugins: {directories: [/a/plugins]}\ndevices: {kubeletPlugin: {enabled: true, registryDirectory: /a/plugins/}}\n`,
      "|plugins.directories|/a/plugins overlaps with devices.kubeletPlugin.registryDirectory",
    ],
    [
      "a directory of plugins around the kubelet's",
      `${header}plugins: {directories: [/b, /var/lib]}\ndevices: {kubeletPlugin: {enabled: true}}\n`,
      "|plugins.directories|/var/lib overlaps",
    ],
    ["no directorys", `${header}plugins: {directories: []}\n`, "a list of 1 to 16 absolute paths"],
    ["a port too large", `${header}server: {address: "a:65536"}\n`, "expected host:port"],
    ["no port", `${header}server: {address: "127.0.0.1"}\n`, "expected host:port"],
    ["a bare IPv6 address", `${header}server: {address: "::1:80"}\n`, "expected host:port"],
    [
      "a namespaced name for a kind",
      `${header}reporting: {additionalKinds: [{group: a, kind: B}]}\n`,
      "group, version and kind",
    ],
    ["infinity", `${header}kube: {qps: .inf}\n`, "a number from 0.1 to 1000"],
    ["a fraction", `${header}kube: {burst: 1.5}\n`, "a whole number"],
    ["a size too large", `${header}reporting: {maxContentSize: 65Mi}\n`, "a size from 1Ki to 64Mi"],
    [
      "another version",
      "apiVersion: v1\nkind: AgentConfiguration\n",
      '.yaml:1:13|apiVersion|got "v1", expected "nodekeeper.dev/v1alpha1"',
    ],
    ["no kind", "apiVersion: nodekeeper.dev/v1alpha1\n", '|kind|missing, expected "AgentConfiguration"'],
  ])("rejects %s", async (_, text, expected) => {
    expect((await written.problemsOf(written.loadText(text))).join("\n")).toContain(expected);
  });

  it("rejects a file that is too large, missing or a directory", async () => {
    expect(await written.problemsOf(written.loadText(`${header}#${"x".repeat(1024 * 1024)}`))).toEqual([
      "/config.yaml||the file is larger than 1 MiB",
    ]);
    expect(await written.problemsOf(written.load({ file: "/dev/zero" }))).toEqual([
      "/dev/zero||the file is larger than 1 MiB",
    ]);
    expect(await written.problemsOf(written.load({ file: join(written.directory, "none") }))).toEqual([
      "/none||the file does not exist",
    ]);
    expect((await written.problemsOf(written.load({ file: written.directory })))[0]).toContain(
      "failed to read",
    );
  });

  it("rejects an alias bomb without expanding it", async () => {
    const levels = Array.from(
      { length: 20 },
      (_, n) => `  - &l${n + 1} [${Array(9).fill(`*l${n}`).join(",")}]`,
    );
    const text = `${header}plugins:\n  directories:\n  - &l0 [x]\n${levels.join("\n")}\n`;
    // Expands to 9^20 strings.
    expect(await written.problemsOf(written.loadText(text))).not.toEqual([]);
  });

  it("names the host when its name is not a valid node name", async () => {
    expect(await written.problemsOf(written.load({ hostname: "my_host" }))).toEqual([
      'host name|nodeName|got "my_host", expected the name of a Node object; set --node-name',
    ]);
    expect(
      (await written.load({ hostname: "my_host", flags: { nodeName: "n1" } })).configuration.nodeName,
    ).toBe("n1");
    expect((await written.load({ hostname: "Upper.Example" })).configuration.nodeName).toBe("upper.example");
  });

  it.each([
    ['reclaimedResources: {thresholds: ["example.com/cpus=150%"]}', "eviction.reclaimedResources.thresholds"],
    ["reclaimedResources: {thresholds: [example.com/cpus=0]}", "eviction.reclaimedResources.thresholds"],
    [
      "reclaimedResources: {softThresholds: [example.com/cpus]}",
      "eviction.reclaimedResources.softThresholds",
    ],
    ['rssOveruse: {rateThreshold: "150%"}', "eviction.rssOveruse.rateThreshold"],
    ["rssOveruse: {rateThreshold: 0}", "eviction.rssOveruse.rateThreshold"],
    ["systemMemory: {workloadPressure: 150}", "eviction.systemMemory.workloadPressure"],
    ["numaMemory: {largestReserveShare: 1.5}", "eviction.numaMemory.largestReserveShare"],
    ["rootfsPressure: {minimumFree: 150}", "eviction.rootfsPressure.minimumFree"],
    ["rootfsOveruse: {sharedNamespaces: [A_b]}", "eviction.rootfsOveruse.sharedNamespaces"],
    ["pidOveruse: {threshold: -1}", "eviction.pidOveruse.threshold"],
    ["systemCpu: {usageUpper: 80}", "eviction.systemCpu.usageUpper"],
    ["numaMemory: {ranking: [size]}", "eviction.numaMemory.ranking"],
    ["killerRules: [system_cores=deletion]", "eviction.killerRules"],
    ["taintPrefix: nodekeeper.dev/", "eviction.taintPrefix"],
    ["burst: -2", "eviction.burst"],
  ])("rejects a meaningless threshold: %s", async (text, path) => {
    const problems = await written.problemsOf(written.loadText(`${header}eviction: {${text}}\n`));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(path);
  });

  it("validates overridden values too", async () => {
    const problems = await written.problemsOf(
      written.loadText(`${header}log: {level: x}\n`, { flags: { logLevel: "info" } }),
    );
    expect(problems).toHaveLength(1);
  });
});
