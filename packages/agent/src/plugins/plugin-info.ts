import type { PluginInfo } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { checkPluginName, checkSocketPath, NodekeeperError, quote } from "@nodekeeper/core/lib";
import type { PluginRegistration } from "./types.ts";

/** A plugin with valid PluginInfo that is not yet accepted. */
export type PluginCandidate = Omit<PluginRegistration, "generation">;

const maxVersions = 64;
const maxVersionLength = 63;

/**
 * Validates a plugin's PluginInfo before it is passed to a handler. Throws `invalid` with a reason that states what is
 * accepted and quotes at most 100 characters of the input.
 * @param registrationSocket absolute path; used as the endpoint if the plugin names none
 */
export function checkPluginInfo(info: PluginInfo, registrationSocket: string): PluginCandidate {
  checkPluginName(info.name);
  checkVersions(info.supportedVersions);
  const endpoint = info.endpoint === "" ? registrationSocket : info.endpoint;
  checkEndpoint(endpoint);
  return { type: info.type, name: info.name, endpoint, registrationSocket, versions: info.supportedVersions };
}

function checkVersions(versions: string[]): void {
  if (versions.length > maxVersions) {
    throw new NodekeeperError(
      "invalid",
      `the plugin lists ${versions.length} supported versions, at most ${maxVersions} are accepted`,
      { id: "NK1307" },
    );
  }
  const tooLong = versions.find((version) => version.length > maxVersionLength);
  if (tooLong === undefined) return;
  throw new NodekeeperError(
    "invalid",
    `invalid supported version ${quote(tooLong)}: a version has at most ${maxVersionLength} characters`,
    { id: "NK1307" },
  );
}

function checkEndpoint(endpoint: string): void {
  if (endpoint.includes("\0")) {
    throw new NodekeeperError("invalid", `invalid endpoint ${quote(endpoint)}: it contains a NUL`, {
      id: "NK1308",
    });
  }
  try {
    checkSocketPath(endpoint);
  } catch (error) {
    throw new NodekeeperError(
      "invalid",
      "invalid endpoint: expected the absolute path of a unix socket, or an empty string for the registration socket",
      { id: "NK1308", cause: error },
    );
  }
}
