import type { ComponentChildren } from "preact";
import { PodLinks } from "../../../parts/pod-links.tsx";
import { age, shown } from "../../../text.ts";
import { type Claim, holdersOf } from "./claim-text.ts";
import type { GridDevice } from "./device-state.ts";
import { StateMark } from "./state-mark.tsx";

/** One device: what is wrong with it, the claims that hold it, its slices and attributes. */
export function DeviceDetails({ device, claims }: { device: GridDevice; claims: readonly Claim[] }) {
  const { pool, name, state, device: published, problem } = device;
  const holders = holdersOf(device, claims);
  const now = Date.now();
  return (
    <section class="device-details" aria-label={shown(name)}>
      <h4>
        {shown(name)} <small>pool {shown(pool) || "–"}</small>{" "}
        <span class={state}>
          <StateMark state={state} /> {state}
        </span>
      </h4>
      <dl class="facts">
        {problem !== undefined && <Fact what="Not published">{shown(problem, 1_000)}</Fact>}
        {published?.unhealthy !== undefined && (
          <Fact what="Unhealthy">{shown(published.unhealthy, 1_000) || "the driver gives no reason"}</Fact>
        )}
        {published && published.taints.length > 0 && (
          <Fact what="Taints">{published.taints.map((taint) => shown(taint)).join(", ")}</Fact>
        )}
        {holders.map(({ namespace, name: claim, uid, state: of, updatedAt, pods = [] }) => (
          <Fact key={uid} what="Held by claim">
            {shown(namespace)}/{shown(claim)}, {of} for {age(now - updatedAt)}
            {pods.length > 0 && (
              <>
                , for pod <PodLinks names={pods} />
              </>
            )}
          </Fact>
        ))}
        {published && (
          <Fact what="ResourceSlices">
            {published.slices.map((slice) => shown(slice)).join(", ") || "none yet: it is not published"}
          </Fact>
        )}
        {Object.entries(published?.attributes ?? {}).map(([attribute, value]) => (
          <Fact key={attribute} what={shown(attribute)}>
            <code>{shown(value, 300)}</code>
          </Fact>
        ))}
      </dl>
    </section>
  );
}

function Fact({ what, children }: { what: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{what}</dt>
      <dd>{children}</dd>
    </div>
  );
}
