import { errorIdOf, messageOf, type NodekeeperError, toNodekeeperError } from "@nodekeeper/core/lib";

/**
 * Where an author called the SDK. For an uncaught error, Node prints the source line of the first frame, which would be
 * a line of the bundle. Errors that leave the SDK have the author's frames instead.
 */
export class CallSite {
  readonly #frames: string;

  /** @param called the public function or constructor; its caller's frames are kept */
  constructor(called: (...args: never[]) => unknown) {
    const holder: { stack?: string } = {};
    Error.captureStackTrace(holder, called);
    this.#frames = (holder.stack ?? "").replace(/^[^\n]*/, "");
  }

  /** Returns the error, or one with it as the cause, with its ID and message above the author's frames. */
  error(error: unknown): NodekeeperError {
    const found = toNodekeeperError(error);
    const id = errorIdOf(found);
    // Unlike a captured stack, an assigned one has no position whose line Node would print.
    found.stack = `${found.name}: ${id ? `${id}: ` : ""}${messageOf(found)}${this.#frames}`;
    return found;
  }
}
