import { limits } from "./limits.ts";

const label = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?";
const dnsLabel = new RegExp(`^${label}$`);
const dnsSubdomain = new RegExp(`^${label}(?:\\.${label})*$`);
const identifier = /^[A-Za-z_][A-Za-z0-9_]*$/;
const labelText = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const numeric = "(?:0|[1-9][0-9]*)";
const preRelease = "(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)";
const build = "[0-9A-Za-z-]+";
const semver = new RegExp(
  `^${numeric}\\.${numeric}\\.${numeric}(?:-${preRelease}(?:\\.${preRelease})*)?(?:\\+${build}(?:\\.${build})*)?$`,
);

/** RFC 1123 label: at most 63 lower case letters, digits and '-', with a letter or digit at both ends. */
export function isDnsLabel(text: string): boolean {
  return text.length <= 63 && dnsLabel.test(text);
}

/** RFC 1123 subdomain: labels joined by '.', at most 253 characters. */
export function isDnsSubdomain(text: string): boolean {
  return text.length <= 253 && dnsSubdomain.test(text);
}

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

/** A label key, as used by taints and conditions: at most 63 characters, optionally prefixed by "<DNS subdomain>/". */
export function isLabelName(text: string): boolean {
  const slash = text.indexOf("/");
  const name = text.slice(slash + 1);
  return (slash < 0 || isDnsSubdomain(text.slice(0, slash))) && name.length <= 63 && labelText.test(name);
}

/** A label value: empty, or like a label key without a prefix. */
export function isLabelValue(text: string): boolean {
  return text === "" || (text.length <= 63 && labelText.test(text));
}

/** A version by Semantic Versioning 2.0.0. */
export function isSemanticVersion(text: string): boolean {
  return semver.test(text);
}
