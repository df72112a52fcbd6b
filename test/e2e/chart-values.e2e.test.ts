import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Setting, setAt, settings } from "@nodekeeper/api/settings";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { requiredPermissions } from "../../packages/agent/src/cli/required-permissions.ts";
import { loadConfiguration } from "../../packages/agent/src/config/index.ts";
import { otherValue } from "../support/setting-values.ts";
import type { ApiObject } from "./support/admin-client.ts";
import { chart, render, renderText } from "./support/chart.ts";
import { missingParts, pathOf } from "./support/parts.ts";

const execute = promisify(execFile);
const missing = missingParts("helm");

const named = (objects: readonly ApiObject[], kind: string, name = "nodekeeper") =>
  objects.find((each) => each.kind === kind && each.metadata.name === name);
const ofKind = (objects: readonly ApiObject[], kind: string) => objects.filter((each) => each.kind === kind);

/** "verb group/resource" of every role that a binding gives to the agent's account. */
function rightsOf(objects: readonly ApiObject[]): string[] {
  const roles = ofKind(objects, "ClusterRoleBinding")
    .filter(({ subjects }) => subjects[0].name === "nodekeeper")
    .map(({ roleRef }) => named(objects, "ClusterRole", roleRef.name)!);
  const rights = roles.flatMap(({ rules }) =>
    (rules as ApiObject[]).flatMap(({ apiGroups, resources, verbs }) =>
      apiGroups.flatMap((group: string) =>
        resources.flatMap((resource: string) => verbs.map((verb: string) => `${verb} ${group}/${resource}`)),
      ),
    ),
  );
  return rights.sort();
}

function mountsOf(objects: readonly ApiObject[]): string[] {
  const { containers, volumes } = named(objects, "DaemonSet")!.spec.template.spec;
  const paths = new Map<string, string>(
    (volumes as ApiObject[]).map(({ name, hostPath }) => [name, hostPath?.path]),
  );
  const mounts = containers[0].volumeMounts as ApiObject[];
  // Each volume is mounted, and each mount has its volume.
  expect(mounts.map(({ name }) => name).sort()).toEqual([...paths.keys()].sort());
  return mounts
    .filter(({ name }) => paths.get(name))
    .map(({ name, readOnly }) => `${paths.get(name)}${readOnly ? " ro" : ""}`)
    .sort();
}

const always = [
  "/run/nodekeeper",
  "/var/lib/kubelet/plugins ro",
  "/var/lib/nodekeeper/plugins_registry",
  "/var/lib/nodekeeper/state",
];
const machine = ["/proc ro", "/sys ro"];
const kubelet = "/var/lib/kubelet/pod-resources ro";
const runtime = "/run/containerd ro";
const defaults = [...always, ...machine, kubelet, runtime];
const remote = "statusServer.remote.enabled=true";

