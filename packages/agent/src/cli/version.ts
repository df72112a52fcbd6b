import { readFileSync } from "node:fs";

/** The package's version: compiled into the bundle, or read from package.json when run from source. */
export function packageVersion(): string {
  if (typeof NODEKEEPER_VERSION === "string") return NODEKEEPER_VERSION;
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

declare const NODEKEEPER_VERSION: string | undefined;
