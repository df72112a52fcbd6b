import { type ChildProcess, spawn } from "node:child_process";
import { type ErrorCode, NodekeeperError, systemClock } from "@nodekeeper/core/lib";
import { ErrorOutput, type Failure } from "./error-output.ts";

const MIB = 1024 * 1024;
// An exec plugin of the kubeconfig may wait for its user to log in.
const RUN_DEADLINE_MS = 120_000;
const FORWARD_DEADLINE_MS = 30_000;
// A string of V8 has less than 512 MiB.
const MAX_OUTPUT_BYTES = 511 * MIB;
// Of what port-forward prints before it is ready.
const MAX_READY_LENGTH = 4_000;

/** A port of this machine that leads to a pod's port, until it is disposed of. */
export interface Forward extends Disposable {
  /** "127.0.0.1:41235" */
  readonly address: string;
  /** False once kubectl has ended: the pod is deleted, or the API server closed the connection. */
  readonly isOpen: boolean;
}

/**
 * Runs kubectl, which knows contexts, exec credentials, OIDC and proxies of kubeconfigs. Every process that it starts ends
 * with `stop`.
 */
export class Kubectl {
  readonly #path: string;
  readonly #flags: readonly string[];
  readonly #maxOutputBytes: number;
  readonly #children = new Set<ChildProcess>();

  /**
   * @param flags that each call ends with, such as `--context=prod`
   * @param maxOutputBytes how much a call may print
   */
  constructor(path: string, flags: readonly string[], maxOutputBytes = MAX_OUTPUT_BYTES) {
    this.#path = path;
    this.#flags = flags;
    this.#maxOutputBytes = maxOutputBytes;
  }

  /**
   * Runs kubectl and returns its standard output. Prompts and warnings of kubectl reach standard error. Deadline: 2 min.
   * Throws its error with the code that it stands for: `notFound`, `forbidden`, `unauthenticated`, else `unavailable`;
   * `exhausted` where it prints too much.
   */
  async run(args: readonly string[]): Promise<string> {
    const child = this.#start(args);
    const errors = errorsOf(child);
    const chunks: Buffer[] = [];
    let size = 0;
    child.stdout!.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > this.#maxOutputBytes) child.kill("SIGKILL");
      else chunks.push(chunk);
    });
    try {
      const status = await this.#ended(child, RUN_DEADLINE_MS, `kubectl ${args[0]}`);
      if (size > this.#maxOutputBytes) {
        const message = `kubectl ${args[0]} ${args[1]}: its output is longer than ${this.#maxOutputBytes / MIB} MiB`;
        throw new NodekeeperError("exhausted", message);
      }
      if (status === 0) return Buffer.concat(chunks).toString("utf8");
      throw failureOf(args[0]!, errors.take(), status);
    } finally {
      errors.show();
    }
  }

  /** Forwards a free port of this machine to a port of a pod. Deadline: 30 s. Throws as `run`. */
  async forward(namespace: string, pod: string, port: number): Promise<Forward> {
    const args = ["port-forward", "--namespace", namespace, "--address=127.0.0.1", `pod/${pod}`, `:${port}`];
    const child = this.#start(args);
    const errors = errorsOf(child);
    const dispose = () => void child.kill();
    const listening = new Promise<string>((resolve) => {
      let text = "";
      child.stdout!.on("data", (chunk: Buffer) => {
        // Later it prints a line for each connection.
        if (text.length < MAX_READY_LENGTH) text += chunk.toString("utf8");
        const local = /^Forwarding from (127\.0\.0\.1:\d+) ->/m.exec(text)?.[1];
        if (local !== undefined) resolve(local);
      });
    });
    const ended = this.#ended(child, FORWARD_DEADLINE_MS, "kubectl port-forward", listening);
    try {
      const address = await Promise.race([listening, ended]);
      if (typeof address === "string" && address.includes(":")) {
        return {
          address,
          get isOpen() {
            return child.exitCode === null && child.signalCode === null;
          },
          [Symbol.dispose]: dispose,
        };
      }
      throw failureOf("port-forward", errors.take(), address);
    } finally {
      errors.show();
    }
  }

  /** Ends all processes that still run. */
  stop(): void {
    for (const child of this.#children) child.kill("SIGKILL");
  }

  // An exec plugin of the kubeconfig may ask its user something.
  #start(args: readonly string[]): ChildProcess {
    const child = spawn(this.#path, [...args, ...this.#flags], { stdio: ["inherit", "pipe", "pipe"] });
    this.#children.add(child);
    return child;
  }

  /** The exit status or signal. Throws `deadline` where the process neither ends nor reports `ready` in time. */
  async #ended(
    child: ChildProcess,
    deadlineMs: number,
    what: string,
    ready?: Promise<unknown>,
  ): Promise<number | string> {
    const { promise, resolve, reject } = Promise.withResolvers<number | string>();
    const timer = systemClock.after(deadlineMs, () => {
      child.kill("SIGKILL");
      reject(new NodekeeperError("deadline", `${what} has not answered within ${deadlineMs / 1000} s`));
    });
    child.once("error", (error) => {
      this.#children.delete(child);
      const message = `can't run kubectl (${error.message}): it is looked for in PATH, or at the path that the variable KUBECTL has`;
      reject(new NodekeeperError("notFound", message, { id: "NK1714", cause: error }));
    });
    child.once("close", (status, signal) => {
      this.#children.delete(child);
      resolve(status ?? signal ?? "");
    });
    ready?.then(() => timer.cancel());
    // A forward that fails after it was ready is noticed by the request that uses it.
    promise.catch(() => {});
    try {
      return await promise;
    } finally {
      timer.cancel();
    }
  }
}

function errorsOf(child: ChildProcess): ErrorOutput {
  const errors = new ErrorOutput((text) => process.stderr.write(text));
  child.stderr!.setEncoding("utf8").on("data", (text: string) => errors.add(text));
  return errors;
}

const codes: readonly (readonly [RegExp, ErrorCode])[] = [
  [/\(NotFound\)/, "notFound"],
  [/\(Forbidden\)|is forbidden/, "forbidden"],
  [/\(Unauthorized\)|must be logged in|getting credentials/, "unauthenticated"],
];

function failureOf(command: string, { errors, last }: Failure, status: number | string): NodekeeperError {
  const own = errors.map((line) => line.replace(/^error: /, "")).join("; ");
  const ending = last === "" ? `ended with ${status} and without a message` : `ended with ${status}: ${last}`;
  const text = own || ending;
  const [, code] = codes.find(([pattern]) => pattern.test(text)) ?? [];
  return new NodekeeperError(code ?? "unavailable", `kubectl ${command}: ${text}`, { id: "NK1715" });
}
