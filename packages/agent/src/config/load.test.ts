import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ConfigurationError, type ConfigurationSources, loadConfiguration, settings } from "./index.ts";

const header = "apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\n";
let folder: string;
let file: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "nodekeeper-config-"));
  file = join(folder, "config.yaml");
});
afterAll(() => rm(folder, { recursive: true }));

function load(sources: Partial<ConfigurationSources> = {}) {
  return loadConfiguration({ flags: {}, env: {}, hostname: "host-1", ...sources });
}

async function loadText(text: string, sources: Partial<ConfigurationSources> = {}) {
  await writeFile(file, text);
  return load({ file, ...sources });
}

async function problemsOf(loading: Promise<unknown>): Promise<string[]> {
  const error = await loading.then(
    () => expect.fail("the configuration was accepted"),
    (error: unknown) => error,
  );
  expect(error).toBeInstanceOf(ConfigurationError);
  const { code, problems, message } = error as ConfigurationError;
  expect(code).toBe("invalid");
  for (const problem of problems) expect(message).toContain(problem.message);
  return problems.map(({ source, path, message }) => `${source.replace(folder, "")}|${path}|${message}`);
}

describe("sources", () => {
  it("returns the documented defaults", async () => {
    const { configuration, warnings, origins } = await load();
    expect(configuration).toEqual({
      nodeName: "host-1",
      stateDir: "/var/lib/nodekeeper/state",
      hostRoot: "/",
      log: { level: "info" },
      kube: { kubeconfig: "", context: "", qps: 20, burst: 40, requestTimeout: 10_000 },
      server: { address: "127.0.0.1:10290", remoteAddress: "", tlsCertFile: "", tlsPrivateKeyFile: "" },
      api: { socket: "/run/nodekeeper/nodekeeper.sock" },
      runtime: { endpoint: "", requestTimeout: 120_000, maxMessageSize: 16 * 1024 * 1024 },
      lifecycle: {
        enabled: true,
        relistPeriod: 1_000,
        eventedRelistPeriod: 30_000,
        useRuntimeEvents: true,
        unhealthyAfter: 180_000,
        inspectionPatience: 2_000,
        maxInspections: 32,
        logCapacity: 100_000,
        savedEvents: 20_000,
      },
      devices: {
        wipeDelay: 30_000,
        taintDelay: 5_000,
        settleTime: 30_000,
        minWriteInterval: 200,
        maxMessageSize: 64 * 1024 * 1024,
        kubeletPlugin: {
          enabled: false,
          registryDirectory: "/var/lib/kubelet/plugins_registry",
          cdiDirectory: "/var/run/cdi",
          callTimeout: 40_000,
          hostPaths: ["/"],
        },
      },
      eviction: {
        enabled: true,
        syncPeriod: 5_000,
        callTimeout: 10_000,
        outOfTurnRounds: true,
        strict: false,
        dryRunPlugins: [],
        burst: 3,
        cooldown: 30_000,
        conditionTransitionPeriod: 300_000,
        taintPrefix: "nodekeeper.dev",
        softEvictionNotifyPath: "",
        taintEffects: ["NoSchedule", "PreferNoSchedule"],
        releaseMargin: 30_000,
        longestRelease: 600_000,
        failedEvictionPause: 60_000,
        forgetPluginAfter: 300_000,
        limits: { window: 600_000, perNode: 10, perNamespace: 0, perOwner: 2 },
        skip: { labels: [], annotations: [], daemonSets: true },
        grace: { shortest: 10_000, longest: 3_600_000, allowZero: false },
        killer: "evictionApi",
        killerRules: [],
        inTreePlugins: ["*"],
        systemMemory: {
          freeMinimum: 0,
          workloadPressure: 15,
          podPressure: 1,
          pressedPods: 3,
          meanPressure: 4,
          pressureDuration: 15_000,
          workloadCgroup: "",
          detectionPeriod: 9_000,
          cooldown: 35_000,
          victimMinimumShare: 0.001,
          ranking: ["qosLevel", "priority", "usage"],
          gracePeriod: 0,
          reclaimedGracePeriod: 10_000,
        },
        numaMemory: {
          lowGuard: 256 * 2 ** 20,
          minGap: 2 ** 30,
          lowReserve: 4 * 2 ** 30,
          largestReserveShare: 0.1,
          reclaimedCounts: 6,
          allCounts: 12,
          dangerCounts: 1,
          victimMinimumShare: 0.001,
          ranking: ["qosLevel", "priority", "nodeUsage"],
          gracePeriod: 0,
          reclaimedGracePeriod: 10_000,
        },
        rssOveruse: { rateThreshold: 1.05, labels: [] },
        rootfsPressure: {
          minimumFree: 10,
          minimumInodesFree: 5,
          minimumCapacity: 10 * 2 ** 30,
          podMinimumUsed: 0,
          podMinimumInodes: 0,
          gracePeriod: 0,
        },
        rootfsOveruse: {
          sharedThreshold: 0,
          reclaimedThreshold: 0,
          sharedNamespaces: [],
          mostPods: 1,
          gracePeriod: 0,
        },
        pidOveruse: { threshold: 0, gracePeriod: 0 },
        systemCpu: {
          loadUpper: 2,
          loadLower: 1,
          usageUpper: 0.8,
          usageLower: 0.6,
          looks: 10,
          metShare: 0.8,
          cooldown: 300_000,
          gracePeriod: 0,
        },
        policies: {
          files: [],
          enabled: ["*"],
          nodefsPath: "/var/lib/kubelet",
          imagefsPath: "",
          containerfsPath: "",
        },
        reclaimedResources: {
          thresholds: [
            "resource.katalyst.kubewharf.io/reclaimed_millicpu=5",
            "resource.katalyst.kubewharf.io/reclaimed_memory=5",
          ],
          softThresholds: [],
          tolerance: 0,
          gracePeriod: 60_000,
          skipZeroResources: [],
        },
        records: { maxAge: 7 * 24 * 3_600_000, maxSize: 64 * 1024 * 1024 },
      },
      plugins: {
        directories: ["/var/lib/nodekeeper/plugins_registry"],
        endpointDirectories: ["/var/lib/kubelet/plugins"],
        allowedUids: [],
        maxPlugins: 128,
        rescanInterval: 10_000,
        infoTimeout: 10_000,
        notifyTimeout: 5_000,
        livenessInterval: 5_000,
      },
      reporting: {
        collectInterval: 5_000,
        callTimeout: 10_000,
        pluginGracePeriod: 300_000,
        minWriteInterval: 200,
        resyncInterval: 600_000,
        maxContentSize: 4 * 1024 * 1024,
        inTreePlugins: ["*"],
        additionalKinds: [],
        managedTaintPrefixes: ["node.katalyst.kubewharf.io/", "nodekeeper.dev/"],
        kubelet: {
          podResourcesSocket: "/var/lib/kubelet/pod-resources/kubelet.sock",
          resyncInterval: 30_000,
          debounce: 500,
          deviceZones: [],
          configFile: "/var/lib/kubelet/config.yaml",
        },
        system: { reportCPUFlags: false },
      },
    });
    expect(warnings).toEqual([]);
    expect([...origins]).toEqual([["nodeName", "host name"]]);
  });

  it("prefers flags to environment variables to the file to defaults", async () => {
    const text = `${header}nodeName: of-file\nlog: {level: warn}\nkube: {qps: 1, burst: 3}\n`;
    const { configuration, origins } = await loadText(text, {
      env: { NODE_NAME: "of-env", NODEKEEPER_LOG_LEVEL: "error", NODEKEEPER_KUBE_API_QPS: "" },
      flags: { nodeName: "of-flag", logLevel: undefined, somethingElse: 5 },
    });
    expect(configuration.nodeName).toBe("of-flag");
    expect(configuration.log.level).toBe("error");
    expect(configuration.kube).toMatchObject({ qps: 1, burst: 3, requestTimeout: 10_000 });
    expect(origins.get("nodeName")).toBe("flag --node-name");
    expect(origins.get("log.level")).toBe("env NODEKEEPER_LOG_LEVEL");
    expect(origins.get("kube.qps")).toBe(`${file}:5`);
    expect(origins.has("stateDir")).toBe(false);
  });

  it("parses every kind of value from strings", async () => {
    const { configuration } = await load({
      flags: { pluginDirectories: "/a, /b,", reportingSystemReportCpuFlags: true, maxPlugins: "7" },
      env: {
        NODEKEEPER_REPORTING_CALL_TIMEOUT: "1m30s",
        NODEKEEPER_REPORTING_MAX_CONTENT_SIZE: "1Mi",
        KUBECONFIG: "/k2",
        NODEKEEPER_KUBECONFIG: "/k1",
      },
    });
    expect(configuration.plugins).toMatchObject({ directories: ["/a", "/b"], maxPlugins: 7 });
    expect(configuration.reporting).toMatchObject({ callTimeout: 90_000, maxContentSize: 1_048_576 });
    expect(configuration.reporting.system.reportCPUFlags).toBe(true);
    expect(configuration.kube.kubeconfig).toBe("/k1");
  });

  it("accepts an empty section, anchors, and additional kinds", async () => {
    const { configuration } = await loadText(
      `${header}log:\nkube: {requestTimeout: &t 7s}\nreporting:\n  callTimeout: *t\n  additionalKinds: [{group: "", version: v1, kind: Thing}]\n`,
    );
    expect(configuration.reporting.callTimeout).toBe(7_000);
    expect(configuration.reporting.additionalKinds).toEqual([{ group: "", version: "v1", kind: "Thing" }]);
  });

  it.each(["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "node:1"])(
    "accepts the address %s, reachable from other machines, only with a certificate",
    async (serverAddress) => {
      await expect(load({ flags: { serverAddress } })).rejects.toThrow(
        /flag --server-address.*server\.address.*is reachable from other machines/,
      );
      const files = { serverTlsCertFile: "/tls/tls.crt", serverTlsPrivateKeyFile: "/tls/tls.key" };
      expect((await load({ flags: { serverAddress, ...files } })).warnings).toEqual([]);
      const { serverTlsCertFile } = files;
      await expect(load({ flags: { serverAddress, serverTlsCertFile } })).rejects.toThrow(
        /server\.tlsPrivateKeyFile.*must be set together/,
      );
    },
  );

  it.each(["127.0.0.2:1", "[::1]:1", "localhost:0"])(
    "accepts %s without a certificate, and warns if one is set",
    async (address) => {
      const flags = { serverAddress: address };
      expect((await load({ flags })).warnings).toEqual([]);
      const files = { serverTlsCertFile: "/tls/tls.crt", serverTlsPrivateKeyFile: "/tls/tls.key" };
      expect((await load({ flags: { ...flags, ...files } })).warnings).toEqual([
        `server.tlsCertFile is not used: server.address ${address} is on loopback.`,
      ]);
    },
  );

  it("takes a second address for other machines beside one on loopback, with a certificate", async () => {
    const files = { serverTlsCertFile: "/tls/tls.crt", serverTlsPrivateKeyFile: "/tls/tls.key" };
    const flags = { serverRemoteAddress: "0.0.0.0:10291" };
    expect((await load({ flags: { ...flags, ...files } })).warnings).toEqual([]);
    await expect(load({ flags })).rejects.toThrow(
      /server\.remoteAddress.*0\.0\.0\.0:10291 is reachable from other machines: expected server\.tlsCertFile/,
    );
    await expect(load({ flags: { serverRemoteAddress: "127.0.0.1:1", ...files } })).rejects.toThrow(
      /server\.remoteAddress.*127\.0\.0\.1:1 is on loopback/,
    );
  });

  it("warns about a taint prefix that reporting does not manage", async () => {
    const flags = { evictionTaintPrefix: "pressure.example.org" };
    expect((await load({ flags })).warnings).toEqual([
      expect.stringContaining(
        "managedTaintPrefixes does not contain pressure.example.org/ (eviction.taintPrefix)",
      ),
    ]);
    const managed = { reportingManagedTaintPrefixes: "pressure.example.org/" };
    expect((await load({ flags: { ...flags, ...managed } })).warnings).toEqual([]);
    expect((await load({ flags: { ...flags, eviction: false } })).warnings).toEqual([]);
  });

  it("shares nothing between two configurations", async () => {
    const first = await load();
    first.configuration.plugins.directories.push("/mine");
    expect((await load()).configuration.plugins.directories).toHaveLength(1);
  });
});

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
    const loading = loadText(text, { flags: { logLevel: "loud" }, env: { NODEKEEPER_KUBE_API_BURST: "0" } });
    expect((await problemsOf(loading)).sort()).toEqual(
      [
        "/config.yaml:4|nodeName|got 5, expected the name of a Node object",
        '/config.yaml:5|kube.qps|got "fast", expected a number from 0.1 to 1000',
        "/config.yaml:5|kube.tokn|unknown setting",
        '/config.yaml:7|reporting.collectInterval|got "5 hours", expected a duration from 1s to 10m, such as "5s"',
        '/config.yaml:8|reporting.callTimeout|got "1h", expected a duration from 100ms to 5m, such as "10s"',
        "/config.yaml:9|reporting.colectInterval|unknown setting; did you mean reporting.collectInterval?",
        "/config.yaml:10|maxPlugins|unknown setting; did you mean plugins.maxPlugins?",
        'flag --log-level|log.level|got "loud", expected one of debug, info, warn, error',
        "env NODEKEEPER_KUBE_API_BURST|kube.burst|got 0, expected a whole number from 1 to 2000",
      ].sort(),
    );
  });

  it.each([
    ["empty", "", ".yaml||the file is empty"],
    ["comments alone", "# nothing\n", ".yaml||the file is empty"],
    ["no map", "- a\n", ".yaml:1||expected a map of settings"],
    ["a text", "hello\n", ".yaml:1||expected a map of settings"],
    ["two documents", `${header}---\n${header}`, ".yaml:3||more than one YAML document"],
    ["a key twice", `${header}log: {}\nlog: {}\n`, ".yaml:4||Map keys must be unique"],
    [
      "a nested key twice",
      `${header}log:\n  level: info\n  level: warn\n`,
      ".yaml:5||Map keys must be unique",
    ],
    ["no YAML", `${header}log: [`, ".yaml:3||"],
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
    ["an item twice", `${header}plugins: {directories: [/a, /a]}\n`, "without duplicates"],
    [
      "a folder of plugins that is the kubelet's",
      `${header}plugins: {directories: [/a/plugins]}\ndevices: {kubeletPlugin: {enabled: true, registryDirectory: /a/plugins/}}\n`,
      "|plugins.directories|/a/plugins overlaps with devices.kubeletPlugin.registryDirectory",
    ],
    [
      "a folder of plugins around the kubelet's",
      `${header}plugins: {directories: [/b, /var/lib]}\ndevices: {kubeletPlugin: {enabled: true}}\n`,
      "|plugins.directories|/var/lib overlaps",
    ],
    ["no folders", `${header}plugins: {directories: []}\n`, "a list of 1 to 16 absolute paths"],
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
      '.yaml:1|apiVersion|got "v1", expected "nodekeeper.dev/v1alpha1"',
    ],
    ["no kind", "apiVersion: nodekeeper.dev/v1alpha1\n", '|kind|missing, expected "AgentConfiguration"'],
  ])("rejects %s", async (_, text, expected) => {
    expect((await problemsOf(loadText(text))).join("\n")).toContain(expected);
  });

  it("rejects a file that is too large, missing or a directory", async () => {
    expect(await problemsOf(loadText(`${header}#${"x".repeat(1024 * 1024)}`))).toEqual([
      "/config.yaml||the file is larger than 1 MiB",
    ]);
    expect(await problemsOf(load({ file: "/dev/zero" }))).toEqual([
      "/dev/zero||the file is larger than 1 MiB",
    ]);
    expect(await problemsOf(load({ file: join(folder, "none") }))).toEqual([
      "/none||the file does not exist",
    ]);
    expect((await problemsOf(load({ file: folder })))[0]).toContain("failed to read");
  });

  it("rejects an alias bomb without expanding it", async () => {
    const levels = Array.from(
      { length: 20 },
      (_, n) => `  - &l${n + 1} [${Array(9).fill(`*l${n}`).join(",")}]`,
    );
    const text = `${header}plugins:\n  directories:\n  - &l0 [x]\n${levels.join("\n")}\n`;
    // Expanded it would be 9^20 strings.
    expect(await problemsOf(loadText(text))).not.toEqual([]);
  });

  it("names the host when its name is not a valid node name", async () => {
    expect(await problemsOf(load({ hostname: "my_host" }))).toEqual([
      'host name|nodeName|got "my_host", expected the name of a Node object; set --node-name',
    ]);
    expect((await load({ hostname: "my_host", flags: { nodeName: "n1" } })).configuration.nodeName).toBe(
      "n1",
    );
    expect((await load({ hostname: "Upper.Example" })).configuration.nodeName).toBe("upper.example");
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
    const problems = await problemsOf(loadText(`${header}eviction: {${text}}\n`));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(path);
  });

  it("validates overridden values too", async () => {
    const problems = await problemsOf(
      loadText(`${header}log: {level: x}\n`, { flags: { logLevel: "info" } }),
    );
    expect(problems).toHaveLength(1);
  });
});

