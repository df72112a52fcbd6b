import { PodLinks } from "../../../parts/pod-links.tsx";
import { age, at, shown } from "../../../text.ts";
import type { DriverClaims } from "./device-state.ts";

const MOST = 200;

/** The ResourceClaims on a driver's devices, and the pods they are for. */
export function ClaimTable({ claims: { claims } }: { claims: DriverClaims }) {
  const now = Date.now();
  return (
    <>
      <h3>Claims</h3>
      <div class="wide">
        <table>
          <thead>
            <tr>
              <th scope="col">Claim</th>
              <th scope="col">Pod</th>
              <th scope="col">State</th>
              <th scope="col">Devices</th>
            </tr>
          </thead>
          <tbody>
            {claims.slice(0, MOST).map(({ namespace, name, uid, pods = [], state, updatedAt, devices }) => (
              <tr key={uid}>
                <th scope="row">
                  {shown(namespace)}/{shown(name)}
                </th>
                <td>{pods.length > 0 ? <PodLinks names={pods} /> : "–"}</td>
                <td>
                  {state} <small title={at(updatedAt)}>for {age(now - updatedAt)}</small>
                </td>
                <td>{devices.map((device) => shown(device)).join(", ") || "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {claims.length > MOST && <p>and {claims.length - MOST} more</p>}
    </>
  );
}
