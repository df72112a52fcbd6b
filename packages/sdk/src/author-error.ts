import { errorIdOf, messageOf, type NodekeeperError, toNodekeeperError } from "@nodekeeper/core/lib";

/**
 * Where an author called the SDK. Node prints the source line of an uncaught error's first frame, which would be a line of
 * the bundle: errors that leave the SDK have the author's frames instead.
 */
export class CallSite {
  readonly #frames: string;

  /** @param called the public function or constructor; its caller's frames are kept */
  constructor(called: (...args: never[]) => unknown) {
    const holder: { stack?: string } = {};
    Error.captureStackTrace(holder, called);
    this.#frames = (holder.stack ?? "").replace(/^[^\n]*/, "");
  }

  /** The error itself, or one with it as the cause, with its id and message above the author's frames. */
  error(error: unknown): NodekeeperError {
    const found = toNodekeeperError(error);
    const id = errorIdOf(found);
    // A stack that is set, unlike one that is captured, has no position whose line Node would print.
    found.stack = `${found.name}: ${id ? `${id}: ` : ""}${messageOf(found)}${this.#frames}`;
    return found;
  }
}
