import {
  PluginEndpointInvalid,
  PluginVersionsRefused,
  PluginVersionsUnsupported,
} from "@nodekeeper/api/errors";
import type { PluginInfo } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { checkPluginName, checkSocketPath, quote } from "@nodekeeper/core/lib";
import type { PluginRegistration, PresentedPlugin } from "./types.ts";

/** A plugin with valid PluginInfo that has not been accepted yet. */
export type PluginCandidate = Omit<PluginRegistration, "generation">;

const maxVersions = 64;
const maxVersionLength = 63;

/**
 * Validates a plugin's PluginInfo before it is passed to a handler. Throws `invalid` with a message that
 * states what is accepted and quotes at most 100 characters of the input.
 * @param registrationSocket absolute path; used as the endpoint if the plugin does not specify one
 */
export function checkPluginInfo(info: PluginInfo, registrationSocket: string): PresentedPlugin {
  checkPluginName(info.name);
  checkVersions(info.supportedVersions);
  const endpoint = info.endpoint === "" ? registrationSocket : info.endpoint;
  checkEndpoint(endpoint);
  return { type: info.type, name: info.name, endpoint, registrationSocket, versions: info.supportedVersions };
}

/** Throws `unsupported`, with both lists of versions, unless the plugin offers at least one supported version. */
export function checkSupportedVersion(
  { type, versions }: PresentedPlugin,
  supported: readonly string[],
): void {
  if (versions.some((version) => supported.includes(version))) return;
  const offered = versions.join(", ").slice(0, 200) || "none";
  throw new PluginVersionsUnsupported({ type, supported: supported.join(", "), offered });
}

function checkVersions(versions: string[]): void {
  if (versions.length > maxVersions) {
    throw new PluginVersionsRefused({
      problem: `the plugin lists ${versions.length} supported versions, at most ${maxVersions} are accepted`,
    });
  }
  const tooLong = versions.find((version) => version.length > maxVersionLength);
  if (tooLong === undefined) return;
  throw new PluginVersionsRefused({
    problem: `invalid supported version ${quote(tooLong)}: a version has at most ${maxVersionLength} characters`,
  });
}

function checkEndpoint(endpoint: string): void {
  if (endpoint.includes("\0")) {
    throw new PluginEndpointInvalid({ problem: `${quote(endpoint)} contains a NUL` });
  }
  try {
    checkSocketPath(endpoint);
  } catch (error) {
    const problem =
      "expected the absolute path of a unix socket, or an empty string for the registration socket";
    throw new PluginEndpointInvalid({ problem }, { cause: error });
  }
}
