import {
  RestoreClaimsRequest,
  RestoreClaimsResponse,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { NodekeeperError, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { DriverProblem } from "../devices/index.ts";
import type { ClaimRecords } from "./claim-records.ts";
import { ClaimRestoration } from "./claim-restoration.ts";
import { ClaimWorld, DRIVER, recordedDevice } from "./testing/claim-world.ts";

const never = new AbortController().signal;

let world: ClaimWorld;
let records: ClaimRecords;

beforeEach(() => {
  world = new ClaimWorld();
  records = world.records();
});
afterEach(() => world[Symbol.dispose]());

async function recorded(
  name: string,
  annotations: Record<string, string> = {},
  state: "prepared" | "preparing" = "prepared",
) {
  const details = { labels: { team: "a" }, annotations, requests: [] };
  const claim = world.claim(name, "gpu-0");
  const devices = [
    { ...recordedDevice("gpu-0"), configuration: [{ source: "FromClaim", parameters: "{}" }] },
  ];
  await records.save(DRIVER, claim, { state, devices, pods: [], cdi: "a file", details });
  return claim.uid;
}

/** A restoration whose driver answers in turn, and the requests that it got. */
function restorationWith(...answers: (() => string[] | Promise<string[]>)[]) {
  const requests: RestoreClaimsRequest[] = [];
  const bytes: number[] = [];
  const call = async (request: Uint8Array) => {
    requests.push(RestoreClaimsRequest.decode(request));
    bytes.push(request.length);
    const prepareAgain = await answers.shift()!();
    return RestoreClaimsResponse.encode(RestoreClaimsResponse.fromPartial({ prepareAgain })).finish();
  };
  let refused: readonly DriverProblem[] = [];
  const onRefused = (problems: readonly DriverProblem[]) => {
    refused = problems;
  };
  const restoration = new ClaimRestoration({ driver: DRIVER, records, call, onRefused, log: silentLogger });
  return { restoration, requests, bytes, refused: () => refused };
}

it("only prepared claims are recorded as lost, also for an agent that is killed then", async () => {
  const prepared = await recorded("a");
  const preparing = await recorded("b", {}, "preparing");
  const { restoration, requests } = restorationWith(() => [prepared, preparing, prepared]);
  await restoration.done(never);
  expect(requests[0]!.claims.map(({ claim, isPrepared }) => [claim!.uid, isPrepared])).toEqual([
    [prepared, true],
    [preparing, false],
  ]);
  for (const boot of ["boot-1", "boot-2"]) {
    const next = world.records(boot);
    expect(next.get(DRIVER, prepared)!.state).toBe("prepared");
    expect(next.isLost(next.get(DRIVER, prepared)!)).toBe(true);
    // Its containers may run: only a boot proves that they do not.
    expect(next.isOfOldBoot(next.get(DRIVER, prepared)!)).toBe(false);
    expect(next.hasFile(next.get(DRIVER, prepared)!)).toBe(false);
  }
  expect(records.isLost(records.get(DRIVER, preparing)!)).toBe(false);
});

it("a driver that does not implement the call confirms all, and is called once", async () => {
  const uid = await recorded("a");
  const { restoration, requests } = restorationWith(() => {
    throw new NodekeeperError("unsupported", "not implemented");
  });
  await restoration.done(never);
  await restoration.retry(never);
  expect(requests).toHaveLength(1);
  expect(records.isLost(records.get(DRIVER, uid)!)).toBe(false);
});

it("a driver without recorded claims is not called, and claims that it gets later are no reason to", async () => {
  const { restoration, requests } = restorationWith();
  await restoration.retry(never);
  await recorded("a");
  await restoration.done(never);
  await restoration.retry(never);
  expect(requests).toEqual([]);
});

it("calls wait for one that hangs, fail with its failure, and only a retry calls again", async () => {
  await recorded("a");
  const hanging = Promise.withResolvers<string[]>();
  const { restoration, requests } = restorationWith(
    () => hanging.promise,
    () => [],
  );
  const failure = `driver ${DRIVER}: it has not confirmed its prepared claims: it hangs`;
  const waiting = [restoration.retry(never), restoration.done(never), restoration.retry(never)];
  const ended = new AbortController();
  const aborted = restoration.done(ended.signal);
  ended.abort(new Error("the call has ended"));
  await expect(aborted).rejects.toThrow("the call has ended");
  hanging.reject(new NodekeeperError("deadline", "it hangs"));
  for (const each of waiting) await expect(each).rejects.toThrow(failure);
  await expect(restoration.done(never)).rejects.toThrow(failure);
  expect(requests).toHaveLength(1);
  await restoration.retry(never);
  await restoration.done(never);
  expect(requests).toHaveLength(2);
});

it("UIDs of other claims are refused, each with its claim; the others count", async () => {
  const uid = await recorded("a");
  const { restoration, refused } = restorationWith(() => ["1", uid, "2"]);
  await restoration.done(never);
  expect(refused()).toEqual(
    ["1", "2"].map((claimUid) => ({
      errorId: "NK1507",
      claimUid,
      message: `prepare_again of RestoreClaims: the driver was not sent a claim with UID "${claimUid}"`,
    })),
  );
  expect(records.isLost(records.get(DRIVER, uid)!)).toBe(true);
});

it("claims that exceed 4 MiB together come without annotations, requests and configuration", async () => {
  const note = { "example.com/note": "x".repeat(250_000) };
  for (let number = 0; number < 20; number++) await recorded(`claim-${number}`, note);
  const { restoration, requests, bytes } = restorationWith(() => []);
  await restoration.done(never);
  expect(bytes[0]).toBeLessThan(100_000);
  expect(requests[0]!.claims).toHaveLength(20);
  for (const { claim, devices } of requests[0]!.claims) {
    expect(claim).toMatchObject({ labels: { team: "a" }, annotations: {}, requests: [] });
    expect(devices).toMatchObject([{ device: "gpu-0", configuration: [] }]);
  }
});
