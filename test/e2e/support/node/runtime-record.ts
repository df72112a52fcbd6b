import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { Child } from "../child.ts";
import type { ControlPlane } from "../control-plane.ts";
import type { ClusterNode } from "../node.ts";

/** What became of a container or sandbox. Times are wall milliseconds. */
export interface RuntimeLife {
  /** Of its first process. */
  pid: number;
  startedAt: number;
  exitedAt?: number;
  exitCode?: number;
  removedAt?: number;
}

/** What containerd itself says happened to its containers, by a subscription of its own client. */
export class RuntimeRecord {
  readonly #child: Child;
  readonly #file: string;
  readonly #lives = new Map<string, RuntimeLife>();
  // Bytes of the file that were read.
  #readTo = 0;

  private constructor(child: Child, file: string) {
    this.#child = child;
    this.#file = file;
  }

  static start({ directory }: ControlPlane, { containerd }: ClusterNode): RuntimeRecord {
    const logFile = join(directory, "containerd-events.log");
    const child = new Child({ name: "ctr events", ...containerd.client("events"), logFile });
    child.start();
    return new RuntimeRecord(child, logFile);
  }

  /** The containers and sandboxes that were started, by their IDs. */
  lives(): ReadonlyMap<string, RuntimeLife> {
    const lives = this.#lives;
    for (const { at, topic, body } of this.#events()) {
      if (topic === "/tasks/start") lives.set(body.container_id!, { pid: body.pid ?? 0, startedAt: at });
      const life = lives.get(body.container_id ?? body.id ?? "");
      if (!life) continue;
      // Another id is a command that was run in the container.
      if (topic === "/tasks/exit" && body.id === body.container_id) {
        life.exitedAt = at;
        life.exitCode = body.exit_status ?? 0;
      }
      if (topic === "/containers/delete") life.removedAt = at;
    }
    return lives;
  }

  stop(): Promise<void> {
    return this.#child.stop();
  }

  // "2026-11-22 02:22:46.1 +0000 UTC k8s.io /tasks/exit {...}"
  *#events() {
    for (const line of this.#newLines()) {
      const [, date, time, topic, body] = /^(\S+) (\S+) \S+ UTC k8s\.io (\S+) (\{.*\})$/.exec(line) ?? [];
      if (body === undefined) continue;
      const fields: { container_id?: string; id?: string; pid?: number; exit_status?: number } =
        JSON.parse(body);
      yield { at: Date.parse(`${date}T${time}Z`), topic, body: fields };
    }
  }

  // Those that are complete.
  #newLines(): string[] {
    const file = openSync(this.#file, "r");
    try {
      const bytes = Buffer.alloc(fstatSync(file).size - this.#readTo);
      readSync(file, bytes, 0, bytes.length, this.#readTo);
      const end = bytes.lastIndexOf("\n") + 1;
      this.#readTo += end;
      return bytes.toString("utf8", 0, end).split("\n");
    } finally {
      closeSync(file);
    }
  }
}
