import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Whether `makeAuthority` can be used on this machine. */
export const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;

export interface Pair {
  cert: string;
  key: string;
}

/** A certificate authority for one test. */
export interface Authority {
  ca: string;
  issue(name: string, alternativeNames?: string): Pair;
}

const KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

export function makeAuthority(directory: string, name: string): Authority {
  const file = (part: string) => join(directory, `${name}-${part}`);
  const openssl = (...args: string[]) => execFileSync("openssl", args, { stdio: "pipe" });
  openssl(
    "req",
    "-x509",
    ...KEY,
    "-keyout",
    file("ca.key"),
    "-out",
    file("ca.crt"),
    "-days",
    "2",
    "-subj",
    `/CN=${name}`,
  );
  return {
    ca: readFileSync(file("ca.crt"), "utf8"),
    issue(subject, alternativeNames) {
      const [key, request, cert] = [file(`${subject}.key`), file(`${subject}.csr`), file(`${subject}.crt`)];
      openssl("req", "-new", ...KEY, "-keyout", key, "-out", request, "-subj", `/CN=${subject}`);
      const extensions = file(`${subject}.ext`);
      writeFileSync(extensions, alternativeNames ? `subjectAltName=${alternativeNames}\n` : "");
      const signing = ["-CA", file("ca.crt"), "-CAkey", file("ca.key"), "-CAcreateserial", "-days", "2"];
      openssl("x509", "-req", "-in", request, ...signing, "-out", cert, "-extfile", extensions);
      return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
    },
  };
}
