import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { Child } from "./child.ts";
import { imageName, writeImage } from "./container-image.ts";
import { pathOf } from "./parts.ts";

const execute = promisify(execFile);
/** The namespace that CRI uses. */
const NAMESPACE = "k8s.io";
const DEADLINE_MS = 30_000;

/** A containerd with a root, state and socket of its own in a folder, its CRI on, and one image: `imageName`. Needs root. */
export class Containerd {
  readonly socket: string;
  readonly process: Child;
  readonly #folder: string;
  readonly #ctr: string;
  readonly #path: string;

  private constructor(folder: string, part: "containerd" | "oldContainerd") {
    const binary = pathOf(part);
    this.#folder = folder;
    this.#ctr = join(dirname(binary), "ctr");
    // Its shim and runc are found by PATH; those of the machine come after.
    this.#path = [dirname(binary), dirname(pathOf("runc")), process.env.PATH].join(":");
    this.socket = join(folder, "containerd.sock");
    this.process = new Child({
      name: "containerd",
      command: binary,
      args: ["--config", join(folder, "containerd.toml")],
      logFile: join(folder, "containerd.log"),
      env: { PATH: this.#path },
    });
  }

  static async start(folder: string, part: "containerd" | "oldContainerd"): Promise<Containerd> {
    mkdirSync(folder, { recursive: true });
    const containerd = new Containerd(folder, part);
    writeFileSync(join(folder, "containerd.toml"), configuration(folder, containerd.socket));
    try {
      containerd.process.start();
      await containerd.process.until("serving", () => containerd.ctr("version"));
      const image = await writeImage(folder, pathOf("busybox"));
      await containerd.ctr("image", "import", "--snapshotter", "native", image);
    } catch (error) {
      await containerd.stop();
      throw error;
    }
    return containerd;
  }

  /** Runs containerd's own client in the namespace of CRI, and gives its stdout. */
  async ctr(...args: readonly string[]): Promise<string> {
    const { stdout } = await execute(
      this.#ctr,
      ["--address", this.socket, "--namespace", NAMESPACE, ...args],
      {
        env: { PATH: this.#path },
        timeout: DEADLINE_MS,
      },
    );
    return stdout;
  }

  /** Ends all containers, then containerd; leaves no process and no mount. Also after it was killed. */
  async stop(): Promise<void> {
    if (!this.process.isRunning && existsSync(this.socket)) {
      // Its shims live on without it, and only it knows them.
      this.process.start();
      await this.process.until("serving", () => this.ctr("version")).catch(() => {});
    }
    if (this.process.isRunning) {
      const tasks = await this.ctr("task", "ls", "-q").catch(() => "");
      for (const task of tasks.split("\n").filter(Boolean)) {
        await this.ctr("task", "rm", "--force", task).catch(() => {});
      }
      await this.process.stop();
    }
    for (const mount of mountsUnder(this.#folder)) await execute("umount", ["--lazy", mount]).catch(() => {});
  }
}

function configuration(folder: string, socket: string): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  return `version = 2
root = "${folder}/root"
state = "${folder}/state"
[grpc]
  address = "${socket}"
[${cri}]
  sandbox_image = "${imageName}"
  disable_tcp_service = true
  restrict_oom_score_adj = true
[${cri}.containerd]
  snapshotter = "native"
[${cri}.cni]
  bin_dir = "${folder}/cni/bin"
  conf_dir = "${folder}/cni/net.d"
`;
}

/** Innermost first. */
function mountsUnder(folder: string): string[] {
  const mounts = readFileSync("/proc/self/mounts", "utf8").split("\n");
  const points = mounts.map((line) => line.split(" ")[1] ?? "");
  return points.filter((point) => point.startsWith(`${folder}/`)).reverse();
}
