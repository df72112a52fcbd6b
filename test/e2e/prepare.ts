import { existsSync, globSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { printProgress } from "../../scripts/programs.ts";
import { fromDebian, fromPackage } from "./prepare/debian.ts";
import { buildGo, buildGoPrograms, downloadModule, requiredVersion } from "./prepare/go-build.ts";
import { prepareNpmProgram } from "./prepare/npm-program.ts";
import { preparePython } from "./prepare/python-program.ts";
import {
  cacheDirectory,
  type Part,
  type PartName,
  partNames,
  partsFile,
  readParts,
} from "./support/parts.ts";

// Puts the real parts of the end-to-end suite in place, or those that are named: node test/e2e/prepare.ts [PART]...
// What is missing is fetched or built once, and kept outside the repository. A part that can't be had is skipped with its
// reason; the cases that need it print so.

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
const ociRuntimes = join(import.meta.dirname, "oci-runtimes");
const collector = join(import.meta.dirname, "collector");
const store = join(import.meta.dirname, "store");
const podResources = join(plugins, "podresources");
const examples = join(import.meta.dirname, "../../examples");
const goSample = join(examples, "driver-go");
const goPorted = join(examples, "dra-example-driver");

const only = process.argv.slice(2);
const unknown = only.filter((name) => !partNames.some((known) => known === name));
if (unknown.length > 0) throw new Error(`unknown part: ${unknown.join(", ")}`);
const wanted = partNames.filter((name) => only.length === 0 || only.includes(name));

const katalyst = requiredVersion(plugins, CNR_MODULE);
let built: ReturnType<typeof buildKubernetes<(typeof KUBERNETES)[number]>> | undefined;
const kubernetes = () => {
  built ??= buildKubernetes(tools, KUBERNETES);
  return built;
};

/** How each part is had. */
const makers: Readonly<Record<PartName, () => Promise<Part>>> = {
  etcd: () => fromDebian("etcd-server", "etcd", "usr/bin/etcd"),
  openssl: () => fromDebian("openssl", "openssl", "usr/bin/openssl"),
  kubeApiServer: async () => (await kubernetes())["kube-apiserver"],
  oldKubeApiServer: async () => (await buildKubernetes(oldTools, ["kube-apiserver"]))["kube-apiserver"],
  kubectl: async () => (await kubernetes()).kubectl,
  kubelet: async () => (await kubernetes()).kubelet,
  kubeScheduler: async () => (await kubernetes())["kube-scheduler"],
  kubeControllerManager: async () => (await kubernetes())["kube-controller-manager"],
  cnrDefinition: () => cnrDefinition(),
  goReporter: () => buildGo({ name: "reporter", module: plugins, package: "./reporter", version: katalyst }),
  goEviction: () => buildGo({ name: "eviction", module: plugins, package: "./eviction", version: katalyst }),
  goDriver: () =>
    buildGo({
      name: "dra-driver",
      module: driver,
      package: ".",
      version: requiredVersion(driver, "k8s.io/kubelet"),
    }),
  goPodResources: () =>
    buildGo({
      name: "podresources",
      module: podResources,
      package: ".",
      version: requiredVersion(podResources, "k8s.io/kubelet"),
    }),
  katalystRounds: () =>
    buildGo({
      name: "katalyst-rounds",
      module: katalystRounds,
      package: ".",
      version: requiredVersion(katalystRounds, "github.com/kubewharf/katalyst-core"),
    }),
  goSampleDriver: () =>
    buildGo({
      name: "sample-driver",
      module: goSample,
      beside: [join(examples, "../sdk-go")],
      package: ".",
      version: requiredVersion(goSample, "google.golang.org/grpc"),
    }),
  goPortedDriver: () =>
    buildGo({
      name: "dra-example-driver",
      module: goPorted,
      beside: [join(examples, "../sdk-go")],
      package: ".",
      version: requiredVersion(goPorted, "k8s.io/apimachinery"),
    }),
  pythonSampleDriver: () =>
    preparePython({
      name: "sample-driver-python",
      directory: join(examples, "driver-python"),
      sdkDirectory: join(examples, "../sdk-python"),
    }),
  // 1.6 has no container events; 1.7 gives each to one subscriber; 2.x sends it to all. The newer runc needs a newer
  // libc than an older machine has.
  oldContainerd: () => fromPackage({ packageName: "containerd", file: CONTAINERD, release: "bookworm" }),
  containerd: () => fromPackage({ packageName: "containerd", file: CONTAINERD, release: "trixie" }),
  newContainerd: () => fromPackage({ packageName: "containerd", file: CONTAINERD, release: "sid" }),
  runc: () => fromPackage({ packageName: "runc", file: "usr/sbin/runc" }),
  // No release of Debian has these versions yet.
  netContainerd: async () => {
    const module = "github.com/containerd/containerd/v2";
    const programs = ["containerd", "containerd-shim-runc-v2", "ctr"] as const;
    const version = requiredVersion(ociRuntimes, module);
    const group = { name: "containerd", module: ociRuntimes, version, programs, parent: `${module}/cmd` };
    return (await buildGoPrograms({ ...group, tags: ["no_btrfs"] })).containerd;
  },
  netRunc: () => buildRunc(),
  cniPlugins: () => fromPackage({ packageName: "containernetworking-plugins", file: "usr/lib/cni/ptp" }),
  helm: () =>
    buildGo({
      name: "helm",
      module: helm,
      package: "helm.sh/helm/v4/cmd/helm",
      version: requiredVersion(helm, "helm.sh/helm/v4"),
    }),
  // 19 MB; built from its Go module it would cost minutes.
  promtool: () => fromPackage({ packageName: "prometheus", file: PROMTOOL }),
  otelCollector: () =>
    buildGo({
      name: "otel-collector",
      module: collector,
      package: ".",
      version: requiredVersion(collector, "go.opentelemetry.io/collector/otelcol"),
    }),
  victoriaLogs: () => {
    const module = "github.com/VictoriaMetrics/VictoriaLogs";
    const version = requiredVersion(store, module);
    return buildGo({ name: "victoria-logs", module: store, package: `${module}/app/victoria-logs`, version });
  },
  busybox: () => fromPackage({ packageName: "busybox-static", file: BUSYBOX }),
  // The registries that a release is rehearsed with.
  dockerRegistry: () => fromPackage({ packageName: "docker-registry", file: "usr/bin/docker-registry" }),
  skopeo: () =>
    fromPackage({
      packageName: "skopeo",
      file: "usr/bin/skopeo",
      release: "bookworm",
      libraries: ["libgpgme11", "libassuan0", "libdevmapper1.02.1"],
    }),
  // Builds images of Dockerfiles. The package's other dependencies are programs that it does not need here.
  buildah: () =>
    fromPackage({
      packageName: "buildah",
      file: "usr/bin/buildah",
      release: "bookworm",
      libraries: ["libgpgme11", "libassuan0", "libdevmapper1.02.1"],
    }),
  verdaccio: () =>
    prepareNpmProgram({
      name: "verdaccio",
      version: "6.10.4",
      script: "bin/verdaccio",
      // It asks for the tag "cjs", which not every mirror of the registry has.
      overrides: { "node-fetch": "2.7.0" },
    }),
};

mkdirSync(cacheDirectory, { recursive: true });
// Those of an earlier run stay, unless every part is put in place anew.
const parts: Partial<Record<PartName, Part>> = only.length > 0 && existsSync(partsFile) ? readParts() : {};
// One after the other: a build takes all processors.
for (const name of wanted) parts[name] = await makers[name]();
writeFileSync(partsFile, `${JSON.stringify(parts, null, 2)}\n`);
for (const name of wanted) tell(name, parts[name]!);
printProgress("prepared");
const isComplete = wanted.every((name) => !("missing" in parts[name]!));
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

// It has parts in C, and libseccomp, which is linked into it.
async function buildRunc(): Promise<Part> {
  const library = await fromPackage({ packageName: "libseccomp-dev", file: "usr/include/seccomp.h" });
  if ("missing" in library) return library;
  const root = join(library.path, "../../..");
  const name = "github.com/opencontainers/runc";
  return await buildGo({
    name: "runc",
    module: ociRuntimes,
    package: name,
    version: requiredVersion(ociRuntimes, name),
    tags: ["seccomp"],
    env: {
      CGO_ENABLED: "1",
      PKG_CONFIG_PATH: globSync(join(root, "usr/lib/*/pkgconfig")).join(":"),
      PKG_CONFIG_SYSROOT_DIR: root,
    },
  });
}

async function cnrDefinition(): Promise<Part> {
  const module = await downloadModule(CNR_MODULE, katalyst);
  return "missing" in module ? module : { ...module, path: join(module.path, CNR_FILE) };
}
