import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { ServingCertificateUnusable } from "@nodekeeper/api/errors";
import { type Clock, type Logger, messageOf, sleepOrAbort, stampOf } from "@nodekeeper/core/lib";

export interface ServingCertificateOptions {
  /** PEM: the server's certificate, followed by intermediate certificates. */
  certFile: string;
  /** PEM: the private key of the certificate. */
  privateKeyFile: string;
  clock: Clock;
  log: Logger;
}

/** A certificate and its private key, in PEM. */
export interface CertificatePair {
  cert: string;
  key: string;
}

// cert-manager and the kubelet renew certificates hours before they expire.
const RECHECK_MS = 10_000;

/** The serving certificate, read from files that are renewed while the agent runs. */
export class ServingCertificate {
  readonly #options: ServingCertificateOptions;
  #stamp = "";

  constructor(options: ServingCertificateOptions) {
    this.#options = options;
  }

  /** Reads the files. Throws `invalid`, naming them, if they cannot be read or do not match. */
  async read(): Promise<CertificatePair> {
    const { certFile, privateKeyFile } = this.#options;
    try {
      const stamp = await this.#currentStamp();
      const [cert, key] = await Promise.all([readFile(certFile, "utf8"), readFile(privateKeyFile, "utf8")]);
      createSecureContext({ cert, key });
      // Set only on success: after a failure the files are read again even if they do not change.
      this.#stamp = stamp;
      return { cert, key };
    } catch (error) {
      // OpenSSL's messages do not name the files.
      const message = `server.tlsCertFile ${certFile} and server.tlsPrivateKeyFile ${privateKeyFile} can't be used`;
      throw new ServingCertificateUnusable({ what: message, problem: messageOf(error) }, { cause: error });
    }
  }

  /** Calls `onChange` with each renewed pair until the signal aborts. An invalid pair is logged. */
  async watch(signal: AbortSignal, onChange: (pair: CertificatePair) => void): Promise<void> {
    const { clock, log, certFile } = this.#options;
    let lastError = "";
    while (!signal.aborted) {
      await sleepOrAbort(clock, RECHECK_MS, signal);
      if (signal.aborted) return;
      try {
        if ((await this.#currentStamp()) === this.#stamp) continue;
        onChange(await this.read());
        lastError = "";
        log.info({ file: certFile }, "serving certificate reloaded");
      } catch (error) {
        const message = messageOf(error);
        if (message !== lastError)
          log.warn(
            { err: error, file: certFile },
            "failed to reload the serving certificate, keeping the previous one",
          );
        lastError = message;
      }
    }
  }

  async #currentStamp(): Promise<string> {
    const { certFile, privateKeyFile } = this.#options;
    return (await Promise.all([certFile, privateKeyFile].map(stampOf))).join(" ");
  }
}