/** Values, the host paths that they mount, and the rights that they add to or remove from those of the defaults. */
const parts: readonly [title: string, values: string[], mounts: string[], rights: string[]][] = [
  ["the defaults", [], defaults, []],
  [
    "everything off",
    ["lifecycle.enabled=false", "eviction.enabled=false", "reporting.inTreePlugins=[]"],
    always,
    ["-pods"],
  ],
  [
    "lifecycle alone",
    ["eviction.enabled=false", "reporting.inTreePlugins=[]"],
    [...always, runtime],
    ["-pods"],
  ],
  [
    "eviction alone, in dry run",
    ["lifecycle.enabled=false", "reporting.inTreePlugins=[]"],
    [...always, ...machine],
    [],
  ],
  [
    "the machine's readings alone",
    [
      "lifecycle.enabled=false",
      "eviction.enabled=false",
      'reporting.inTreePlugins=["system-reporter-plugin"]',
    ],
    [...always, ...machine],
    ["-pods"],
  ],
  [
    "without the kubelet's readings",
    ['reporting.inTreePlugins=["*","-kubelet-reporter-plugin"]', "hostPaths.kubeletConfig=/etc/kubelet.yaml"],
    [...always, ...machine, runtime],
    [],
  ],
  [
    "the kubelet's configuration file",
    ["hostPaths.kubeletConfig=/etc/kubelet.yaml"],
    [...defaults, "/etc/kubelet.yaml ro"],
    [],
  ],
  ["eviction", ["eviction.dryRun=false"], defaults, ["create /pods/eviction"]],
  [
    "eviction with some plugins in dry run",
    ['config.eviction.dryRunPlugins=["memory"]'],
    defaults,
    ["create /pods/eviction"],
  ],
  [
    "eviction with one plugin that is not in dry run",
    ['config.eviction.dryRunPlugins=["*","-memory"]'],
    defaults,
    ["create /pods/eviction"],
  ],
  [
    "eviction by deletion",
    ["eviction.dryRun=false", "config.eviction.killer=deletion"],
    defaults,
    ["delete /pods"],
  ],
  [
    "eviction by deletion for some",
    ["eviction.dryRun=false", 'config.eviction.killerRules=["BestEffort=deletion"]'],
    defaults,
    ["create /pods/eviction", "delete /pods"],
  ],
  [
    "strict plugins",
    ["config.eviction.strict=true"],
    defaults,
    ["create authentication.k8s.io/tokenreviews", "create authorization.k8s.io/subjectaccessreviews"],
  ],
  [
    "the status server for others",
    [remote],
    defaults,
    ["create authentication.k8s.io/tokenreviews", "create authorization.k8s.io/subjectaccessreviews"],
  ],
  [
    "preparation of claims",
    ["devices.kubeletPlugin.enabled=true"],
    [...defaults, "/var/lib/kubelet/plugins_registry", "/var/run/cdi"],
    ["get /pods", "get resource.k8s.io/resourceclaims"],
  ],
  [
    "preparation of claims alone, with metadata of devices",
    [
      "lifecycle.enabled=false",
      "eviction.enabled=false",
      "reporting.inTreePlugins=[]",
      "devices.kubeletPlugin.enabled=true",
      "config.devices.kubeletPlugin.metadata=true",
      "config.devices.kubeletPlugin.metadataDirectory=/srv/metadata",
    ],
    [...always, ...machine, kubelet, "/var/lib/kubelet/plugins_registry", "/var/run/cdi", "/srv/metadata"],
    ["-pods", "get /pods", "get resource.k8s.io/resourceclaims"],
  ],
  [
    // It finds ended claims by the kubelet's PodResources.
    "preparation of claims without the kubelet's readings",
    ["devices.kubeletPlugin.enabled=true", "reporting.inTreePlugins=[]"],
    [...defaults, "/var/lib/kubelet/plugins_registry", "/var/run/cdi"],
    ["get /pods", "get resource.k8s.io/resourceclaims"],
  ],
  [
    "parts that config turns on and off",
    ["config.lifecycle.enabled=false", "config.devices.kubeletPlugin.enabled=true"],
    [...always, ...machine, kubelet, "/var/lib/kubelet/plugins_registry", "/var/run/cdi"],
    ["get /pods", "get resource.k8s.io/resourceclaims"],
  ],
  [
    "the status of devices",
    ["devices.kubeletPlugin.enabled=true", "devices.kubeletPlugin.deviceStatus=true"],
    [...defaults, "/var/lib/kubelet/plugins_registry", "/var/run/cdi"],
    [
      "get /pods",
      "get resource.k8s.io/resourceclaims",
      "patch resource.k8s.io/resourceclaims/status",
      "associated-node:patch resource.k8s.io/resourceclaims/driver",
      "list resource.k8s.io/resourceclaims",
      "watch resource.k8s.io/resourceclaims",
      "list /pods",
      "watch /pods",
    ],
  ],
  // As where all that is below them is commented out in a file of values.
  ["config without a value", ["config=null"], defaults, []],
  ...["server", "lifecycle", "reporting", "devices", "eviction", "plugins"].map(
    (section): (typeof parts)[number] => [
      `config.${section} without a value`,
      [`config={"${section}":null}`],
      defaults,
      [],
    ],
  ),
  [
    "a section in config without a value",
    ['config={"devices":{"kubeletPlugin":null},"eviction":{"reclaimedResources":null}}'],
    defaults,
    [],
  ],
  [
    "a kubelet and a runtime elsewhere",
    ["hostPaths.kubelet=/data/kubelet", "hostPaths.runtime=/run/crio"],
    [
      ...always.filter((path) => !path.includes("kubelet/")),
      "/data/kubelet/plugins ro",
      ...machine,
      "/data/kubelet/pod-resources ro",
      "/run/crio ro",
    ],
    [],
  ],
];

