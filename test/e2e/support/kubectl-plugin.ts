import { execFile, spawn } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ControlPlane } from "./control-plane.ts";
import { writeKubeconfig } from "./kubeconfig.ts";
import { pathOf } from "./parts.ts";

const execute = promisify(execFile);
const nodeDirectory = join(import.meta.dirname, "../../../node_modules/.bin");

/** What a command printed and how it ended. */
export interface Ran {
  stdout: string;
  stderr: string;
  status: number;
}

/** A command that stays in the foreground of a terminal. */
export interface ForegroundCommand extends AsyncDisposable {
  /** What it wrote so far. */
  output(): string;
}

/**
 * A person at another machine: real kubectl, which finds the built plugin in PATH, and a kubeconfig whose user is an exec
 * plugin. They may do what has been granted to their name.
 */
export class PluginUser {
  /** Its home directory, whose `bin` has kubectl and its plugins. */
  readonly home: string;
  readonly #env: NodeJS.ProcessEnv;

  private constructor(home: string, env: NodeJS.ProcessEnv) {
    this.home = home;
    this.#env = env;
  }

  /** @param plugin path of the built `kubectl-nodekeeper.cjs` */
  static async create(
    cluster: ControlPlane,
    { name, group, plugin }: { name: string; group: string; plugin: string },
  ): Promise<PluginUser> {
    const directory = join(cluster.directory, `home-${name}`);
    const bin = join(directory, "bin");
    mkdirSync(bin, { recursive: true });
    symlinkSync(pathOf("kubectl"), join(bin, "kubectl"));
    symlinkSync(plugin, join(bin, "kubectl-nodekeeper"));
    const { certificate, key } = await cluster.authority.issue(`user-${name}`, {
      commonName: name,
      organization: group,
    });
    const credential = {
      apiVersion: "client.authentication.k8s.io/v1",
      kind: "ExecCredential",
      status: {
        clientCertificateData: readFileSync(certificate, "utf8"),
        clientKeyData: readFileSync(key, "utf8"),
      },
    };
    writeFileSync(join(directory, "credential.json"), JSON.stringify(credential));
    const login = join(bin, "login");
    writeFileSync(login, `#!/bin/sh\ncat ${directory}/credential.json\n`);
    chmodSync(login, 0o755);
    const exec = {
      apiVersion: credential.apiVersion,
      command: "login",
      interactiveMode: "IfAvailable",
      provideClusterInfo: false,
    };
    const kubeconfig = writeKubeconfig(join(directory, "kubeconfig"), {
      port: cluster.port,
      authority: cluster.trustFile,
      user: { exec },
    });
    return new PluginUser(directory, {
      HOME: directory,
      KUBECONFIG: kubeconfig,
      PATH: `${bin}:${nodeDirectory}:/usr/bin:/bin`,
    });
  }

  /** Starts `kubectl nodekeeper` with a command that does not end by itself. Disposed of, it ends as on Ctrl-C. */
  start(...args: readonly string[]): ForegroundCommand {
    const child = spawn("kubectl", ["nodekeeper", ...args], { env: this.#env, detached: true });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => (output += text));
    const ended = new Promise((resolve) => child.once("close", resolve));
    return {
      output: () => output,
      async [Symbol.asyncDispose]() {
        if (child.exitCode === null) process.kill(-child.pid!, "SIGINT");
        await ended;
      },
    };
  }

  /** Runs `kubectl nodekeeper`. */
  async run(...args: readonly string[]): Promise<Ran> {
    try {
      const { stdout, stderr } = await execute("kubectl", ["nodekeeper", ...args], {
        env: this.#env,
        timeout: 180_000,
      });
      return { stdout, stderr, status: 0 };
    } catch (error) {
      const { stdout, stderr, code } = error as { stdout: string; stderr: string; code: number };
      return { stdout, stderr, status: code };
    }
  }
}
