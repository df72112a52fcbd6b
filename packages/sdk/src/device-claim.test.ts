import { PrepareDevicesRequest } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { expect, it } from "vitest";
import { claimToPrepare, claimToUnprepare } from "./device-claim.ts";

const claimWith = (parameters: string) =>
  PrepareDevicesRequest.fromPartial({ devices: [{ configuration: [{ source: "FromClaim", parameters }] }] });

it("a claim whose configuration is not JSON is refused, and can be unprepared", () => {
  const request = claimWith("{");
  expect(() => claimToPrepare(request)).toThrow(/the opaque parameters of the claim are no JSON/);
  expect(claimToUnprepare(request).devices[0]?.configuration).toEqual([
    { source: "FromClaim", parameters: undefined, parametersText: "{" },
  ]);
});

it("other configuration is parsed for both", () => {
  const request = claimWith('{"mode":"a"}');
  for (const claim of [claimToPrepare(request), claimToUnprepare(request)])
    expect(claim.devices[0]?.configuration[0]?.parameters).toEqual({ mode: "a" });
});
