import { addressOf } from "../../../address.ts";
import { type Fact, Facts } from "../../../parts/facts.tsx";
import { Age } from "../../../parts/time.tsx";
import { shown } from "../../../text.ts";
import { ClaimTable } from "./claim-table.tsx";
import { DeviceGrid } from "./device-grid.tsx";
import type { Driver, DriverClaims } from "./device-state.ts";
import { kubeletText, streamText } from "./driver-text.ts";
import { DriverTrouble } from "./driver-trouble.tsx";
import { SliceTable } from "./slice-table.tsx";

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
        {streamText(driver)}, for <Age since={since} bare />
      </>,
    ],
    ["Last message", messageAt === undefined ? "none yet" : <Age since={messageAt} />],
    ["Devices", `${reported} reported, ${devices} published, ${quarantined} quarantined`],
    ["Kubelet", kubeletText(claims)],
    ["Protocol", shown(protocol, 120)],
  ];
  return (
    <section class="driver" aria-label={shown(name)}>
      <h2>
        {shown(name)}{" "}
        <small>
          <a href={addressOf("plugins", [name])}>its plugin</a>
        </small>
      </h2>
      <Facts facts={facts} />
      <DriverTrouble driver={driver} claims={claims} />
      <DeviceGrid {...{ driver, claims, chosen, isAlone }} />
      {claims && claims.claims.length > 0 && <ClaimTable claims={claims} />}
      <SliceTable driver={driver} />
    </section>
  );
}
