import { type ChildProcess, spawn } from "node:child_process";
import { KubectlFailed, KubectlMissing } from "@nodekeeper/api/errors";
import { type ErrorCode, NodekeeperError, systemClock } from "@nodekeeper/core/lib";
import { ErrorOutput, type Failure } from "./error-output.ts";

const MIB = 1024 * 1024;
// An exec credential plugin may wait for the user to log in.
const RUN_DEADLINE_MS = 120_000;
const FORWARD_DEADLINE_MS = 30_000;
// The maximum length of a V8 string is just under 512 MiB.
const MAX_OUTPUT_BYTES = 511 * MIB;
// Bounds the output of port-forward before it is ready.
const MAX_READY_LENGTH = 4_000;

/** A local port forwarded to a pod's port until it is disposed of. */
export interface Forward extends Disposable {
  /** "127.0.0.1:41235" */
  readonly address: string;
  /** False once kubectl has exited because the pod was deleted or the API server closed the connection. */
  readonly isOpen: boolean;
}

/**
 * Runs kubectl, which supports contexts, exec credential plugins, OIDC and proxies of kubeconfigs. `stop` terminates
 * all processes it started.
 */
export class Kubectl {
  readonly #path: string;
  readonly #flags: readonly string[];
  readonly #maxOutputBytes: number;
  readonly #children = new Set<ChildProcess>();

  /**
   * @param flags appended to each call, such as `--context=prod`
   * @param maxOutputBytes maximum output of a call
   */
  constructor(path: string, flags: readonly string[], maxOutputBytes = MAX_OUTPUT_BYTES) {
    this.#path = path;
    this.#flags = flags;
    this.#maxOutputBytes = maxOutputBytes;
  }

  /**
   * Runs kubectl and returns its standard output. Its prompts and warnings go to standard error. Deadline: 2 min.
   * Throws `notFound`, `forbidden` or `unauthenticated` if kubectl reports these, `notFound` if kubectl can't be
   * started, `deadline`, `exhausted` if the output is too long, and `unavailable` for all other errors.
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
        const message = `kubectl ${args[0]} ${args[1]}: its output exceeds ${this.#maxOutputBytes / MIB} MiB`;
        throw new NodekeeperError("exhausted", message);
      }
      if (status === 0) return Buffer.concat(chunks).toString("utf8");
      throw failureOf(args[0]!, errors.take(), status);
    } finally {
      errors.show();
    }
  }

  /** Forwards a free local port to a pod's port. Deadline: 30 s. Throws as `run`. */
  async forward(namespace: string, pod: string, port: number): Promise<Forward> {
    const args = ["port-forward", "--namespace", namespace, "--address=127.0.0.1", `pod/${pod}`, `:${port}`];
    const child = this.#start(args);
    const errors = errorsOf(child);
    const dispose = () => void child.kill();
    const listening = new Promise<string>((resolve) => {
      let text = "";
      child.stdout!.on("data", (chunk: Buffer) => {
        // Once ready, it prints a line for each connection.
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

  /** Terminates all running processes. */
  stop(): void {
    for (const child of this.#children) child.kill("SIGKILL");
  }

  // Standard input is inherited because an exec credential plugin may prompt the user.
  #start(args: readonly string[]): ChildProcess {
    const child = spawn(this.#path, [...args, ...this.#flags], { stdio: ["inherit", "pipe", "pipe"] });
    this.#children.add(child);
    return child;
  }

  /** Returns the exit status or signal. Throws `deadline` if the process neither exits nor resolves `ready` in time. */
  async #ended(
    child: ChildProcess,
    deadlineMs: number,
    what: string,
    ready?: Promise<unknown>,
  ): Promise<number | string> {
    const { promise, resolve, reject } = Promise.withResolvers<number | string>();
    const timer = systemClock.after(deadlineMs, () => {
      child.kill("SIGKILL");
      reject(new NodekeeperError("deadline", `${what} timed out after ${deadlineMs / 1000} s`));
    });
    child.once("error", (error) => {
      this.#children.delete(child);
      const message = `failed to run kubectl (${error.message}); it must be in PATH, or KUBECTL must be set to its path`;
      reject(new KubectlMissing({ problem: message }, { cause: error }));
    });
    child.once("close", (status, signal) => {
      this.#children.delete(child);
      resolve(status ?? signal ?? "");
    });
    ready?.then(() => timer.cancel());
    // If a forward fails after it was ready, the request that uses it fails.
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
  const ending = last === "" ? `exited with ${status} and no message` : `exited with ${status}: ${last}`;
  const text = own || ending;
  const [, code] = codes.find(([pattern]) => pattern.test(text)) ?? [];
  return new KubectlFailed({ command, problem: text }, { code: code ?? "unavailable" });
}
