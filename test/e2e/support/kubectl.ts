import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { pathOf } from "./parts.ts";

const execute = promisify(execFile);

/** The real kubectl, as an operator with every right. */
export class Kubectl {
  readonly #kubeconfig: string;
  readonly #home: string;

  constructor(kubeconfig: string, home: string) {
    this.#kubeconfig = kubeconfig;
    this.#home = home;
  }

  /** Runs kubectl and returns its stdout. If it fails, throws an error that contains its stderr. */
  async run(...args: readonly string[]): Promise<string> {
    // HOME holds its discovery cache.
    const env = { HOME: this.#home, KUBECONFIG: this.#kubeconfig };
    const { stdout } = await execute(pathOf("kubectl"), args, { env, timeout: 180_000 });
    return stdout;
  }
}
