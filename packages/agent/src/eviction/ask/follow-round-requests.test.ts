import { childScope, FakeClock, NodekeeperError, silentLogger } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import type { RoundRequest } from "../round-pacing.ts";
import { followRoundRequests } from "./follow-round-requests.ts";

/** Follows a plugin whose WaitForRequest is `answer`. */
function follow(answer: (call: number) => Promise<string>) {
  const clock = new FakeClock();
  const requests: (RoundRequest & { at: number })[] = [];
  const scope = childScope();
  let calls = 0;
  const nothing = { pods: [], condition: null, gracePeriodSeconds: null };
  const following = followRoundRequests(
    {
      name: "p",
      scope,
      calls: {
        getEvictPods: async () => nothing,
        thresholdMet: () => Promise.reject(new Error("is not called")),
        getTopEvictionPods: async () => nothing,
        waitForRequest: () => answer(++calls),
        close: () => {},
      },
    },
    {
      pacing: { request: (request) => requests.push({ ...request, at: clock.monotonic() }) },
      clock,
      log: silentLogger,
    },
  );
  return { clock, requests, scope, following, calls: () => calls };
}

it("takes no more than one request a second from a plugin that requests without end", async () => {
  const { clock, requests, scope, following } = follow(async (call) => `request ${call}`);
  await clock.step(3_500);
  scope.abort(new Error("deregistered"));
  await following;
  expect(requests.map(({ at }) => at)).toEqual([0, 1_000, 2_000, 3_000]);
  expect(requests[0]).toMatchObject({ plugin: "p", reason: "request 1" });
});

it("asks a plugin that serves no requests once, as those written for katalyst", async () => {
  const { calls, following } = follow(() =>
    Promise.reject(new NodekeeperError("unsupported", "unknown service")),
  );
  await following;
  expect(calls()).toBe(1);
});

it("asks one that failed again after half a minute", async () => {
  const { clock, requests, scope, following } = follow(async (call) => {
    if (call === 1) throw new NodekeeperError("unavailable", "the connection ended");
    return "now";
  });
  await clock.step(29_999);
  expect(requests).toEqual([]);
  await clock.step(1);
  expect(requests).toHaveLength(1);
  scope.abort(new Error("deregistered"));
  await following;
});
