// JSON Web Tokens, such as service account tokens, and values of authorization headers.
const tokens = /\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?/g;
const authorizations = /\b(bearer|basic)(\s+|%20|\+)[\w.~+/=-]+/gi;
// Shorter strings also occur in ordinary words.
const SHORTEST_SECRET = 8;

/**
 * Removes secrets from a server's text before it is used in an error or logged: servers and proxies quote the requests
 * that they reject.
 * @param secrets secrets of the request, replaced wherever they occur; undefined ones are ignored
 */
export function redactSecrets(text: string, ...secrets: (string | undefined)[]): string {
  let redacted = text;
  for (const secret of secrets) {
    if (secret !== undefined && secret.length >= SHORTEST_SECRET)
      redacted = redacted.replaceAll(secret, "[redacted]");
  }
  return redacted.replace(tokens, "[redacted]").replace(authorizations, "$1 [redacted]");
}
