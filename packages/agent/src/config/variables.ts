import { settings } from "@nodekeeper/api/settings";
import { ConfigurationError, nearestName, type Problem, shortened } from "./problem.ts";

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

const PREFIX = "NODEKEEPER_";

// Variables with this prefix that are not settings: those of `kubectl nodekeeper`, the arguments in the systemd unit,
// and the marker of launch.ts.
const otherNames = [
  ...["NODEKEEPER_NAMESPACE", "NODEKEEPER_EXTRA_ARGS", "NODEKEEPER_STARTED_OVER"],
  ...["NODEKEEPER_ARCHIVE", "NODEKEEPER_ARCHIVE_CA", "NODEKEEPER_ARCHIVE_HEADERS"],
  "NODEKEEPER_ARCHIVE_ATTRIBUTES",
];

const knownNames: ReadonlySet<string> = new Set([
  ...settings.flatMap(({ envNames }) => envNames).filter((name) => name.startsWith(PREFIX)),
  ...otherNames,
]);

/**
 * Returns a problem for each variable NODEKEEPER_* that is neither a setting nor used otherwise. Empty variables count
 * as unset. Variables that Kubernetes adds to pods for a Service called "nodekeeper" or "nodekeeper-..." are ignored.
 */
export function variableProblems(env: Environment): Problem[] {
  const services = servicesIn(env);
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && env[name] && !knownNames.has(name))
    .filter((name) => !services.some((service) => isOfService(name, service)))
    .sort()
    .map((name) => ({ source: `env ${shortened(name)}`, path: "", message: unknownVariable(name) }));
}

/** Throws ConfigurationError if the environment has an unknown variable. For commands without a configuration. */
export function checkVariables(env: Environment): void {
  const problems = variableProblems(env);
  if (problems.length > 0) throw new ConfigurationError(problems);
}

// The path of a setting, as in NODEKEEPER_EVICTION_ENABLED, is a better hint than a similar name.
function unknownVariable(name: string): string {
  const words = name.slice(PREFIX.length);
  const own = settings.find(({ path }) => lettersOf(path) === lettersOf(words))?.envNames[0];
  const similar = nearestName(
    words,
    [...knownNames].map((known) => known.slice(PREFIX.length)),
  );
  const guess = own ?? (similar && PREFIX + similar);
  return guess === undefined ? "unknown variable" : `unknown variable; did you mean ${guess}?`;
}

function lettersOf(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9]/g, "").toLowerCase();
}

// Kubernetes adds both variables for each Service with a cluster IP. Source: pkg/kubelet/envvars, FromServices.
function servicesIn(env: Environment): string[] {
  const suffix = "_SERVICE_HOST";
  return Object.keys(env)
    .filter((name) => name.endsWith(suffix))
    .map((name) => name.slice(0, -suffix.length))
    .filter((service) => env[`${service}_SERVICE_PORT`] !== undefined);
}

function isOfService(name: string, service: string): boolean {
  return (
    name.startsWith(`${service}_`) &&
    /^(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/.test(
      name.slice(service.length + 1),
    )
  );
}
