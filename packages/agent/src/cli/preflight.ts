import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { evictionMode } from "@nodekeeper/api/decide";
import { KindNotServed, RequestForbidden } from "@nodekeeper/api/errors";
import { type AgentConfiguration, inTreeReporterNames } from "@nodekeeper/api/settings";
import { plainText } from "@nodekeeper/api/text";
import { counted, evictionModeText } from "@nodekeeper/api/wording";
import {
  type AccessQuestion,
  createKubeClient,
  createKubeMetrics,
  type KubeApiClient,
  loadClusterAccess,
} from "@nodekeeper/core/kube";
import {
  type ErrorId,
  errorIdOf,
  messageOf,
  Registry,
  silentLogger,
  systemClock,
} from "@nodekeeper/core/lib";
import { loadConfiguration } from "../config/index.ts";
import { Host, type Reading } from "../host/index.ts";
import { enabledPlugins, KUBELET_REPORTER_NAME } from "../intree/index.ts";
import { customNodeResource, kindKey, node } from "../reporting/index.ts";
import { CriRuntime } from "../runtime/index.ts";
import { type Colour, type Output, type PageFormat, paint, printAs } from "./output.ts";
import { requiredPermissions } from "./required-permissions.ts";
import { configurationSources } from "./settings-options.ts";
import { packageVersion } from "./version.ts";

type Verdict = "ok" | "warning" | "failed";

interface Finding {
  check: string;
  verdict: Verdict;
  message: string;
  /** The error id, if docs/errors.md lists it. */
  errorId?: ErrorId | undefined;
}

const DEADLINE_MS = 5_000;
// Kernels before 4.20 have no pressure stall information (PSI).
const OLDEST_KERNEL = [4, 20] as const;
// sizeof(sockaddr_un.sun_path) without the terminating NUL: unix(7).
const MAX_SOCKET_PATH_BYTES = 107;

/**
 * `nodekeeper preflight`: checks the agent's requirements on this node and prints one line per check. Returns whether
 * all checks passed.
 */
export async function preflightCommand(options: Record<string, unknown>, output: Output): Promise<boolean> {
  const { configuration } = await loadConfiguration(configurationSources(options));
  const findings = [
    ...(await checkHost(configuration)),
    ...checkDirectories(configuration),
    ...checkKubelet(configuration),
    ...checkKubeletPlugin(configuration),
    evictionFinding(configuration),
    ...checkPolicies(configuration),
    ...(await checkRuntime(configuration)),
    ...(await checkApiServer(configuration)),
  ];
  printAs(output, options.output as PageFormat, findings, () => page(findings, output));
  return findings.every(({ verdict }) => verdict !== "failed");
}

const MAX_MESSAGE_LENGTH = 1_000;

const colours: Record<Verdict, Colour> = { ok: "green", warning: "yellow", failed: "red" };

function page(findings: readonly Finding[], output: Output): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.map(({ check, verdict, message, errorId }) => {
    const shown = errorId ? `${message} [${errorId}]` : message;
    const heading = `${paint(output, colours[verdict], verdict.padEnd(8))} ${check.padEnd(width)}`;
    return `${heading}  ${plainText(shown, MAX_MESSAGE_LENGTH)}\n`;
  });
  const numberOf = (wanted: Verdict) => findings.filter(({ verdict }) => verdict === wanted).length;
  const warnings = counted(numberOf("warning"), "warning");
  return `${lines.join("")}\n${counted(findings.length, "check")}, ${numberOf("failed")} failed, ${warnings}\n`;
}

async function checkHost({ hostRoot }: AgentConfiguration): Promise<Finding[]> {
  const host = new Host({ root: hostRoot, clock: systemClock });
  const [kernel, cgroup, pressure, memory] = await Promise.all([
    host.kernelRelease(),
    host.cgroupVersion(),
    host.pressureResources(),
    host.memoryTotal(),
  ]);
  return [
    finding("kernel", kernel, (release) => {
      const [major = 0, minor = 0] = release.split(".").map((part) => Number.parseInt(part, 10));
      const old = major < OLDEST_KERNEL[0] || (major === OLDEST_KERNEL[0] && minor < OLDEST_KERNEL[1]);
      return old
        ? [
            "warning",
            `${release}; pressure stall information needs kernel ${OLDEST_KERNEL.join(".")} or later`,
          ]
        : ["ok", release];
    }),
    finding("cgroup", cgroup, (version) => [
      version === "v2" ? "ok" : "warning",
      version === "v2" ? "v2" : `${version}; v2 is recommended`,
    ]),
    finding("pressure", pressure, (resources) => ["ok", resources.join(", ")], "warning"),
    finding("memory", memory, (bytes) => ["ok", `${Math.round(bytes / 2 ** 20)} MiB`]),
  ];
}

function finding<T>(
  check: string,
  reading: Reading<T>,
  judge: (value: T) => [Verdict, string],
  absent: Verdict = "failed",
): Finding {
  if (reading.state === "read") {
    const [verdict, message] = judge(reading.value);
    return { check, verdict, message };
  }
  const message = reading.state === "failed" ? messageOf(reading.error) : reading.message;
  return { check, verdict: absent, message };
}

function checkDirectories({ stateDir, plugins }: AgentConfiguration): Finding[] {
  const findings = [checkDirectory("state directory", stateDir)];
  for (const directory of plugins.directories) {
    findings.push(checkDirectory("plugin directory", directory));
    const bytes = Buffer.byteLength(directory);
    if (bytes > MAX_SOCKET_PATH_BYTES - 20) {
      const message = `${directory} is ${bytes} bytes long; the path of a socket in it is limited to ${MAX_SOCKET_PATH_BYTES} bytes`;
      findings.push({ check: "socket path", verdict: "warning", message });
    }
  }
  return findings;
}

