import type { PluginInfo } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { checkPluginName, checkSocketPath, NodekeeperError, quote } from "@nodekeeper/core/lib";
import type { PluginRegistration } from "./types.ts";

/** A plugin as it presented itself, checked, not yet accepted. */
export type PluginCandidate = Omit<PluginRegistration, "generation">;

const mostVersions = 64;
const longestVersion = 63;

/**
 * Checks what a plugin says of itself, before any handler sees it.
 * Throws `invalid` with a reason that says what would be accepted and quotes at most 100 characters of the input.
 * @param registrationSocket absolute path; serves as the endpoint where the plugin names none
 */
export function checkPluginInfo(info: PluginInfo, registrationSocket: string): PluginCandidate {
  checkPluginName(info.name);
  checkVersions(info.supportedVersions);
  const endpoint = info.endpoint === "" ? registrationSocket : info.endpoint;
  checkEndpoint(endpoint);
  return { type: info.type, name: info.name, endpoint, registrationSocket, versions: info.supportedVersions };
}

function checkVersions(versions: string[]): void {
  if (versions.length > mostVersions) {
    throw new NodekeeperError(
      "invalid",
      `the plugin lists ${versions.length} supported versions, at most ${mostVersions} are accepted`,
    );
  }
  const tooLong = versions.find((version) => version.length > longestVersion);
  if (tooLong === undefined) return;
  throw new NodekeeperError(
    "invalid",
    `supported version ${quote(tooLong)} is refused: a version has at most ${longestVersion} characters`,
  );
}

function checkEndpoint(endpoint: string): void {
  if (endpoint.includes("\0")) {
    throw new NodekeeperError("invalid", `endpoint ${quote(endpoint)} is refused: it contains a NUL`);
  }
  try {
    checkSocketPath(endpoint);
  } catch (error) {
    throw new NodekeeperError(
      "invalid",
      "endpoint is refused: give the absolute path of a unix socket, or nothing for the registration socket itself",
      { cause: error },
    );
  }
}
