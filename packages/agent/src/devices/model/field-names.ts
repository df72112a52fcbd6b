import { isDnsSubdomain } from "@nodekeeper/core/lib";
import { limits } from "./limits.ts";

const identifier = /^[A-Za-z_][A-Za-z0-9_]*$/;
const numeric = "(?:0|[1-9][0-9]*)";
const preRelease = "(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)";
const build = "[0-9A-Za-z-]+";
const semver = new RegExp(
  `^${numeric}\\.${numeric}\\.${numeric}(?:-${preRelease}(?:\\.${preRelease})*)?(?:\\+${build}(?:\\.${build})*)?$`,
);

/** A driver's name: a DNS subdomain of at most 63 characters, upper case letters allowed. */
export function isDriverName(text: string): boolean {
  return text.length <= limits.driverName && isDnsSubdomain(text.toLowerCase());
}

/** DNS subdomains joined by '/', at most 253 characters in total. */
export function isPoolName(text: string): boolean {
  return text.length <= limits.poolName && text.split("/").every(isDnsSubdomain);
}

/** The identifier of an attribute or capacity without its domain. */
export function isIdentifier(text: string): boolean {
  return text.length <= limits.identifier && identifier.test(text);
}

/** The name of an attribute or capacity: an identifier, optionally prefixed by "<domain>/". */
export function isQualifiedName(text: string): boolean {
  const slash = text.indexOf("/");
  if (slash < 0) return isIdentifier(text);
  return isDriverName(text.slice(0, slash)) && isIdentifier(text.slice(slash + 1));
}

/** A version by Semantic Versioning 2.0.0. */
export function isSemanticVersion(text: string): boolean {
  return semver.test(text);
}
