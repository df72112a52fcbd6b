import { errorCodes } from "@nodekeeper/api/errors";
import { expect, it } from "vitest";
import { isNonRetryable, isTransient, retryPolicies } from "./retry.ts";

it.each(Object.entries(retryPolicies))("policy %s starts above 0 and grows", (_, { baseMs, maxMs }) => {
  expect(baseMs).toBeGreaterThan(0);
  expect(maxMs).toBeGreaterThan(baseMs);
});

it("no code of errors is both transient and non-retryable", () => {
  const codes = Object.keys(errorCodes) as (keyof typeof errorCodes)[];
  expect(codes.filter((code) => isTransient(code) && isNonRetryable(code))).toEqual([]);
  expect(codes.filter(isTransient).length).toBeGreaterThan(0);
});
