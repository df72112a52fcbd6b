import { type ErrorCode, errorCodes } from "@nodekeeper/core/lib";
import { named, object, oneOf, optional, text } from "./schema.ts";

const codes = Object.keys(errorCodes) as ErrorCode[];

/** What every request that fails is answered. */
export const errorSchema = named(
  "Error",
  object({
    error: object({
      code: oneOf(codes),
      id: optional(text("Its id in docs/errors.md: cause and remedy.")),
      message: text(),
    }),
  }),
);
