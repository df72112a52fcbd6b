/** An absolute path without NUL bytes. */
export const absolutePath = /^\/[^\0]*$/;
const qualified = "([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?";

/** Keys of labels and annotations: an optional DNS subdomain with a slash, then a name. */
export const qualifiedName = new RegExp(`^${qualified}$`);

/** Annotations as "key=value". The value contains neither "=" nor ",". */
export const annotationValue = new RegExp(`^${qualified}=[^=,]{0,253}$`);

const label = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";

/** Names of nodes: RFC 1123 subdomains, of at most `LONGEST_NAME` characters. */
export const nodeNamePattern = new RegExp(`^${label}(\\.${label})*$`);
export const LONGEST_NAME = 253;

export function isNodeName(text: string): boolean {
  return text.length <= LONGEST_NAME && nodeNamePattern.test(text);
}

/** Addresses as "host:port". IPv6 addresses are in brackets. */
export const listenAddress =
  /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?):(0|[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5])$/;

/** Plugins with their owner as "name=uid". */
export const pluginNameOwner = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?=(0|[1-9]\d{0,9})$/;
