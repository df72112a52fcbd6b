// A JSON Web Token, which is what service account tokens are, and the values of authorization headers.
const tokens = /\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?/g;
const authorizations = /\b(bearer|basic)(\s+|%20|\+)[\w.~+/=-]+/gi;
// Shorter ones occur in ordinary words too.
const SHORTEST_SECRET = 8;

/**
 * Removes secrets from a server's text before it can reach an error message or the log: servers and proxies quote
 * the request that they refuse.
 * @param secrets what the request contained, replaced wherever it occurs; undefined ones are ignored
 */
export function redactSecrets(text: string, ...secrets: (string | undefined)[]): string {
  let redacted = text;
  for (const secret of secrets) {
    if (secret !== undefined && secret.length >= SHORTEST_SECRET)
      redacted = redacted.replaceAll(secret, "[redacted]");
  }
  return redacted.replace(tokens, "[redacted]").replace(authorizations, "$1 [redacted]");
}
