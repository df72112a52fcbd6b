import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { NodekeeperError } from "@nodekeeper/core/lib";

// `__Host-`: browsers accept the cookie only over TLS and send it only to this host, not to other hosts of its domain.
const NAME = "__Host-nodekeeper";
// Lax instead of Strict, so that a link in another user's message opens a view. From another site, only a link sends
// the cookie, and a link changes nothing: forms of other sites are refused (host-guard.ts).
const ATTRIBUTES = "Path=/; Secure; HttpOnly; SameSite=Lax";
// Browsers keep 4,096 bytes of name and value (RFC 6265, 6.1).
const LONGEST_VALUE = 4_000;
const LONGEST_TOKEN = 16 * 1024;
const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Whether a Cookie header has a session, regardless of its key. */
export function hasSession(header: string | undefined): boolean {
  return header?.includes(`${NAME}=`) === true;
}

/**
 * Stores the token of a browser in a session cookie.
 *
 * 1. The token is encrypted (AES-256-GCM): browsers send a host's cookies to all its ports, and other HTTPS servers on
 *    the node must not get a cluster token.
 * 2. The key is derived from the server's private key: sessions survive restarts of the agent, are not stored on the
 *    node, and end when that key is replaced.
 */
export class SessionCookies {
  readonly #key: Buffer;

  /** @param privateKey the server's private key, PEM */
  constructor(privateKey: string) {
    this.#key = Buffer.from(hkdfSync("sha256", privateKey, "", "nodekeeper session cookie 1", 32));
  }

  /** Returns the Set-Cookie value that stores a token. Throws `exhausted` if the token does not fit in a cookie. */
  keep(token: string): string {
    const value = token.length > LONGEST_TOKEN ? undefined : this.#seal(token);
    if (value !== undefined && value.length <= LONGEST_VALUE) return `${NAME}=${value}; ${ATTRIBUTES}`;
    throw new NodekeeperError("exhausted", `the token is too long for a cookie: ${token.length} characters`);
  }

  /** Returns the Set-Cookie value that ends the session. */
  clear(): string {
    return `${NAME}=; Max-Age=0; ${ATTRIBUTES}`;
  }

  /**
   * Returns the token in a request's Cookie header. Undefined if there is none, or it was encrypted with another key.
   */
  tokenOf(header: string | undefined): string | undefined {
    const cookies = header?.split(/; */) ?? [];
    const value = cookies.find((cookie) => cookie.startsWith(`${NAME}=`))?.slice(NAME.length + 1);
    return value === undefined ? undefined : this.#open(value);
  }

  // Compressed: deflate saves on a base64 token about what base64url adds.
  #seal(token: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES });
    const text = Buffer.concat([cipher.update(deflateRawSync(token)), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString("base64url");
  }

  #open(value: string): string | undefined {
    const bytes = Buffer.from(value, "base64url");
    const tag = bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES);
    if (tag.length < TAG_BYTES) return undefined;
    try {
      const cipher = createDecipheriv(CIPHER, this.#key, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      });
      cipher.setAuthTag(tag);
      const text = Buffer.concat([cipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), cipher.final()]);
      return inflateRawSync(text, { maxOutputLength: LONGEST_TOKEN }).toString();
    } catch {
      return undefined;
    }
  }
}