describe.skipIf(missing)("the chart's values", () => {
  let directory: string;
  let byDefault: readonly ApiObject[];

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "nk-chart-"));
    byDefault = await render();
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  /** The permissions that `nodekeeper preflight` asks for with the chart's configuration: those that the agent uses. */
  async function permissionsOf(objects: readonly ApiObject[]) {
    const file = join(directory, "config.yaml");
    writeFileSync(file, named(objects, "ConfigMap")!.data["config.yaml"]);
    const { configuration } = await loadConfiguration({ file, flags: {}, env: {}, hostname: "worker-1" });
    return requiredPermissions(configuration);
  }

  async function askedFor(objects: readonly ApiObject[]): Promise<string[]> {
    const permissions = (await permissionsOf(objects)).map(({ verb, group, resource, subresource }) => {
      const what = subresource ? `${resource}/${subresource}` : resource;
      return `${verb} ${group}/${what}`;
    });
    return permissions.sort();
  }

  it.each(parts)(
    "%s: its mounts, and the rights that it uses and no others",
    async (_, values, mounts, rights) => {
      const objects = await render(...values);
      expect(mountsOf(objects)).toEqual([...mounts].sort());
      // Two parts may need the same right.
      const given = [...new Set(rightsOf(objects))];
      expect(given).toEqual(await askedFor(objects));
      const isPods = (right: string) => / \/pods$/.test(right);
      const base = rightsOf(byDefault).filter((right) => !(rights.includes("-pods") && isPods(right)));
      const added = rights.filter((right) => right !== "-pods");
      expect(given).toEqual([...new Set([...base, ...added])].sort());
    },
  );

  it.each([
    ["nodekeeper", []],
    ["leases", ["config.devices.clusterPools.leaseNamespace=leases"]],
  ])(
    "gives the agents the Leases of drivers with pools beyond the node, and no others of the namespace %s",
    async (namespace, values) => {
      const objects = await render(
        'devices.clusterPools.drivers=["a.example.com","b.example.com"]',
        ...values,
      );
      const { metadata, rules } = named(objects, "Role", "nodekeeper-cluster-pools")! as {
        metadata: ApiObject;
        rules: ApiObject[];
      };
      expect(metadata.namespace).toBe(namespace);
      expect(named(objects, "RoleBinding", "nodekeeper-cluster-pools")!.metadata.namespace).toBe(namespace);
      const given = rules.flatMap(({ resources, resourceNames = [""], verbs }) =>
        verbs.flatMap((verb: string) => resourceNames.map((name: string) => `${verb} ${resources} ${name}`)),
      );
      expect(given.sort()).toEqual([
        "create leases ",
        ...["delete", "get", "update"].flatMap((verb) =>
          ["a", "b"].map((driver) => `${verb} leases nodekeeper-pools-${driver}.example.com`),
        ),
      ]);
      const leases = (await permissionsOf(objects)).filter(({ resource }) => resource === "leases");
      const asked = leases.map(({ verb, name = "", namespace }) => `${verb} leases ${name} ${namespace}`);
      expect(asked.sort()).toEqual(given.map((right) => `${right} ${namespace}`));
    },
  );

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

  it("is asked for its health on the loopback of the host, or over TLS without the host's network", async () => {
    const probesOf = (objects: readonly ApiObject[]) => {
      const { livenessProbe, readinessProbe, startupProbe } = named(objects, "DaemonSet")!.spec.template.spec
        .containers[0];
      return [livenessProbe, readinessProbe, startupProbe].map(({ httpGet }) => httpGet);
    };
    const onLoopback = (path: string) => ({ path, host: "127.0.0.1", port: 10_290 });
    expect(probesOf(byDefault)).toEqual(["/livez", "/readyz", "/livez"].map(onLoopback));
    const objects = await render("hostNetwork=false", remote, "networkPolicy.enabled=true");
    const overTls = (path: string) => ({ path, scheme: "HTTPS", port: 10_291 });
    expect(probesOf(objects)).toEqual(["/livez", "/readyz", "/livez"].map(overTls));
    expect(named(objects, "DaemonSet")!.spec.template.spec).not.toHaveProperty("hostNetwork");
    expect(named(objects, "NetworkPolicy")!.spec).toMatchObject({
      podSelector: { matchLabels: { "app.kubernetes.io/instance": "nodekeeper" } },
      ingress: [{ ports: [{ port: 10_291 }] }],
    });
  });

  it("has a Role for those who use kubectl nodekeeper, where it is asked for", async () => {
    expect(ofKind(byDefault, "Role")).toEqual([]);
    const role = named(await render("rbac.viewer=true"), "Role", "nodekeeper-viewer")!;
    expect(role.metadata.namespace).toBe("nodekeeper");
    expect(role.rules.flatMap(({ resources }: ApiObject) => resources)).toEqual(["pods", "pods/portforward"]);
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

  it("has a Job that removes what the agents left, once the release is deleted, and gives it only what it uses", async () => {
    const objects = await render('nodeSelector={"pool":"a","disk":"ssd"}', "kubernetesService.host=10.0.0.1");
    const hooks = objects.filter(({ metadata }) => metadata.annotations?.["helm.sh/hook"] === "post-delete");
    expect(hooks.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual(
      ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job"].map(
        (kind) => `${kind} nodekeeper-uninstall`,
      ),
    );
    const { spec } = named(hooks, "Job", "nodekeeper-uninstall")!.spec.template;
    // Helm merges the map with the default one.
    const selector = "--selector=disk=ssd,kubernetes.io/os=linux,pool=a";
    expect(spec.containers[0].args).toEqual(["uninstall", "--all-nodes", selector]);
    expect(spec.containers[0].env).toEqual([{ name: "KUBERNETES_SERVICE_HOST", value: "10.0.0.1" }]);
    expect(spec).toMatchObject({
      serviceAccountName: "nodekeeper-uninstall",
      securityContext: { runAsNonRoot: true },
    });
    const rule = { apiGroups: ["example.com"], resources: ["gpus"], verbs: ["delete"] };
    const more = await render(
      `uninstall.extraRules=${JSON.stringify([rule])}`,
      "uninstall.activeDeadlineSeconds=3600",
    );
    expect(named(more, "ClusterRole", "nodekeeper-uninstall")!.rules).toContainEqual(rule);
    expect(named(more, "ClusterRole", "nodekeeper")!.rules).not.toContainEqual(rule);
    expect(named(more, "Job", "nodekeeper-uninstall")!.spec.activeDeadlineSeconds).toBe(3600);
    for (const off of ["uninstall.cleanup=false", "rbac.create=false"])
      expect(await renderText(off)).not.toContain("post-delete");
    // Cut after a dot, the name would be refused.
    const named52 = await render(`fullnameOverride=${"a".repeat(52)}.${"b".repeat(9)}`);
    expect(ofKind(named52, "Job")[0]!.metadata.name).toBe(`${"a".repeat(52)}-uninstall`);
    const definition = ofKind(objects, "CustomResourceDefinition")[0]!;
    expect(definition.metadata.annotations).toEqual({ "helm.sh/resource-policy": "keep" });
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

  it("has a test that asks a node's agent, without rights, and is not taken for an agent", async () => {
    const pod = named(await render("statusServer.port=10299"), "Pod", "nodekeeper-test")!;
    expect(pod.metadata.annotations["helm.sh/hook"]).toBe("test");
    expect(pod.spec).toMatchObject({ automountServiceAccountToken: false, hostNetwork: true });
    expect(pod.spec.containers[0].args).toEqual(["status", "--server", "127.0.0.1:10299"]);
    const { labels } = named(byDefault, "DaemonSet")!.spec.template.metadata;
    expect(pod.metadata.labels["app.kubernetes.io/name"]).not.toBe(labels["app.kubernetes.io/name"]);
  });

  it("has a test without the host's network that asks an agent as the kubelet does", async () => {
    const objects = await render(
      ...["hostNetwork=false", remote, "statusServer.remote.port=10299", "fullnameOverride=4.keeper"],
    );
    const service = ofKind(objects, "Service")[0]!;
    expect(service.metadata.name).toBe("test-4-keeper");
    expect(service.spec).toMatchObject({ clusterIP: "None", publishNotReadyAddresses: true });
    const { metadata } = named(objects, "DaemonSet", "4.keeper")!.spec.template;
    expect(metadata.labels).toMatchObject(service.spec.selector);
    const pod = named(objects, "Pod", "4.keeper-test")!;
    expect(pod.metadata.labels).not.toMatchObject(service.spec.selector);
    expect(pod.spec).toMatchObject({ automountServiceAccountToken: false, hostNetwork: false });
    expect(pod.spec).not.toHaveProperty("initContainers");
    expect(pod.spec.containers[0].args[0]).toContain("https://test-4-keeper.nodekeeper.svc:10299/readyz");
    const order = (object: ApiObject) => Number(object.metadata.annotations["helm.sh/hook-weight"] ?? 0);
    expect(order(service)).toBeLessThan(order(pod));
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

  it.each(["probes.liveness", "probes.readiness", "probes.startup", "probes"])(
    "asks as before with the API's defaults after %s=null",
    async (path) => {
      const probesOf = (objects: readonly ApiObject[]) => {
        const { livenessProbe, readinessProbe, startupProbe } = named(objects, "DaemonSet")!.spec.template
          .spec.containers[0];
        return { liveness: livenessProbe, readiness: readinessProbe, startup: startupProbe };
      };
      const expected: Record<string, ApiObject> = probesOf(byDefault);
      for (const [name, { httpGet }] of Object.entries(expected))
        if (`probes.${name}`.startsWith(path)) expected[name] = { httpGet };
      expect(probesOf(await render(`${path}=null`))).toEqual(expected);
    },
  );

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

  it("has a deadline of uninstalling that is a number, also a large one, or none", async () => {
    const deadlineOf = async (value: string) =>
      named(await render(value), "Job", "nodekeeper-uninstall")!.spec.activeDeadlineSeconds;
    const written = await renderText('uninstall={"activeDeadlineSeconds":10000000}');
    expect(written).toContain("activeDeadlineSeconds: 10000000\n");
    expect(await deadlineOf("uninstall.activeDeadlineSeconds=null")).toBeUndefined();
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