// Tuning of in-tree plugins, which can be set only in the file.
const tuning = [
  "eviction.systemMemory.freeMinimum",
  "eviction.systemMemory.workloadPressure",
  "eviction.systemMemory.podPressure",
  "eviction.systemMemory.pressedPods",
  "eviction.systemMemory.meanPressure",
  "eviction.systemMemory.pressureDuration",
  "eviction.systemMemory.workloadCgroup",
  "eviction.systemMemory.detectionPeriod",
  "eviction.systemMemory.cooldown",
  "eviction.systemMemory.victimMinimumShare",
  "eviction.systemMemory.ranking",
  "eviction.systemMemory.gracePeriod",
  "eviction.systemMemory.reclaimedGracePeriod",
  "eviction.numaMemory.lowGuard",
  "eviction.numaMemory.minGap",
  "eviction.numaMemory.lowReserve",
  "eviction.numaMemory.largestReserveShare",
  "eviction.numaMemory.reclaimedCounts",
  "eviction.numaMemory.allCounts",
  "eviction.numaMemory.dangerCounts",
  "eviction.numaMemory.victimMinimumShare",
  "eviction.numaMemory.ranking",
  "eviction.numaMemory.gracePeriod",
  "eviction.numaMemory.reclaimedGracePeriod",
  "eviction.rssOveruse.rateThreshold",
  "eviction.rssOveruse.labels",
  "eviction.rootfsPressure.minimumFree",
  "eviction.rootfsPressure.minimumInodesFree",
  "eviction.rootfsPressure.minimumCapacity",
  "eviction.rootfsPressure.podMinimumUsed",
  "eviction.rootfsPressure.podMinimumInodes",
  "eviction.rootfsPressure.gracePeriod",
  "eviction.rootfsOveruse.sharedThreshold",
  "eviction.rootfsOveruse.reclaimedThreshold",
  "eviction.rootfsOveruse.sharedNamespaces",
  "eviction.rootfsOveruse.mostPods",
  "eviction.rootfsOveruse.gracePeriod",
  "eviction.pidOveruse.threshold",
  "eviction.pidOveruse.gracePeriod",
  "eviction.systemCpu.loadUpper",
  "eviction.systemCpu.loadLower",
  "eviction.systemCpu.usageUpper",
  "eviction.systemCpu.usageLower",
  "eviction.systemCpu.looks",
  "eviction.systemCpu.metShare",
  "eviction.systemCpu.cooldown",
  "eviction.systemCpu.gracePeriod",
  "eviction.reclaimedResources.thresholds",
  "eviction.reclaimedResources.softThresholds",
  "eviction.reclaimedResources.tolerance",
  "eviction.reclaimedResources.gracePeriod",
  "eviction.reclaimedResources.skipZeroResources",
];

