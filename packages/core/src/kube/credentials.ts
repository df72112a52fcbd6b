import { readFile } from "node:fs/promises";
import { createSecureContext, type SecureContext } from "node:tls";
import { CredentialsUnusable } from "@nodekeeper/api/errors";
import {
  type Clock,
  type Logger,
  messageOf,
  type NodekeeperError,
  SharedWork,
  stampOf,
} from "../lib/index.ts";
import type { ClusterAccess, Material } from "./access.ts";

/** Credentials of the agent and trust settings for the server at one point in time. */
export interface CredentialSnapshot {
  readonly token: string | undefined;
  /** Undefined for plain HTTP. */
  readonly secureContext: SecureContext | undefined;
  /** Incremented when certificates change. Connections of older generations are not used for new requests. */
  readonly tlsGeneration: number;
}

// The kubelet renews projected tokens well before they expire, so a delay of a few seconds is harmless.
const RECHECK_MS = 5_000;

/**
 * Credentials of a ClusterAccess. Checks the files for changes at most every few seconds, and immediately on `refresh`.
 * Invalid changes are logged and the last valid credentials are kept.
 */
export class Credentials {
  readonly #access: ClusterAccess;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #files: string[];
  #good: { snapshot: CredentialSnapshot; pem: string; stamp: string } | undefined;
  #checkedAt = Number.NEGATIVE_INFINITY;
  readonly #checks = new SharedWork(() => this.#check(), { outlivesCallers: true });
  // The next check reads the files even if they appear unchanged.
  #isStampIgnored = false;
  #lastComplaint = "";

  constructor(access: ClusterAccess, clock: Clock, log: Logger) {
    this.#access = access;
    this.#clock = clock;
    this.#log = log;
    const materials = [access.token, access.certificateAuthority, access.clientCertificate, access.clientKey];
    this.#files = materials.flatMap((material) => (material && "file" in material ? [material.file] : []));
  }

  /** Returns the current credentials. Throws `invalid` until they were read successfully once. */
  async current(): Promise<CredentialSnapshot> {
    const due = this.#clock.monotonic() - this.#checkedAt >= RECHECK_MS;
    if (this.#good && (!due || this.#files.length === 0)) return this.#good.snapshot;
    return await this.#checks.join();
  }

  /** Reads all files again, changed or not. For requests that the server rejected as unauthenticated. */
  async refresh(): Promise<CredentialSnapshot> {
    this.#isStampIgnored = true;
    return await this.#checks.fresh();
  }

  /** Makes the next `current` check the files immediately. For server certificates that were not trusted. */
  suspect(): void {
    this.#checkedAt = Number.NEGATIVE_INFINITY;
  }

  async #check(): Promise<CredentialSnapshot> {
    const always = this.#isStampIgnored;
    this.#isStampIgnored = false;
    this.#checkedAt = this.#clock.monotonic();
    try {
      const stamp = (await Promise.all(this.#files.map(stampOf))).join(" ");
      if (this.#good && !always && stamp === this.#good.stamp) return this.#good.snapshot;
      return await this.#read(stamp);
    } catch (error) {
      if (!this.#good) throw unusable(this.#access, error);
      this.#complain(error);
      return this.#good.snapshot;
    }
  }

  async #read(stamp: string): Promise<CredentialSnapshot> {
    const { server, certificateAuthority, clientCertificate, clientKey } = this.#access;
    const token = tokenOf(await contentOf(this.#access.token));
    const [ca, cert, key] = await Promise.all(
      [certificateAuthority, clientCertificate, clientKey].map(contentOf),
    );
    const pem = JSON.stringify([ca, cert, key]);
    const old = this.#good;
    const same = old?.pem === pem;
    const secure = server.protocol === "https:";
    const snapshot: CredentialSnapshot = {
      token,
      secureContext: same
        ? old.snapshot.secureContext
        : secure
          ? createSecureContext({ ca, cert, key })
          : undefined,
      tlsGeneration: same ? old.snapshot.tlsGeneration : (old?.snapshot.tlsGeneration ?? 0) + 1,
    };
    if (old && !same) this.#log.info({ source: this.#access.source }, "certificates were renewed");
    this.#good = { snapshot, pem, stamp };
    this.#lastComplaint = "";
    return snapshot;
  }

  #complain(error: unknown): void {
    const complaint = messageOf(error);
    if (complaint === this.#lastComplaint) return;
    this.#lastComplaint = complaint;
    this.#log.warn(
      { errorId: CredentialsUnusable.id, err: error, source: this.#access.source },
      "failed to load changed credentials, keeping the previous ones",
    );
  }
}

async function contentOf(material: Material | undefined): Promise<string | undefined> {
  if (!material) return undefined;
  return "text" in material ? material.text : await readFile(material.file, "utf8");
}

// A header value must be a single visible line. Node's own error for an invalid one would contain the token.
function tokenOf(content: string | undefined): string | undefined {
  if (content === undefined) return undefined;
  const token = content.trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new CredentialsUnusable({
    problem: "the token is empty or has spaces or unprintable characters in it",
  });
}

function unusable(access: ClusterAccess, cause: unknown): NodekeeperError {
  return new CredentialsUnusable({ problem: `${access.source}: the credentials can't be used` }, { cause });
}
