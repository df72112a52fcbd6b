import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { missingParts, pathOf } from "./support/parts.ts";

const execute = promisify(execFile);
const files = join(import.meta.dirname, "../../deploy/helm/nodekeeper/files");
const rulesFile = join(files, "alerts.yaml");
const missing = missingParts("promtool");

interface Rule {
  alert: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
}
const rules: Rule[] = parse(readFileSync(rulesFile, "utf8")).groups.flatMap(
  ({ rules }: { rules: Rule[] }) => rules,
);

/** One alert: series by which it fires after an hour of a sample a minute, and the same where nothing is wrong. */
interface Case {
  /** "metric{label="value"}", to which job, instance and node are added: values in promtool's notation. */
  fires: Record<string, string>;
  isWell: Record<string, string>;
  /** Labels of the alert besides job, instance and node. */
  labels?: Record<string, string>;
  /** What the description shows as $value. */
  value?: string;
  /** Labels of the alert where those of the target are not among them. */
  only?: Record<string, string>;
}

const target = { instance: "10.0.0.1:10291", job: "nodekeeper", node: "worker-1" };
const rises = "0+1x90";
const stays = "5x90";

/** An alert on a gauge or the rise of a counter with these labels. */
function on(metric: string, fires: string, isWell: string, labels: Record<string, string>, value?: string) {
  const shown = Object.entries(labels).map(([name, text]) => `${name}="${text}"`);
  const series = `${metric}{${shown.join(",")}}`;
  return { fires: { [series]: fires }, isWell: { [series]: isWell }, labels, ...(value ? { value } : {}) };
}
const without = (each: Case, ...names: string[]): Case => ({
  ...each,
  labels: Object.fromEntries(Object.entries(each.labels ?? {}).filter(([name]) => !names.includes(name))),
});

const cases: Record<string, Case> = {
  NodekeeperAgentDown: on("up", "0x90", "1x90", {}),
  NodekeeperAbsent: {
    fires: { 'other{other="1"}': "1x90" },
    isWell: { "up{}": "1x90" },
    only: { job: "nodekeeper" },
  },
  NodekeeperRestarting: on("process_start_time_seconds", "1x50 2 3 4 5x40", "1x70 2x20", {}, "4"),
  NodekeeperCheckFailing: on("nodekeeper_server_health_check", "0x90", "1x90", {
    check: "ReporterPublished",
  }),
  NodekeeperStateInMemory: on("nodekeeper_state_persistent", "0x90", "1x90", {}),
  NodekeeperConfigRejected: {
    fires: {
      'nodekeeper_config_last_reload_timestamp_seconds{outcome="rejected"}': "200x90",
      'nodekeeper_config_last_reload_timestamp_seconds{outcome="applied"}': "100x90",
    },
    isWell: {
      'nodekeeper_config_last_reload_timestamp_seconds{outcome="rejected"}': "200x90",
      'nodekeeper_config_last_reload_timestamp_seconds{outcome="applied"}': "300x90",
    },
  },
  NodekeeperVersionsDiffer: {
    fires: {
      'nodekeeper_build_info{version="0.1.0"}': "1x240",
      'nodekeeper_build_info{version="0.2.0"}': "1x240",
    },
    isWell: { 'nodekeeper_build_info{version="0.2.0"}': "1x240" },
    only: {},
    value: "2",
  },
  NodekeeperPluginNotAccepted: without(
    on("nodekeeper_plugins_plugins", "1x90", "0x90", { type: "ReporterPlugin", state: "refused" }, "1"),
    "state",
  ),
  NodekeeperReporterFailing: without(
    on("nodekeeper_reporting_call_failures_total", rises, stays, {
      plugin: "numa",
      method: "GetReportContent",
      code: "deadline",
    }),
    "method",
    "code",
  ),
  NodekeeperEvictionPluginFailing: without(
    on("nodekeeper_eviction_plugin_call_failures_total", rises, stays, {
      plugin: "memory",
      method: "ThresholdMet",
      code: "deadline",
    }),
    "method",
    "code",
  ),
  NodekeeperContentStale: on(
    "nodekeeper_reporting_content_age_seconds",
    "150x90",
    "4x90",
    { plugin: "numa" },
    "2m 30s",
  ),
  NodekeeperContentRefused: on(
    "nodekeeper_reporting_quarantined",
    "1x90",
    "0x90",
    { object: "CustomNodeResource" },
    "1",
  ),
  NodekeeperFieldsRefused: without(
    on("nodekeeper_reporting_rejected_fields_total", rises, stays, { plugin: "numa", reason: "invalid" }),
    "reason",
  ),
  NodekeeperPublishingFailing: {
    fires: {
      'nodekeeper_reporting_writes_total{object="Node",part="spec",result="forbidden"}': rises,
      'nodekeeper_reporting_writes_total{object="Node",part="spec",result="ok"}': stays,
    },
    isWell: {
      'nodekeeper_reporting_writes_total{object="Node",part="spec",result="conflict"}': rises,
      'nodekeeper_reporting_writes_total{object="Node",part="spec",result="ok"}': rises,
    },
    labels: { object: "Node" },
  },
  NodekeeperSlicesNotWritten: on("nodekeeper_devices_write_failing", "1x90", "0x90", { driver: "gpu" }),
  NodekeeperDevicesQuarantined: on("nodekeeper_devices_quarantined", "2x90", "0x90", { driver: "gpu" }, "2"),
  NodekeeperDriverFailing: on("nodekeeper_devices_drivers", "1x90", "0x90", { state: "failing" }, "1"),
  NodekeeperDriverAbsent: {
    fires: { 'nodekeeper_devices_published{driver="gpu"}': "8x40", "up{}": "1x90" },
    // The agent is upgraded meanwhile: another pod.
    isWell: {
      'nodekeeper_devices_published{driver="gpu",pod="a"}': "8x40",
      'nodekeeper_devices_published{driver="gpu",pod="b"}': "_x40 8x50",
      "up{}": "1x90",
    },
    labels: { driver: "gpu" },
    value: "8",
  },
  NodekeeperClaimsFailing: without(
    on("nodekeeper_claims_operations_total", rises, stays, {
      driver: "gpu",
      operation: "prepare",
      result: "unavailable",
    }),
    "result",
  ),
  NodekeeperEvictionRoundsFailing: without(
    on("nodekeeper_eviction_rounds_total", rises, stays, { result: "failed" }),
    "result",
  ),
  NodekeeperEvictionLimitReached: on("nodekeeper_eviction_held_rounds_total", rises, stays, {
    reason: "nodeLimit",
  }),
  NodekeeperEvictionHeld: on("nodekeeper_eviction_held_rounds_total", rises, stays, {
    reason: "noEligiblePod",
  }),
  NodekeeperEvictionBlocked: without(
    on("nodekeeper_eviction_unserved_rounds_total", rises, stays, { reason: "late" }),
    "reason",
  ),
  NodekeeperEvictionsFailing: on(
    "nodekeeper_eviction_ended_total",
    "0x50 6x40",
    stays,
    { outcome: "failed" },
    "6",
  ),
  NodekeeperEvictionOverdue: on("nodekeeper_eviction_ended_total", "0x50 1x40", stays, {
    outcome: "overdue",
  }),
  NodekeeperTaintsFailing: without(
    on("nodekeeper_eviction_taint_writes_total", rises, stays, { result: "failed" }),
    "result",
  ),
  NodekeeperRelistStale: on("nodekeeper_lifecycle_last_seen_seconds", "60x90", "0+60x90", {}),
};

