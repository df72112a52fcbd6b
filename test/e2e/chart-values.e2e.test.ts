import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Setting, setAt, settings } from "@nodekeeper/api/settings";
import { beforeAll, describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { otherValue } from "../support/setting-values.ts";
import type { ApiObject } from "./support/admin-client.ts";
import { chart, named, ofKind, remote, render, renderText } from "./support/chart.ts";
import { missingParts, pathOf } from "./support/parts.ts";

const execute = promisify(execFile);
const missing = missingParts("helm");

describe.skipIf(missing)("the chart's values", () => {
  let byDefault: readonly ApiObject[];

  beforeAll(async () => {
    byDefault = await render();
  });

  it("gives the container nothing that it does not need, and every object its labels", async () => {
    const objects = await render(
      ...[remote, "podMonitor.enabled=true", "prometheusRule.enabled=true", "dashboard.enabled=true"],
      ...["hostNetwork=false", "networkPolicy.enabled=true", "devices.kubeletPlugin.enabled=true"],
    );
    // The pod of `helm test` must not be taken for an agent.
    for (const { kind, metadata } of objects.filter((each) => each.kind !== "Pod"))
      expect(metadata.labels, `${kind} ${metadata.name}`).toMatchObject({
        "app.kubernetes.io/name": "nodekeeper",
        "app.kubernetes.io/instance": "nodekeeper",
        "app.kubernetes.io/version": expect.any(String),
        "app.kubernetes.io/component": "node-agent",
        "app.kubernetes.io/part-of": "nodekeeper",
        "app.kubernetes.io/managed-by": "Helm",
      });
    for (const { spec } of [named(byDefault, "DaemonSet")!, named(objects, "DaemonSet")!]) {
      const pod = spec.template.spec;
      expect(pod).toMatchObject({
        priorityClassName: "system-node-critical",
        tolerations: [{ operator: "Exists" }],
        securityContext: { seccompProfile: { type: "RuntimeDefault" } },
        // A Service called "nodekeeper" would add variables.
        enableServiceLinks: false,
      });
      expect(pod).not.toHaveProperty("hostPID");
      expect(pod).not.toHaveProperty("hostIPC");
      expect(pod.containers[0].securityContext).toEqual({
        runAsUser: 0,
        runAsGroup: 0,
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
    }
  });

  it.each([
    ["by default", [], { maxSurge: "10%", maxUnavailable: 0 }],
    [
      "with a network of its own, where each pod is probed",
      ["hostNetwork=false", remote],
      { maxUnavailable: "10%" },
    ],
    ["with a port of the host, which one pod of a node has", [remote], { maxUnavailable: "10%" }],
  ])("%s: how agents are replaced", async (_, values, rollingUpdate) => {
    const { spec } = named(await render(...values), "DaemonSet")!;
    expect(spec.updateStrategy).toEqual({ type: "RollingUpdate", rollingUpdate });
  });

  it("lets Prometheus find the agents, trust their certificate, and get metrics only", async () => {
    const objects = await render(
      ...[remote, "podMonitor.enabled=true", "podMonitor.labels.release=prometheus"],
      ...["prometheusRule.enabled=true", "prometheusRule.runbookBase=https://docs.example.com/"],
      ...["dashboard.enabled=true", "dashboard.archive=true"],
    );
    const { metadata, spec } = named(objects, "PodMonitor")!;
    expect(metadata.labels.release).toBe("prometheus");
    const [endpoint] = spec.podMetricsEndpoints;
    const container = named(objects, "DaemonSet")!.spec.template.spec.containers[0];
    expect(container.ports).toEqual([{ name: endpoint.port, containerPort: 10_291 }]);
    const secret = named(objects, "Secret", endpoint.tlsConfig.ca.secret.name)!;
    expect(Object.keys(secret.data)).toEqual(["ca.crt", "tls.crt", "tls.key"]);
    const token = named(objects, "Secret", endpoint.authorization.credentials.name)!;
    expect(token.type).toBe("kubernetes.io/service-account-token");
    const binding = ofKind(objects, "ClusterRoleBinding").find(
      ({ subjects }) => subjects[0].name === token.metadata.annotations["kubernetes.io/service-account.name"],
    )!;
    expect(named(objects, "ClusterRole", binding.roleRef.name)!.rules).toEqual([
      { nonResourceURLs: ["/metrics"], verbs: ["get"] },
    ]);
    const file = parse(readFileSync(join(chart, "files/alerts.yaml"), "utf8"));
    const { groups } = named(objects, "PrometheusRule")!.spec;
    expect(groups[0].rules[0].annotations.runbook_url).toMatch(
      /^https:\/\/docs\.example\.com\/monitoring\.md#nodekeeper/,
    );
    expect(groups.map(({ rules }: ApiObject) => rules.length)).toEqual(
      file.groups.map(({ rules }: ApiObject) => rules.length),
    );
    const dashboard = named(objects, "ConfigMap", "nodekeeper-dashboard")!;
    expect(dashboard.metadata.labels.grafana_dashboard).toBe("1");
    expect(JSON.parse(dashboard.data["nodekeeper.json"]).title).toBe("Nodekeeper");
    expect(JSON.parse(dashboard.data["nodekeeper-archive.json"]).title).toBe("Nodekeeper: archive");
  });

  it("replaces the pods for settings that need a restart, and not for those that a running agent applies", async () => {
    const podsWith = async (chosen: readonly Setting[]) => {
      const values = {};
      for (const setting of chosen) setAt(values, setting.path, otherValue(setting));
      const { spec } = named(await render(`config=${JSON.stringify(values)}`), "DaemonSet")!;
      return spec.template;
    };
    const { template } = named(byDefault, "DaemonSet")!.spec;
    const live = settings.filter(({ isLive }) => isLive);
    expect(await podsWith(live)).toEqual(template);
    expect(named(await render("eviction.dryRun=false"), "DaemonSet")!.spec.template).toEqual(template);
    for (const path of ["kube.burst", "eviction.taintPrefix", "devices.settleTime"]) {
      const pods = await podsWith([...live, settings.find((setting) => setting.path === path)!]);
      expect(pods.metadata.annotations["checksum/config"]).not.toBe(
        template.metadata.annotations["checksum/config"],
      );
    }
  });

  const all = [remote, "podMonitor.enabled=true", "prometheusRule.enabled=true", "dashboard.enabled=true"];

  it("shares no object between the releases of two pools of nodes, except the definition", async () => {
    const release = async (name: string) => {
      const sets = ["--set", `nodeSelector.pool=${name}`, ...all.flatMap((value) => ["--set", value])];
      const args = ["template", name, chart, "--namespace", "nodekeeper", ...sets];
      const { stdout } = await execute(pathOf("helm"), args, { maxBuffer: 16 * 1024 * 1024 });
      return parseAllDocuments(stdout).flatMap((document) => {
        const object: ApiObject | null = document.toJS();
        return object ? [`${object.kind} ${object.metadata.namespace ?? ""}/${object.metadata.name}`] : [];
      });
    };
    const [general, gpu] = [await release("general"), await release("gpu")];
    expect(general.length).toBeGreaterThan(20);
    expect(general.filter((name) => gpu.includes(name))).toEqual([
      "CustomResourceDefinition /customnoderesources.node.katalyst.kubewharf.io",
    ]);
  });

  it("has additional containers, and settings of probes that leave what is asked", async () => {
    const { spec } = named(
      await render(
        'extraContainers=[{"name":"plugin","image":"plugin"}]',
        'extraInitContainers=[{"name":"first","image":"first"}]',
        "probes.liveness.timeoutSeconds=20",
      ),
      "DaemonSet",
    )!.spec.template;
    expect(spec.containers.map(({ name }: ApiObject) => name)).toEqual(["nodekeeper", "plugin"]);
    expect(spec.initContainers.map(({ name }: ApiObject) => name)).toEqual(["first"]);
    const { livenessProbe } = named(byDefault, "DaemonSet")!.spec.template.spec.containers[0];
    expect(spec.containers[0].livenessProbe).toEqual({ ...livenessProbe, timeoutSeconds: 20 });
    await expect(renderText("probes.liveness.period=1")).rejects.toThrow(/period/);
  });

  it("exports records with the headers and authorities of Secrets, which need not exist", async () => {
    const objects = await render(
      "archive.endpoint=https://collector:4318",
      "archive.protocol=grpc",
      "archive.headersSecretName=tenant",
      "archive.caSecretName=authority",
    );
    const { containers, volumes } = named(objects, "DaemonSet")!.spec.template.spec;
    const { archive } = parse(named(objects, "ConfigMap")!.data["config.yaml"]);
    expect(archive).toEqual({
      endpoint: "https://collector:4318",
      protocol: "grpc",
      caFile: "/etc/nodekeeper-archive/ca.crt",
      headersFile: "/etc/nodekeeper-archive/headers",
    });
    const { projected } = (volumes as ApiObject[]).find(({ name }) => name === "archive")!;
    expect(projected.sources.map(({ secret }: ApiObject) => [secret.name, secret.optional])).toEqual([
      ["tenant", true],
      ["authority", true],
    ]);
    const mounts = (containers[0].volumeMounts as ApiObject[]).filter(({ name }) => name === "archive");
    expect(mounts).toEqual([{ name: "archive", mountPath: "/etc/nodekeeper-archive", readOnly: true }]);
  });

  it("passes helm lint", async () => {
    await execute(pathOf("helm"), ["lint", "--strict", chart]);
    await execute(pathOf("helm"), ["lint", "--strict", chart, ...all.flatMap((value) => ["--set", value])]);
  });
});
