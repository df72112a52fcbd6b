import { describe, expect, it } from "vitest";
import { header, WrittenConfiguration } from "./testing/written-configuration.ts";

const written = new WrittenConfiguration();

describe("sources", () => {
  it("returns the documented defaults", async () => {
    const { configuration, warnings, origins } = await written.load();
    expect(configuration).toEqual({
      nodeName: "host-1",
      stateDir: "/var/lib/nodekeeper/state",
      rollingUpdate: false,
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
      archive: {
        endpoint: "",
        protocol: "http",
        caFile: "",
        headersFile: "",
        compression: "gzip",
        traces: true,
        attributes: [],
        interval: 5_000,
        timeout: 10_000,
        maxBatchSize: 512 * 1024,
        maxQueued: 20_000,
      },
      devices: {
        wipeDelay: 30_000,
        taintDelay: 3_000,
        settleTime: 30_000,
        minWriteInterval: 200,
        maxMessageSize: 64 * 1024 * 1024,
        clusterPools: { drivers: [], leaseNamespace: "nodekeeper" },
        kubeletPlugin: {
          enabled: false,
          registryDirectory: "/var/lib/kubelet/plugins_registry",
          cdiDirectory: "/var/run/cdi",
          callTimeout: 40_000,
          hostPaths: ["/"],
          exemptRootDrivers: false,
          deviceStatus: false,
          metadata: false,
          metadataDirectory: "/var/lib/nodekeeper/device-metadata",
        },
      },
      eviction: {
        enabled: true,
        syncPeriod: 5_000,
        callTimeout: 10_000,
        outOfTurnRounds: true,
        strict: false,
        dryRunPlugins: ["*"],
        fallbackPlugins: ["*"],
        burst: 3,
        cooldown: 30_000,
        ranking: ["qosLevel", "priority", "scope"],
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
        qosAnnotations: { reclaimed: [], shared: [], dedicated: [], system: [] },
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
        nameOwners: [],
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
        kubelet: {
          podResourcesSocket: "/var/lib/kubelet/pod-resources/kubelet.sock",
          resyncInterval: 30_000,
          debounce: 500,
          deviceZones: [],
          siblingNumaMaxDistance: 0,
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
    const { configuration, origins } = await written.loadText(text, {
      env: { NODE_NAME: "of-env", NODEKEEPER_LOG_LEVEL: "error", NODEKEEPER_KUBE_API_QPS: "" },
      flags: { nodeName: "of-flag", logLevel: undefined, somethingElse: 5 },
    });
    expect(configuration.nodeName).toBe("of-flag");
    expect(configuration.log.level).toBe("error");
    expect(configuration.kube).toMatchObject({ qps: 1, burst: 3, requestTimeout: 10_000 });
    expect(origins.get("nodeName")).toBe("flag --node-name");
    expect(origins.get("log.level")).toBe("env NODEKEEPER_LOG_LEVEL");
    expect(origins.get("kube.qps")).toBe(`${written.file}:5:13`);
    expect(origins.has("stateDir")).toBe(false);
  });

  it("parses every kind of value from strings", async () => {
    const { configuration } = await written.load({
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
    const { configuration } = await written.loadText(
      `${header}log:\nkube: {requestTimeout: &t 7s}\nreporting:\n  callTimeout: *t\n  additionalKinds: [{group: "", version: v1, kind: Thing}]\n`,
    );
    expect(configuration.reporting.callTimeout).toBe(7_000);
    expect(configuration.reporting.additionalKinds).toEqual([{ group: "", version: "v1", kind: "Thing" }]);
  });

  it.each(["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "node:1"])(
    "accepts the address %s, reachable from other machines, only with a certificate",
    async (serverAddress) => {
      await expect(written.load({ flags: { serverAddress } })).rejects.toThrow(
        /flag --server-address.*server\.address.*is reachable from other machines/,
      );
      const files = { serverTlsCertFile: "/tls/tls.crt", serverTlsPrivateKeyFile: "/tls/tls.key" };
      expect((await written.load({ flags: { serverAddress, ...files } })).warnings).toEqual([]);
      const { serverTlsCertFile } = files;
      await expect(written.load({ flags: { serverAddress, serverTlsCertFile } })).rejects.toThrow(
        /server\.tlsPrivateKeyFile.*must be set together/,
      );
    },
  );

  it.each(["127.0.0.2:1", "[::1]:1", "localhost:0"])(
    "accepts %s without a certificate, and warns if one is set",
    async (address) => {
      const flags = { serverAddress: address };
      expect((await written.load({ flags })).warnings).toEqual([]);
      const files = { serverTlsCertFile: "/tls/tls.crt", serverTlsPrivateKeyFile: "/tls/tls.key" };
      expect((await written.load({ flags: { ...flags, ...files } })).warnings).toEqual([
        `server.tlsCertFile is not used: server.address ${address} is on loopback.`,
      ]);
    },
  );

  it("takes a second address for other machines beside one on loopback, with a certificate", async () => {
    const files = { serverTlsCertFile: "/tls/tls.crt", serverTlsPrivateKeyFile: "/tls/tls.key" };
    const flags = { serverRemoteAddress: "0.0.0.0:10291" };
    expect((await written.load({ flags: { ...flags, ...files } })).warnings).toEqual([]);
    await expect(written.load({ flags })).rejects.toThrow(
      /server\.remoteAddress.*0\.0\.0\.0:10291 is reachable from other machines: expected server\.tlsCertFile/,
    );
    await expect(written.load({ flags: { serverRemoteAddress: "127.0.0.1:1", ...files } })).rejects.toThrow(
      /server\.remoteAddress.*127\.0\.0\.1:1 is on loopback/,
    );
  });

  it("shares nothing between two configurations", async () => {
    const first = await written.load();
    first.configuration.plugins.directories.push("/mine");
    expect((await written.load()).configuration.plugins.directories).toHaveLength(1);
  });
});