describe("the list of settings", () => {
  it("gives each setting a unique flag and variable, except lists of objects and tuning", () => {
    const flags = settings.flatMap(({ flagName }) => flagName ?? []);
    const variables = settings.flatMap(({ envNames }) => envNames);
    expect(new Set(flags).size).toBe(flags.length);
    expect(new Set(variables).size).toBe(variables.length);
    expect(settings.filter(({ flagName }) => !flagName).map(({ path }) => path)).toEqual([
      ...tuning,
      "reporting.additionalKinds",
    ]);
    // A Service called "nodekeeper" adds variables with these prefixes to every pod in its namespace.
    expect(variables.filter((name) => /^NODEKEEPER_(PORT|SERVICE)/.test(name))).toEqual([]);
  });

  it("applies exactly these without a restart", () => {
    expect(settings.filter(({ isLive }) => isLive).map(({ path }) => path)).toEqual([
      "log.level",
      "devices.wipeDelay",
      "devices.taintDelay",
      "devices.minWriteInterval",
      "devices.kubeletPlugin.callTimeout",
      "eviction.syncPeriod",
      "eviction.callTimeout",
      "eviction.outOfTurnRounds",
      "eviction.dryRunPlugins",
      "eviction.burst",
      "eviction.cooldown",
      "eviction.conditionTransitionPeriod",
      "eviction.taintEffects",
      "eviction.releaseMargin",
      "eviction.longestRelease",
      "eviction.failedEvictionPause",
      "eviction.forgetPluginAfter",
      "eviction.limits.window",
      "eviction.limits.perNode",
      "eviction.limits.perNamespace",
      "eviction.limits.perOwner",
      "eviction.skip.labels",
      "eviction.skip.annotations",
      "eviction.skip.daemonSets",
      "eviction.grace.shortest",
      "eviction.grace.longest",
      "eviction.grace.allowZero",
      "eviction.killer",
      "eviction.killerRules",
      ...tuning,
      "eviction.policies.files",
      "eviction.policies.enabled",
      "eviction.records.maxAge",
      "eviction.records.maxSize",
      "reporting.collectInterval",
      "reporting.callTimeout",
      "reporting.pluginGracePeriod",
      "reporting.minWriteInterval",
      "reporting.resyncInterval",
    ]);
  });
});
