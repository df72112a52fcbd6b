import { PodLinks } from "../../../parts/pod-links.tsx";
import { Table } from "../../../parts/table.tsx";
import { Age } from "../../../parts/time.tsx";
import { shown } from "../../../text.ts";
import type { DriverClaims } from "./device-state.ts";

const MOST = 200;

/** The ResourceClaims for a driver's devices, and their pods. */
export function ClaimTable({ claims: { claims } }: { claims: DriverClaims }) {
  return (
    <>
      <h3>Claims</h3>
      <Table
        label="Claims"
        columns={["Claim", "Pod", "State", "Devices"]}
        rows={claims.slice(0, MOST).map(({ namespace, name, uid, pods = [], state, updatedAt, devices }) => ({
          key: uid,
          cells: [
            `${shown(namespace)}/${shown(name)}`,
            pods.length > 0 ? <PodLinks names={pods} /> : "–",
            <>
              {state}{" "}
              <small>
                for <Age since={updatedAt} bare />
              </small>
            </>,
            devices.map((device) => shown(device)).join(", ") || "–",
          ],
        }))}
      />
      {claims.length > MOST && <p>and {claims.length - MOST} more</p>}
    </>
  );
}