/** A metric's series with the labels of its target. */
function ofTarget(series: Record<string, string>): { series: string; values: string }[] {
  return Object.entries(series).map(([name, values]) => {
    if (name.startsWith("other{")) return { series: name, values };
    const own = Object.entries(target).map(([label, value]) => `${label}="${value}"`);
    return { series: name.replace("{", `{${own.join(",")}${name.endsWith("{}") ? "" : ","}`), values };
  });
}

function expected({ alert, labels, annotations }: Rule, { labels: more = {}, value = "", only }: Case) {
  const all: Record<string, string> = only ?? { ...target, ...more };
  const show = (text: string) =>
    text
      .replaceAll("{{ or $labels.node $labels.instance }}", all.node ?? "")
      .replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, name) => all[name] ?? "")
      .replaceAll(/\{\{ \$value[^}]*\}\}/g, value);
  const shown = Object.fromEntries(Object.entries(annotations).map(([name, text]) => [name, show(text)]));
  return { alertname: alert, exp_labels: { ...all, ...labels }, exp_annotations: shown };
}

describe.skipIf(missing)("the alert rules", () => {
  let directory: string;

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "nk-alerts-"));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const promtool = (...args: readonly string[]) => execute(pathOf("promtool"), args);

  it("are rules of Prometheus", async () => {
    const { stdout } = await promtool("check", "rules", "--lint=all", "--lint-fatal", rulesFile);
    expect(stdout).toContain(`${rules.length} rules found`);
  });

  it("and the dashboard's queries are PromQL", async () => {
    const { panels } = JSON.parse(readFileSync(join(files, "dashboard.json"), "utf8"));
    const queries: string[] = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    const inGrafana = (query: string) => query.replaceAll("$__rate_interval", "5m").replaceAll("$node", ".*");
    const rules = queries.map((query, at) => ({ record: `query:${at}`, expr: inGrafana(query) }));
    const file = join(directory, "dashboard.yaml");
    writeFileSync(file, stringify({ groups: [{ name: "dashboard", rules }] }));
    expect((await promtool("check", "rules", file)).stdout).toContain(`${queries.length} rules found`);
    expect(queries.length).toBeGreaterThan(20);
  });

  it("fire each when they should, with what an operator reads, and not when nothing is wrong", async () => {
    expect(Object.keys(cases).sort()).toEqual(rules.map(({ alert }) => alert).sort());
    const tests = rules.flatMap((rule) => {
      const each = cases[rule.alert]!;
      const { exp_labels, exp_annotations, alertname } = expected(rule, each);
      const eval_time = rule.alert === "NodekeeperVersionsDiffer" ? "3h" : "1h";
      const test = (series: Record<string, string>, exp_alerts: unknown[]) => ({
        interval: "1m",
        input_series: ofTarget(series),
        alert_rule_test: [{ eval_time, alertname, exp_alerts }],
      });
      return [test(each.fires, [{ exp_labels, exp_annotations }]), test(each.isWell, [])];
    });
    const file = join(directory, "tests.yaml");
    writeFileSync(file, stringify({ rule_files: [rulesFile], evaluation_interval: "1m", tests }));
    await promtool("test", "rules", file);
  });
});
