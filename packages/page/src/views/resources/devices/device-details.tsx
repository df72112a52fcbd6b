import { type Fact, Facts } from "../../../parts/facts.tsx";
import { PodLinks } from "../../../parts/pod-links.tsx";
import { Duration } from "../../../parts/time.tsx";
import { shown } from "../../../text.ts";
import type { Claim, Holders } from "./claim-text.ts";
import type { Device, GridDevice } from "./device-state.ts";
import { StateMark } from "./state-mark.tsx";

/** A device: its problem, the claims that hold it, its slices and attributes. */
export function DeviceDetails({ device, holders }: { device: GridDevice; holders: Holders }) {
  const { pool, name, state, device: published, problem } = device;
  const facts: Fact[] = [
    ...(problem === undefined ? [] : [["Not published", shown(problem, 1_000)] as const]),
    ...(holders.get(device.key) ?? []).map((claim) => ["Held by claim", <Holder claim={claim} />] as const),
    ...(published ? publishedFacts(published) : []),
  ];
  return (
    <section class="device-details" aria-label={shown(name)}>
      <h4>
        {shown(name)} <small>pool {shown(pool) || "–"}</small> <StateMark state={state} /> {state}
      </h4>
      <Facts facts={facts} exportedAs={`Device ${shown(name)}`} />
    </section>
  );
}

function Holder({ claim: { namespace, name, state, updatedAt, pods = [] } }: { claim: Claim }) {
  return (
    <>
      {shown(namespace)}/{shown(name)}, {state} for <Duration since={updatedAt} />
      {pods.length > 0 && (
        <>
          , for pod <PodLinks names={pods} />
        </>
      )}
    </>
  );
}

function publishedFacts({ unhealthy, taints, slices, attributes }: Device): Fact[] {
  return [
    ...(unhealthy === undefined
      ? []
      : [["Unhealthy", shown(unhealthy, 1_000) || "the driver gives no reason"] as const]),
    ...(taints.length > 0 ? [["Taints", taints.map((taint) => shown(taint)).join(", ")] as const] : []),
    ["ResourceSlices", slices.map((slice) => shown(slice)).join(", ") || "none yet: it is not published"],
    ...Object.entries(attributes).map(
      ([name, value]) => [shown(name), <code>{shown(value, 300)}</code>] as const,
    ),
  ];
}
