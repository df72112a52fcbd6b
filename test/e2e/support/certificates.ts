import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { pathOf } from "./parts.ts";

const execute = promisify(execFile);

export interface KeyPair {
  certificate: string;
  key: string;
}

export interface Subject {
  commonName: string;
  organization?: string;
  /** For a server: the names and addresses it answers to, as openssl writes them ("IP:127.0.0.1"). */
  alternativeNames?: readonly string[];
}

/** A certificate authority of the suite's own, and what it signs, as PEM files in one directory. */
export class Authority implements KeyPair {
  readonly certificate: string;
  readonly key: string;
  readonly #directory: string;

  private constructor(directory: string, name: string) {
    this.#directory = directory;
    this.certificate = join(directory, `${name}.crt`);
    this.key = join(directory, `${name}.key`);
  }

  static async create(directory: string, name: string): Promise<Authority> {
    const authority = new Authority(directory, name);
    const { certificate, key } = authority;
    const constraints = [
      "basicConstraints=critical,CA:TRUE",
      "keyUsage=critical,keyCertSign,digitalSignature",
    ];
    await openssl([
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-noenc",
      "-days",
      "2",
      "-subj",
      `/CN=${name}`,
      ...constraints.flatMap((text) => ["-addext", text]),
      "-keyout",
      key,
      "-out",
      certificate,
    ]);
    return authority;
  }

  /** Issues a certificate for both ends of TLS. The files appear whole, over those of the same name. */
  async issue(name: string, subject: Subject): Promise<KeyPair> {
    const pair = {
      certificate: join(this.#directory, `${name}.crt`),
      key: join(this.#directory, `${name}.key`),
    };
    const fresh = { certificate: `${pair.certificate}.new`, key: `${pair.key}.new` };
    const request = join(this.#directory, `${name}.csr`);
    const extensions = join(this.#directory, `${name}.ext`);
    const { commonName, organization, alternativeNames } = subject;
    writeFileSync(
      extensions,
      [
        "basicConstraints=CA:FALSE",
        "keyUsage=digitalSignature",
        "extendedKeyUsage=serverAuth,clientAuth",
        ...(alternativeNames ? [`subjectAltName=${alternativeNames.join(",")}`] : []),
      ].join("\n"),
    );
    await openssl([
      "req",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-noenc",
      "-subj",
      `${organization ? `/O=${organization}` : ""}/CN=${commonName}`,
      "-keyout",
      fresh.key,
      "-out",
      request,
    ]);
    await openssl([
      "x509",
      "-req",
      "-in",
      request,
      "-CA",
      this.certificate,
      "-CAkey",
      this.key,
      "-days",
      "1",
      "-set_serial",
      `0x${randomBytes(8).toString("hex")}`,
      "-extfile",
      extensions,
      "-out",
      fresh.certificate,
    ]);
    await rename(fresh.key, pair.key);
    await rename(fresh.certificate, pair.certificate);
    return pair;
  }
}

async function openssl(args: readonly string[]): Promise<void> {
  await execute(pathOf("openssl"), args);
}
