import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Child } from "./child.ts";
import { freePort } from "./free-port.ts";
import { pathOf } from "./parts.ts";

const execute = promisify(execFile);

/** An OCI registry and a registry of npm packages on loopback, without TLS and open to all. */
export class Registries {
  /** The path below which images and charts are. */
  readonly oci: string;
  /** The environment of commands that use them: HOME is a directory with the settings of npm and skopeo. */
  readonly env: Record<string, string>;
  readonly #children: readonly Child[];

  private constructor(oci: string, home: string, children: readonly Child[]) {
    this.oci = oci;
    this.env = { HOME: home };
    this.#children = children;
  }

  /** Starts both. They keep everything below `directory`. */
  static async start(directory: string): Promise<Registries> {
    const home = join(directory, "home");
    mkdirSync(join(home, ".config/containers"), { recursive: true });
    const [oci, npm] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
    writeFileSync(
      join(directory, "oci.json"),
      JSON.stringify({
        version: "0.1",
        storage: { filesystem: { rootdirectory: join(directory, "oci") } },
        http: { addr: oci },
      }),
    );
    // Other packages come from where npm takes them, by the machine's proxies and authorities.
    const url = (await execute("npm", ["config", "get", "registry"])).stdout.trim();
    const everyone = { access: "$all", publish: "$all" };
    writeFileSync(
      join(directory, "npm.json"),
      JSON.stringify({
        storage: join(directory, "npm"),
        uplinks: { upstream: { url } },
        packages: {
          "{nodekeeper,@nodekeeper/*}": everyone,
          "**": { ...everyone, proxy: "upstream" },
        },
      }),
    );
    // npm publishes with credentials only, whatever they are.
    writeFileSync(join(home, ".npmrc"), `registry=http://${npm}/\n//${npm}/:_authToken=e2e\n`);
    const policy = { default: [{ type: "insecureAcceptAnything" }] };
    writeFileSync(join(home, ".config/containers/policy.json"), JSON.stringify(policy));

    const env = { ...(process.env as Record<string, string>), HOME: home };
    const child = (name: string, command: string, ...args: string[]) =>
      new Child({ name, command, args, logFile: join(directory, `${name}.log`), env });
    const children = [
      child("docker-registry", pathOf("dockerRegistry"), "serve", join(directory, "oci.json")),
      child("verdaccio", process.execPath, pathOf("verdaccio"), "-c", join(directory, "npm.json"), "-l", npm),
    ];
    for (const each of children) each.start();
    const registries = new Registries(`${oci}/e2e`, home, children);
    try {
      await children[0]!.until("serving", () => fetch(`http://${oci}/v2/`));
      await children[1]!.until("serving", () => fetch(`http://${npm}/-/ping`));
    } catch (error) {
      await registries.stop();
      throw error;
    }
    return registries;
  }

  /** The repositories in the OCI registry, below any path. */
  async repositories(): Promise<string[]> {
    const answer = await fetch(`http://${this.oci.split("/")[0]}/v2/_catalog`);
    return ((await answer.json()) as { repositories: string[] }).repositories;
  }

  async stop(): Promise<void> {
    for (const each of this.#children) await each.stop();
  }
}
