import { createPrivateKey, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Who a token is for. The server checks that the account with this uid still exists. */
export interface ServiceAccount {
  namespace: string;
  name: string;
  uid: string;
}

// The API server takes a token for so long after its expiry, for clocks that differ.
const LEEWAY_S = 60;

/**
 * The key with which the API server signs and checks tokens of service accounts. Tokens of the TokenRequest API live
 * ten minutes at least; with the key the suite makes some that expire within a test.
 */
export class TokenSigner {
  static readonly issuer = "https://nodekeeper-e2e.invalid";
  readonly keyFile: string;

  constructor(directory: string) {
    this.keyFile = join(directory, "service-accounts.key");
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    writeFileSync(this.keyFile, privateKey.export({ type: "sec1", format: "pem" }), { mode: 0o600 });
  }

  /**
   * Returns a token as the API server would issue it (https://www.rfc-editor.org/rfc/rfc7519), bound to `node` if one
   * is given. The API server accepts it for `lifetimeSeconds`, which include its leeway after the expiry.
   */
  sign(
    { namespace, name, uid }: ServiceAccount,
    lifetimeSeconds: number,
    node?: { name: string; uid: string },
  ): string {
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      iss: TokenSigner.issuer,
      aud: [TokenSigner.issuer],
      sub: `system:serviceaccount:${namespace}:${name}`,
      jti: randomUUID(),
      iat: now - 2 * LEEWAY_S,
      nbf: now - 2 * LEEWAY_S,
      exp: now + lifetimeSeconds - LEEWAY_S,
      "kubernetes.io": { namespace, serviceaccount: { name, uid }, ...(node ? { node } : {}) },
    };
    const signed = `${encode({ alg: "ES256", typ: "JWT" })}.${encode(claims)}`;
    const key = createPrivateKey(readFileSync(this.keyFile));
    const signature = sign("sha256", Buffer.from(signed), { key, dsaEncoding: "ieee-p1363" });
    return `${signed}.${signature.toString("base64url")}`;
  }
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
