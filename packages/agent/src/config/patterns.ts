/** An absolute path without NUL bytes. */
export const absolutePath = /^\/[^\0]*$/;
const label = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";

/** Names of Kubernetes nodes: RFC 1123 subdomains. */
export const nodeNamePattern = new RegExp(`^(?=.{1,253}$)${label}(\\.${label})*$`);
