import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { makeCgroup, removeCgroup, weighAsPods } from "./cgroups.ts";
import { Child } from "./child.ts";
import { imageName, writeImage } from "./container-image.ts";
import { mountsUnder } from "./ended-runs.ts";
import { pathOf } from "./parts.ts";

const execute = promisify(execFile);
/** The namespace that CRI uses. */
const NAMESPACE = "k8s.io";
const DEADLINE_MS = 180_000;

/** 1.6, 1.7, 2.1, and one that moves network interfaces, with a runc that does. */
export type ContainerdPart = "oldContainerd" | "containerd" | "newContainerd" | "netContainerd";

/** The runc that a containerd is run with. */
export function runcOf(part: ContainerdPart): "runc" | "netRunc" {
  return part === "netContainerd" ? "netRunc" : "runc";
}

export interface ContainerdOptions {
  /** In front of what runs in another machine's namespaces. */
  enter?: readonly string[];
  /** Where its CNI plugins and their configuration are. Default: nowhere, so that only pods on the host's network run. */
  network?: { plugins: string; configuration: string };
}

/** A containerd with a root, state and socket of its own in a directory, its CRI on, and one image: `imageName`. Needs root. */
export class Containerd {
  readonly socket: string;
  /** Where pods that name no cgroup of their own belong: below it, as below the kubelet's "/kubepods". */
  readonly podCgroup: string;
  readonly process: Child;
  readonly #directory: string;
  readonly #ctr: string;
  readonly #path: string;
  readonly #enter: readonly string[];

  private constructor(directory: string, part: ContainerdPart, enter: readonly string[]) {
    const binary = pathOf(part);
    this.#directory = directory;
    this.#enter = enter;
    this.#ctr = join(dirname(binary), "ctr");
    // Its shim and runc are found by PATH; those of the machine come after.
    this.#path = [dirname(binary), dirname(pathOf(runcOf(part))), process.env.PATH].join(":");
    this.socket = join(directory, "containerd.sock");
    this.podCgroup = `/${basename(dirname(directory))}-${basename(directory)}`;
    this.process = new Child({
      name: "containerd",
      command: binary,
      args: ["--config", join(directory, "containerd.toml")],
      logFile: join(directory, "containerd.log"),
      env: { PATH: this.#path },
      enter,
    });
  }

  static async start(
    directory: string,
    part: ContainerdPart,
    { enter = [], network }: ContainerdOptions = {},
  ): Promise<Containerd> {
    mkdirSync(directory, { recursive: true });
    const containerd = new Containerd(directory, part, enter);
    const { plugins, configuration } = network ?? {
      plugins: `${directory}/cni/bin`,
      configuration: `${directory}/cni/net.d`,
    };
    const text = configurationOf(part, { directory, socket: containerd.socket, plugins, configuration });
    writeFileSync(join(directory, "containerd.toml"), text);
    try {
      // In a machine of its own it has a kubelet that makes them.
      if (enter.length === 0) {
        makeCgroup(containerd.podCgroup);
        weighAsPods(containerd.podCgroup);
      }
      containerd.process.start();
      await containerd.process.until("serving", () => containerd.ctr("version"));
      const image = await writeImage(directory, pathOf("busybox"));
      // 2.x imports by its transfer service, which is configured for its default snapshotter alone.
      const local = isSecond(part) ? ["--local"] : [];
      await containerd.ctr("image", "import", ...local, "--snapshotter", "native", image);
    } catch (error) {
      await containerd.stop();
      throw error;
    }
    return containerd;
  }

  /** The command that is containerd's own client in the namespace of CRI. */
  client(...args: readonly string[]): { command: string; args: string[]; env: Record<string, string> } {
    const [command, ...rest] = [
      ...this.#enter,
      this.#ctr,
      "--address",
      this.socket,
      "--namespace",
      NAMESPACE,
    ];
    return { command: command!, args: [...rest, ...args], env: { PATH: this.#path } };
  }

  /** Runs `ctr`, containerd's client, in the CRI namespace. Returns its stdout. Rejects if it fails, or after 180 s. */
  async ctr(...words: readonly string[]): Promise<string> {
    const { command, args, env } = this.client(...words);
    const { stdout } = await execute(command, args, { env, timeout: DEADLINE_MS });
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
    for (const pid of shimsOf(this.socket)) killTree(pid);
    if (this.#enter.length === 0) await removeCgroup(this.podCgroup);
    for (const mount of mountsUnder(this.#directory))
      await execute("umount", ["--lazy", mount]).catch(() => {});
  }
}

function isSecond(part: ContainerdPart): boolean {
  return part === "newContainerd" || part === "netContainerd";
}

interface Places {
  directory: string;
  socket: string;
  plugins: string;
  configuration: string;
}

// CDI is enabled explicitly for 1.7, and by default in 2.x. It is not enabled for 1.6.
function configurationOf(part: ContainerdPart, places: Places): string {
  const { directory, socket, plugins, configuration } = places;
  const roots = `root = "${directory}/root"
state = "${directory}/state"
[grpc]
  address = "${socket}"
[ttrpc]
  address = "${socket}.ttrpc"
`;
  if (!isSecond(part)) {
    const cdi = part === "containerd" ? "\n  enable_cdi = true" : "";
    const cri = 'plugins."io.containerd.grpc.v1.cri"';
    return `version = 2
${roots}[${cri}]
  sandbox_image = "${imageName}"
  disable_tcp_service = true
  restrict_oom_score_adj = true${cdi}
[${cri}.containerd]
  snapshotter = "native"
[${cri}.cni]
  bin_dir = "${plugins}"
  conf_dir = "${configuration}"
`;
  }
  const runtime = "plugins.'io.containerd.cri.v1.runtime'";
  const images = "plugins.'io.containerd.cri.v1.images'";
  return `version = 3
${roots}[${images}]
  snapshotter = "native"
[${images}.pinned_images]
  sandbox = "${imageName}"
[${runtime}]
  restrict_oom_score_adj = true
[${runtime}.cni]
  bin_dirs = ["${plugins}"]
  conf_dir = "${configuration}"
[plugins.'io.containerd.grpc.v1.cri']
  disable_tcp_service = true
`;
}

/** Shims that a containerd was killed in the making of, and does not know. */
function shimsOf(socket: string): number[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const isShim = (pid: string) => {
    const words = readProc(pid, "cmdline").split("\0");
    return words[0]?.endsWith("containerd-shim-runc-v2") && words.includes(socket);
  };
  return pids.filter(isShim).map(Number);
}

function killTree(pid: number): void {
  const children = readProc(String(pid), `task/${pid}/children`).split(" ").filter(Boolean);
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended by itself.
  }
  for (const child of children) killTree(Number(child));
}

function readProc(pid: string, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return "";
  }
}
