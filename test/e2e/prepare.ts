import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { printProgress } from "../../scripts/programs.ts";
import { fromDebian, fromPackage } from "./prepare/debian.ts";
import { buildGo, buildGoPrograms, downloadModule, requiredVersion } from "./prepare/go-build.ts";
import { prepareNpmProgram } from "./prepare/npm-program.ts";
import { preparePython } from "./prepare/python-program.ts";
import { cacheDirectory, type Part, type Parts, partNames, partsFile } from "./support/parts.ts";

// Puts the real parts of the end-to-end suite in place: what is missing is fetched or built once, and kept outside the
// repository. A part that can't be had is skipped with its reason; the cases that need it printProgress so.

const CNR_MODULE = "github.com/kubewharf/katalyst-api";
const CNR_FILE = "config/crd/bases/node.katalyst.kubewharf.io_customnoderesources.yaml";

/** Those of the current release, which one build makes. */
const KUBERNETES = [
  "kube-apiserver",
  "kubectl",
  "kubelet",
  "kube-scheduler",
  "kube-controller-manager",
] as const;
const CONTAINERD = "usr/bin/containerd";
const BUSYBOX = "bin/busybox";
const PROMTOOL = "usr/bin/promtool";

const tools = join(import.meta.dirname, "tools");
const oldTools = join(import.meta.dirname, "tools-1.30");
const plugins = join(import.meta.dirname, "goplugins");
const driver = join(plugins, "dra-driver");
const katalystRounds = join(plugins, "katalyst-rounds");
const helm = join(import.meta.dirname, "helm");
const podResources = join(plugins, "podresources");
const examples = join(import.meta.dirname, "../../examples");
const goSample = join(examples, "driver-go");

mkdirSync(cacheDirectory, { recursive: true });
const katalyst = requiredVersion(plugins, CNR_MODULE);
const kubernetes = await buildKubernetes(tools, KUBERNETES);
const oldKubernetes = await buildKubernetes(oldTools, ["kube-apiserver"]);

const parts: Parts = {
  etcd: await fromDebian("etcd-server", "etcd", "usr/bin/etcd"),
  openssl: await fromDebian("openssl", "openssl", "usr/bin/openssl"),
  kubeApiServer: kubernetes["kube-apiserver"],
  oldKubeApiServer: oldKubernetes["kube-apiserver"],
  kubectl: kubernetes.kubectl,
  kubelet: kubernetes.kubelet,
  kubeScheduler: kubernetes["kube-scheduler"],
  kubeControllerManager: kubernetes["kube-controller-manager"],
  cnrDefinition: await cnrDefinition(),
  goReporter: await buildGo({ name: "reporter", module: plugins, package: "./reporter", version: katalyst }),
  goEviction: await buildGo({ name: "eviction", module: plugins, package: "./eviction", version: katalyst }),
  goDriver: await buildGo({
    name: "dra-driver",
    module: driver,
    package: ".",
    version: requiredVersion(driver, "k8s.io/kubelet"),
  }),
  goPodResources: await buildGo({
    name: "podresources",
    module: podResources,
    package: ".",
    version: requiredVersion(podResources, "k8s.io/kubelet"),
  }),
  katalystRounds: await buildGo({
    name: "katalyst-rounds",
    module: katalystRounds,
    package: ".",
    version: requiredVersion(katalystRounds, "github.com/kubewharf/katalyst-core"),
  }),
  goSampleDriver: await buildGo({
    name: "sample-driver",
    module: goSample,
    package: ".",
    version: requiredVersion(goSample, "google.golang.org/grpc"),
  }),
  pythonSampleDriver: await preparePython({
    name: "sample-driver-python",
    directory: join(examples, "driver-python"),
    protoDirectory: join(import.meta.dirname, "../../proto"),
    protoFiles: [
      "nodekeeper/devices/v1alpha1/api.proto",
      "nodekeeper/devices/v1alpha1/preparation.proto",
      "pluginregistration/v1/api.proto",
    ],
  }),
  // 1.6 has no container events; 1.7 gives each to one subscriber; 2.x sends it to all. The newer runc needs a newer
  // libc than an older machine has.
  oldContainerd: await fromPackage({ packageName: "containerd", file: CONTAINERD, release: "bookworm" }),
  containerd: await fromPackage({ packageName: "containerd", file: CONTAINERD, release: "trixie" }),
  newContainerd: await fromPackage({ packageName: "containerd", file: CONTAINERD, release: "sid" }),
  runc: await fromPackage({ packageName: "runc", file: "usr/sbin/runc" }),
  cniPlugins: await fromPackage({ packageName: "containernetworking-plugins", file: "usr/lib/cni/ptp" }),
  helm: await buildGo({
    name: "helm",
    module: helm,
    package: "helm.sh/helm/v4/cmd/helm",
    version: requiredVersion(helm, "helm.sh/helm/v4"),
  }),
  // 19 MB; built from its Go module it would cost minutes.
  promtool: await fromPackage({ packageName: "prometheus", file: PROMTOOL }),
  busybox: await fromPackage({ packageName: "busybox-static", file: BUSYBOX }),
  // The registries that a release is rehearsed with.
  dockerRegistry: await fromPackage({ packageName: "docker-registry", file: "usr/bin/docker-registry" }),
  skopeo: await fromPackage({
    packageName: "skopeo",
    file: "usr/bin/skopeo",
    release: "bookworm",
    libraries: ["libgpgme11", "libassuan0", "libdevmapper1.02.1"],
  }),
  verdaccio: await prepareNpmProgram({
    name: "verdaccio",
    version: "6.10.4",
    script: "bin/verdaccio",
    // It asks for the tag "cjs", which not every mirror of the registry has.
    overrides: { "node-fetch": "2.7.0" },
  }),
};
writeFileSync(partsFile, `${JSON.stringify(parts, null, 2)}\n`);
for (const name of partNames) tell(name, parts[name]);
printProgress("prepared");
const isComplete = partNames.every((name) => !("missing" in parts[name]));
if (process.env.E2E_REQUIRED && !isComplete) {
  printProgress("E2E_REQUIRED is set, and not every part is there");
  process.exitCode = 1;
}

function tell(name: string, part: Part): void {
  if ("missing" in part) printProgress(`SKIPPED ${name}: ${part.missing}`);
  else printProgress(`${name} (${part.version}): ${part.path}`);
}

function buildKubernetes<Name extends string>(
  module: string,
  programs: readonly Name[],
): Promise<Record<Name, Part>> {
  const version = requiredVersion(module, "k8s.io/kubernetes");
  const [major = "", minor = ""] = version.replace(/^v/, "").split(".");
  const symbols = "k8s.io/component-base/version";
  const stamps = {
    [`${symbols}.gitVersion`]: version,
    [`${symbols}.gitMajor`]: major,
    [`${symbols}.gitMinor`]: minor,
    [`${symbols}.gitTreeState`]: "clean",
  };
  return buildGoPrograms({ name: "kubernetes", module, programs, version, stamps });
}

async function cnrDefinition(): Promise<Part> {
  const module = await downloadModule(CNR_MODULE, katalyst);
  return "missing" in module ? module : { ...module, path: join(module.path, CNR_FILE) };
}
