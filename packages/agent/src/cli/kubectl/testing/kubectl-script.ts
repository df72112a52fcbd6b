import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Writes a kubectl stub that runs this shell script in `folder`. Returns its path. */
export function kubectlScript(folder: string, script: string): string {
  const path = join(folder, "kubectl");
  writeFileSync(path, `#!/bin/sh\ncd ${folder}\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}
