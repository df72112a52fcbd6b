import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadConfiguration } from "../../packages/agent/src/config/index.ts";
import { named, render, renderText } from "./support/chart.ts";
import { missingParts } from "./support/parts.ts";

const missing = missingParts("helm");

describe.skipIf(missing)("the chart", () => {
  let directory: string;

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "nk-chart-"));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it.each([
    ["a misspelt value", "evictions.dryRun=false", /evictions/],
    ["a misspelt setting", "config.eviction.burts=1", /burts/],
    ["a setting that is out of range", "config.eviction.burst=5000", /burst/],
    ["a misspelt value in a group", "eviction.dryrun=false", /dryrun/],
    ["a word in place of a boolean", "lifecycle.enabled=yes please", /lifecycle.enabled|lifecycle\/enabled/],
    ["a port that is none", "statusServer.port=70000", /statusServer.port|statusServer\/port/],
    ["a relative host path", "hostPaths.state=state", /hostPaths.state|hostPaths\/state/],
    ["a digest that is none", "image.digest=sha256:1", /image.digest|image\/digest/],
    ["an interval that is none", "podMonitor.interval=often", /podMonitor.interval|podMonitor\/interval/],
    ["a list in place of a map", 'nodeSelector=["a"]', /nodeSelector/],
    ["a plugin without a name", "reporting.inTreePlugins={}", /inTreePlugins/],
    [
      "metrics that Prometheus can't reach",
      "podMonitor.enabled=true",
      /needs statusServer\.remote\.enabled=true/,
    ],
    ["probes that can't reach the pod", "hostNetwork=false", /needs statusServer\.remote\.enabled=true/],
    ["a NetworkPolicy without effect", "networkPolicy.enabled=true", /needs hostNetwork=false/],
    ["no account", "serviceAccount.create=false", /serviceAccount\.name is needed/],
    [
      "a word in place of a duration",
      "config.eviction.syncPeriod=banana",
      /syncPeriod.*'banana' does not match/,
    ],
    [
      "a number in place of a duration",
      "config.eviction.syncPeriod=5",
      /syncPeriod.*got number, want string/,
    ],
    ["a unit that is none", "config.reporting.resyncInterval=1d", /resyncInterval.*'1d' does not match/],
    [
      "a duration that is too long",
      "config.eviction.syncPeriod=5m1s",
      /config\.eviction\.syncPeriod: got "5m1s", expected a duration from 1s to 5m, such as "5s"/,
    ],
    [
      "a duration that is too short",
      "config.eviction.syncPeriod=0.5s",
      /got "0.5s", expected a duration from 1s/,
    ],
    [
      "a duration in microseconds",
      "config.plugins.infoTimeout=99µs",
      /got "99µs", expected a duration from 100ms/,
    ],
    [
      "a negative duration",
      "config.reporting.minWriteInterval=-1s",
      /got "-1s", expected a duration from 0s/,
    ],
    ["a size with a unit that is none", "config.runtime.maxMessageSize=16MB", /'16MB' does not match/],
    [
      "a size that is too large",
      "config.runtime.maxMessageSize=1Gi",
      /got "1Gi", expected a size from 1Mi to 256Mi/,
    ],
    ["a size that is too small", "config.reporting.maxContentSize=0.5Ki", /expected a size from 1Ki to 64Mi/],
    ["a size in bytes that is too large", "config.runtime.maxMessageSize=268435457", /maxMessageSize/],
    [
      "an address that the chart sets",
      "config.server.address=127.0.0.1:10300",
      /config\.server\.address has no effect: .* 127\.0\.0\.1:10290; set statusServer\.port/,
    ],
    ["an address without a port", "config.server.address=127.0.0.1", /server.address|server\/address/],
    ["a runtime that is no socket", "lifecycle.runtimeEndpoint=containerd", /lifecycle.runtimeEndpoint/],
    ["a relative path", "config.stateDir=state", /stateDir/],
    ["a type of zone that is reserved", 'config.reporting.kubelet.deviceZones=["a=Numa"]', /deviceZones/],
    ["a threshold of nothing", 'config.eviction.reclaimedResources.thresholds=["a=0"]', /thresholds/],
    ["an unknown reporter", 'reporting.inTreePlugins=["-gpu"]', /inTreePlugins.*must be one of .*kubelet-/],
    ["an unknown eviction plugin", 'config.eviction.inTreePlugins=["gpu"]', /must be one of .*rss-overuse/],
  ])("refuses %s", async (_, value, message) => {
    await expect(renderText(value)).rejects.toThrow(message);
  });

  it("accepts the ends of ranges, in every way of writing them", async () => {
    const objects = await render(
      ...["config.eviction.syncPeriod=4m60s", "config.lifecycle.relistPeriod=.1s"],
      ...["config.plugins.infoTimeout=100000us", "config.reporting.minWriteInterval=0s"],
      ...["config.runtime.maxMessageSize=256Mi", "config.reporting.maxContentSize=1024"],
    );
    const file = join(directory, "ends.yaml");
    writeFileSync(file, named(objects, "ConfigMap")!.data["config.yaml"]);
    const { configuration } = await loadConfiguration({ file, flags: {}, env: {}, hostname: "worker-1" });
    expect(configuration).toMatchObject({
      eviction: { syncPeriod: 300_000 },
      lifecycle: { relistPeriod: 100 },
      runtime: { maxMessageSize: 268_435_456 },
      reporting: { maxContentSize: 1024 },
    });
  });

  it.each([
    ["probes.liveness.successThreshold", false],
    ["probes.startup.successThreshold", false],
    ["probes.readiness.successThreshold", true],
    ["probes.liveness.terminationGracePeriodSeconds", true],
    ["probes.startup.terminationGracePeriodSeconds", true],
    ["probes.readiness.terminationGracePeriodSeconds", false],
  ])("%s is a field that the API accepts: %s", async (path, isAccepted) => {
    const rendered = renderText(`${path}=2`);
    if (isAccepted) expect(await rendered).toContain(`${path.split(".")[2]}: 2`);
    else await expect(rendered).rejects.toThrow(path.split(".")[2]);
  });
});
