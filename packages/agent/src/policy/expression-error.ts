import { NodekeeperError } from "@nodekeeper/core/lib";

/** An error in an expression, with its offset. */
export class ExpressionError extends NodekeeperError {
  /** Offset of the error in the text, in UTF-16 code units from 0. */
  readonly offset: number;

  constructor(message: string, offset: number, details: { cause?: unknown } = {}) {
    super("invalid", message, details);
    this.offset = offset;
  }
}
