// A JSON Web Token, which is what service account tokens are, and the values of authorization headers.
const tokens = /\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?/g;
const authorizations = /\b(bearer|basic)(\s+|%20|\+)[\w.~+/=-]+/gi;
// Shorter ones stand in ordinary words too.
const SHORTEST_SECRET = 8;

/**
 * Removes secrets from a text of the other side before it can reach an error message or the log: servers and proxies
 * quote the request they refuse.
 * @param secrets what was sent in confidence, replaced wherever it stands; undefined ones are ignored
 */
export function redactSecrets(text: string, ...secrets: (string | undefined)[]): string {
  let redacted = text;
  for (const secret of secrets) {
    if (secret !== undefined && secret.length >= SHORTEST_SECRET)
      redacted = redacted.replaceAll(secret, "[redacted]");
  }
  return redacted.replace(tokens, "[redacted]").replace(authorizations, "$1 [redacted]");
}
