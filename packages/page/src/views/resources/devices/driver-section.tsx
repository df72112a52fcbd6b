import { kubeletTexts } from "@nodekeeper/api/wording";
import { addressOf } from "../../../address.ts";
import { type Fact, Facts } from "../../../parts/facts.tsx";
import { Name } from "../../../parts/name.tsx";
import { PodLinks } from "../../../parts/pod-links.tsx";
import { Table } from "../../../parts/table.tsx";
import { Age, Duration } from "../../../parts/time.tsx";
import { shown } from "../../../text.ts";
import { DeviceGrid } from "./device-grid.tsx";
import type { Driver, DriverClaims } from "./device-state.ts";
import { DriverTrouble } from "./driver-trouble.tsx";

// In a table of claims or ResourceSlices.
const MOST_ROWS = 200;

interface DriverSectionProps {
  driver: Driver;
  claims: DriverClaims | undefined;
  /** "<pool>/<device>" of the device selected by the address. Empty if none is selected. */
  chosen: string;
  /** Whether the address selects only this driver. */
  isAlone: boolean;
}

/** A driver: its state with the agent and the kubelet, its devices, claims and ResourceSlices. */
export function DriverSection({ driver, claims, chosen, isAlone }: DriverSectionProps) {
  const { name, since, messageAt, reported, devices, quarantined, protocol } = driver;
  const facts: Fact[] = [
    [
      "Stream",
      <>
        {streamText(driver)}, for <Duration since={since} />
      </>,
    ],
    ["Last message", messageAt === undefined ? "none yet" : <Age since={messageAt} />],
    ["Devices", `${reported} reported, ${devices} published, ${quarantined} quarantined`],
    ["Kubelet", kubeletText(claims)],
    ["Protocol", shown(protocol, 120)],
  ];
  return (
    <section class="card driver" aria-label={shown(name)}>
      <h2>
        {shown(name)}{" "}
        <small>
          <a href={addressOf("plugins", [name])}>its plugin</a>
        </small>
      </h2>
      <Facts facts={facts} exportedAs={`Driver ${shown(name)}`} />
      <DriverTrouble driver={driver} claims={claims} />
      <DeviceGrid {...{ driver, claims, chosen, isAlone }} />
      {claims && claims.claims.length > 0 && <ClaimTable driver={name} claims={claims} />}
      <SliceTable driver={driver} />
    </section>
  );
}

const streams: Record<Driver["state"], string> = {
  waiting: "waiting for the first message",
  streaming: "streaming",
  unresponsive: "the driver does not answer",
  ended: "ended by the driver",
  failing: "failing",
  none: "the driver does not stream devices",
};

/** Returns the state of a driver's device stream in words. */
function streamText({ isRegistered, state }: Pick<Driver, "isRegistered" | "state">): string {
  return isRegistered ? streams[state] : "disconnected";
}

/** Returns the registration state with the kubelet for a driver. If the agent prepares no claims, names the setting. */
function kubeletText(claims: DriverClaims | undefined): string {
  if (!claims) return "the agent prepares no claims (devices.kubeletPlugin.enabled)";
  const text = kubeletTexts[claims.kubelet];
  return claims.reason ? `${text}: ${shown(claims.reason, 500)}` : text;
}

/** The ResourceClaims for a driver's devices, and their pods. */
function ClaimTable({ driver, claims: { claims } }: { driver: string; claims: DriverClaims }) {
  return (
    <>
      <h3>Claims</h3>
      <Table
        label={`Claims of ${shown(driver)}`}
        columns={["Claim", "Pod", "State", "Devices"]}
        rows={claims
          .slice(0, MOST_ROWS)
          .map(({ namespace, name, uid, pods = [], state, updatedAt, devices }) => ({
            key: uid,
            cells: [
              <Name text={`${namespace}/${name}`} />,
              pods.length > 0 ? <PodLinks names={pods} /> : "–",
              <>
                {state}{" "}
                <small>
                  for <Duration since={updatedAt} />
                </small>
              </>,
              devices.map((device) => shown(device)).join(", ") || "–",
            ],
          }))}
      />
      {claims.length > MOST_ROWS && <p>and {claims.length - MOST_ROWS} more</p>}
    </>
  );
}

/** A driver's ResourceSlices by pool, as in the API server. */
function SliceTable({ driver: { name, pools, slices } }: { driver: Driver }) {
  if (slices.length === 0)
    return <p>No ResourceSlice is published: it is written once the driver has reported a valid device.</p>;
  const keyOf = ({ pool, name }: Driver["slices"][number]) => `${pool}\n${name}`;
  const byPool = [...slices].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  return (
    <details>
      <summary>
        {slices.length === 1 ? "1 ResourceSlice" : `${slices.length} ResourceSlices`} in{" "}
        {pools.length === 1 ? "1 pool" : `${pools.length} pools`}
      </summary>
      <Table
        label={`ResourceSlices of ${shown(name)}`}
        columns={["ResourceSlice", "Pool", "Generation", "Devices"]}
        rows={byPool.slice(0, MOST_ROWS).map(({ name: slice, pool, generation, devices }) => ({
          key: slice,
          cells: [shown(slice), shown(pool) || "–", generation, devices],
        }))}
      />
      {byPool.length > MOST_ROWS && <p>and {byPool.length - MOST_ROWS} more</p>}
    </details>
  );
}
