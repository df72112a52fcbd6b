import { useCallback, useMemo, useRef, useState } from "preact/hooks";
import { addressOf, goTo } from "../../../address.ts";
import { useExport } from "../../../export/exports.ts";
import { Problem, Waiting } from "../../../parts/notice.tsx";
import { useAnswer } from "../../../parts/use-answer.ts";
import { shown } from "../../../text.ts";
import { holdersOf, rowOfDevice } from "./claim-text.ts";
import { DeviceCells } from "./device-cells.tsx";
import { DeviceDetails } from "./device-details.tsx";
import {
  countStates,
  type DeviceState,
  type Driver,
  type DriverClaims,
  gridDevices,
} from "./device-state.ts";
import { StateMark } from "./state-mark.tsx";

const PAGE = 1_000;

interface DeviceGridProps {
  driver: Driver;
  claims: DriverClaims | undefined;
  /** "<pool>/<device>" of the device selected by the address. Empty if none is selected. */
  chosen: string;
  /** Whether the address selects only this driver. */
  isAlone: boolean;
}

/**
 * The devices of a driver, each a cell with the mark and color of its state. The details of a selected device are
 * below.
 */
export function DeviceGrid({ driver, claims, chosen, isAlone }: DeviceGridProps) {
  const [pages, setPages] = useState<readonly string[]>([]);
  const [only, setOnly] = useState<DeviceState>();
  const known = useRef(chosen);
  known.current = chosen;
  const onChoose = useCallback(
    (key: string) => {
      const of = isAlone ? driver.name : undefined;
      const device = key === known.current ? undefined : `${driver.name}/${key}`;
      goTo(addressOf("resources", ["devices"], { driver: of, device }), "replace");
    },
    [driver.name, isAlone],
  );
  const query = { driver: driver.name, limit: PAGE, continue: pages.at(-1) };
  const { value, problem } = useAnswer("devices/list", query, versionOf(driver, claims));
  const all = useMemo(
    () => (value ? gridDevices(pages.length === 0 ? driver : { problems: [] }, value.items, claims) : []),
    [value, driver, claims, pages],
  );
  const holders = useMemo(() => holdersOf(claims?.claims ?? []), [claims]);
  const devices = useMemo(() => (only ? all.filter(({ state }) => state === only) : all), [all, only]);
  useExport(value && `Devices of ${shown(driver.name)}`, () =>
    devices.map((device) => rowOfDevice(device, holders)),
  );
  if (!value && problem) return <Problem problem={problem}>The devices can't be shown.</Problem>;
  if (!value) return <Waiting>Loading the devices.</Waiting>;
  if (all.length === 0) return <p>The driver reports no device. Its devices appear once it does.</p>;
  const details = all.find(({ key }) => key === chosen);
  return (
    <>
      <h3>Devices</h3>
      {problem && <Problem problem={problem}>These are the devices as they were before.</Problem>}
      <p class="filters">
        {countStates(all).map(({ state, count }) => (
          <button
            key={state}
            type="button"
            class={state}
            aria-pressed={only === state}
            onClick={() => setOnly(only === state ? undefined : state)}
          >
            <StateMark state={state} /> {count} {state}
          </button>
        ))}
      </p>
      <DeviceCells {...{ devices, chosen, holders, onChoose }} />
      {details && <DeviceDetails device={details} holders={holders} />}
      {(pages.length > 0 || value.continue) && (
        <p>
          <button type="button" disabled={pages.length === 0} onClick={() => setPages(pages.slice(0, -1))}>
            Previous {PAGE}
          </button>{" "}
          <button
            type="button"
            disabled={!value.continue}
            onClick={() => value.continue && setPages([...pages, value.continue])}
          >
            Next {PAGE}
          </button>{" "}
          Page {pages.length + 1} of {Math.max(Math.ceil(driver.reported / PAGE), pages.length + 1)}
        </p>
      )}
    </>
  );
}

// Changes with the devices: health and claims come from the kubelet plugin, the rest from the driver's messages.
function versionOf({ messageAt, devices, state }: Driver, claims: DriverClaims | undefined): string {
  const held = claims?.claims.map(({ uid, state, updatedAt }) => `${uid} ${state} ${updatedAt}`).join();
  const unhealthy = claims?.unhealthy
    .map(({ pool, device, message }) => `${pool}/${device} ${message}`)
    .join();
  return [messageAt, devices, state, held, unhealthy].join("\n");
}
