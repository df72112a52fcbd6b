import { NodekeeperError } from "@nodekeeper/core/lib";

/** What is wrong with an expression, and where. */
export class ExpressionError extends NodekeeperError {
  /** Where in the text it begins, UTF-16 code units from 0. */
  readonly offset: number;

  constructor(message: string, offset: number, details: { cause?: unknown } = {}) {
    super("invalid", message, details);
    this.offset = offset;
  }
}
