import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requiredPermissions } from "../../packages/agent/src/cli/required-permissions.ts";
import { loadConfiguration } from "../../packages/agent/src/config/index.ts";
import type { ApiObject } from "./support/admin-client.ts";
import { named, ofKind, remote, render } from "./support/chart.ts";
import { missingParts } from "./support/parts.ts";

const missing = missingParts("helm");

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

describe.skipIf(missing)("what the chart mounts and allows", () => {
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

  it("has a Role for those who use kubectl nodekeeper, where it is asked for", async () => {
    expect(ofKind(byDefault, "Role")).toEqual([]);
    const role = named(await render("rbac.viewer=true"), "Role", "nodekeeper-viewer")!;
    expect(role.metadata.namespace).toBe("nodekeeper");
    expect(role.rules.flatMap(({ resources }: ApiObject) => resources)).toEqual(["pods", "pods/portforward"]);
  });
});