// Only warnings: without the socket, only the kubelet reporter has nothing to report.
function checkKubelet({ reporting: { inTreePlugins, kubelet } }: AgentConfiguration): Finding[] {
  if (!enabledPlugins(inTreeReporterNames, inTreePlugins).includes(KUBELET_REPORTER_NAME)) return [];
  const found = checkExists("kubelet PodResources", kubelet.podResourcesSocket);
  if (found.verdict === "ok") return [found];
  return [
    { ...found, verdict: "warning", message: `${found.message}: ${KUBELET_REPORTER_NAME} reports nothing` },
  ];
}

function checkExists(check: string, path: string): Finding {
  if (existsSync(path)) return { check, verdict: "ok", message: path };
  return { check, verdict: "failed", message: `${path} does not exist` };
}

// The kubelet creates its own directory. If it is missing, the path is wrong or not mounted, so the agent must not
// create it.
function checkKubeletPlugin({ devices: { kubeletPlugin } }: AgentConfiguration): Finding[] {
  const { enabled, registryDirectory, cdiDirectory, metadata, metadataDirectory } = kubeletPlugin;
  if (!enabled) return [];
  const check = "kubelet plugin directory";
  const registry: Finding = existsSync(registryDirectory)
    ? checkDirectory(check, registryDirectory)
    : { check, verdict: "failed", message: `${registryDirectory} does not exist; the kubelet creates it` };
  return [
    registry,
    checkDirectory("CDI directory", cdiDirectory),
    ...(metadata ? [checkDirectory("device metadata directory", metadataDirectory)] : []),
  ];
}

function evictionFinding({ eviction: { enabled, dryRunPlugins } }: AgentConfiguration): Finding {
  const message = enabled ? evictionModeText(evictionMode({ dryRunPlugins }), dryRunPlugins) : "off";
  return { check: "eviction", verdict: "ok", message };
}

function checkPolicies({ eviction }: AgentConfiguration): Finding[] {
  if (!eviction.enabled) return [];
  return eviction.policies.files.map((path) => checkExists("eviction policies", path));
}

function checkDirectory(check: string, path: string): Finding {
  let existing = path;
  while (!existsSync(existing) && existing !== dirname(existing)) existing = dirname(existing);
  try {
    if (!statSync(existing).isDirectory())
      return { check, verdict: "failed", message: `${existing} is not a directory` };
    accessSync(existing, constants.W_OK | constants.X_OK);
  } catch (error) {
    return { check, verdict: "failed", message: `${path}: ${messageOf(error)}` };
  }
  return { check, verdict: "ok", message: existing === path ? path : `${path} (will be created)` };
}

async function checkRuntime({ lifecycle, runtime, api }: AgentConfiguration): Promise<Finding[]> {
  if (!lifecycle.enabled) return [];
  const check = "container runtime";
  const findings = api.socket === "" ? [] : [checkDirectory("API socket", dirname(api.socket))];
  const options = { clock: systemClock, log: silentLogger, registry: new Registry() };
  const settings = { requestTimeout: DEADLINE_MS };
  using found = new CriRuntime({ ...options, settings, endpoint: runtime.endpoint });
  try {
    const signal = new AbortController().signal;
    const { runtimeName, runtimeVersion } = await found.version(signal);
    const pods = await found.listPods(signal);
    const message = `${runtimeName} ${runtimeVersion}, ${counted(pods.length, "pod")}`;
    return [...findings, { check, verdict: "ok", message }];
  } catch (error) {
    return [...findings, { check, verdict: "failed", message: messageOf(error), errorId: errorIdOf(error) }];
  }
}

async function checkApiServer(configuration: AgentConfiguration): Promise<Finding[]> {
  const { kube, reporting } = configuration;
  let client: KubeApiClient;
  let server: string;
  try {
    const access = await loadClusterAccess({ ...kube, environment: process.env });
    server = `${access.server.href} (${access.source})`;
    client = createKubeClient({
      access,
      clock: systemClock,
      log: silentLogger,
      metrics: createKubeMetrics(new Registry()),
      version: packageVersion(),
      deadlineMs: DEADLINE_MS,
    });
  } catch (error) {
    return [failedServer(messageOf(error), error)];
  }
  try {
    const version = await client.serverVersion();
    const findings: Finding[] = [
      { check: "API server", verdict: "ok", message: `${version.gitVersion} at ${server}` },
    ];
    for (const kind of [customNodeResource, node, ...reporting.additionalKinds]) {
      const served = await client.resolve(kind);
      const message = served
        ? `${served.plural}`
        : "not served by the API server; check that its CustomResourceDefinition is installed and serves this version";
      findings.push({
        check: `kind ${kindKey(kind)}`,
        verdict: served ? "ok" : "failed",
        message,
        ...(served ? {} : { errorId: KindNotServed.id }),
      });
    }
    for (const question of requiredPermissions(configuration))
      findings.push(await checkPermission(client, question));
    return findings;
  } catch (error) {
    return [failedServer(`${server}: ${messageOf(error)}`, error)];
  } finally {
    client.close();
  }
}

function failedServer(message: string, error: unknown): Finding {
  return { check: "API server", verdict: "failed", message, errorId: errorIdOf(error) };
}

async function checkPermission(client: KubeApiClient, question: AccessQuestion): Promise<Finding> {
  const { verb, resource, subresource, name } = question;
  const check = `permission ${verb} ${resource}${subresource ? `/${subresource}` : ""}`;
  const { allowed, reason } = await client.reviewAccess(question);
  if (allowed) return { check, verdict: "ok", message: name ?? "" };
  const message = `denied${reason ? `: ${reason}` : ""}; see deploy/README.md`;
  return { check, verdict: "failed", message, errorId: RequestForbidden.id };
}
