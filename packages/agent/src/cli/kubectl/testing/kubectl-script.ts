import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Writes a kubectl stub that runs this shell script in `directory`. Returns its path. */
export function kubectlScript(directory: string, script: string): string {
  const path = join(directory, "kubectl");
  writeFileSync(path, `#!/bin/sh\ncd ${directory}\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}
