import { useMemo, useRef, useState } from "preact/hooks";
import { useAnswer } from "../../../parts/use-answer.ts";
import { shown } from "../../../text.ts";
import { deviceText } from "./claim-text.ts";
import { DeviceDetails } from "./device-details.tsx";
import {
  countStates,
  type DeviceState,
  type Driver,
  type DriverClaims,
  type GridDevice,
  gridDevices,
} from "./device-state.ts";
import { moveTo } from "./move.ts";
import { StateMark } from "./state-mark.tsx";

const PAGE = 1_000;
/** With more devices, cells have their mark only. */
const MOST_NAMED = 120;

/** The devices of a driver, each a cell with its state's mark and colour; one that is chosen has its details below. */
export function DeviceGrid({ driver, claims }: { driver: Driver; claims: DriverClaims | undefined }) {
  const [pages, setPages] = useState<readonly string[]>([]);
  const [only, setOnly] = useState<DeviceState>();
  const [chosen, setChosen] = useState("");
  const query = { driver: driver.name, limit: PAGE, continue: pages.at(-1) };
  const { value, problem } = useAnswer("devices/list", query, versionOf(driver, claims));
  const all = useMemo(
    () => (value ? gridDevices(pages.length === 0 ? driver : { problems: [] }, value.items) : []),
    [value, driver, pages],
  );
  if (!value && problem)
    return <p role="alert">The devices can't be shown: {shown(problem.message, 500)}.</p>;
  if (!value) return <p>Loading the devices.</p>;
  if (all.length === 0) return <p>The driver reports no device. Its devices appear once it does.</p>;
  const devices = only ? all.filter(({ state }) => state === only) : all;
  const details = all.find(({ key }) => key === chosen);
  return (
    <>
      <h3>Devices</h3>
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
      <Cells {...{ devices, chosen, claims, onChoose: (key) => setChosen(key === chosen ? "" : key) }} />
      {details && <DeviceDetails device={details} claims={claims?.claims ?? []} />}
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

interface CellsProps {
  devices: readonly GridDevice[];
  /** Key of the chosen one; empty where none is. */
  chosen: string;
  claims: DriverClaims | undefined;
  onChoose: (key: string) => void;
}

// One cell is in the order of the Tab key; the arrows lead to the others.
function Cells({ devices, chosen, claims, onChoose }: CellsProps) {
  const grid = useRef<HTMLUListElement>(null);
  const [active, setActive] = useState("");
  const at = Math.max(
    devices.findIndex(({ key }) => key === active),
    0,
  );
  const isDense = devices.length > MOST_NAMED;
  const onKeyDown = (event: KeyboardEvent) => {
    const cells = [...(grid.current?.querySelectorAll<HTMLElement>("button") ?? [])];
    const top = cells[0]?.offsetTop;
    const columns = cells.findIndex(({ offsetTop }) => offsetTop !== top);
    const to = moveTo(event.key, at, devices.length, columns < 0 ? devices.length : columns);
    if (to === undefined) return;
    event.preventDefault();
    setActive(devices[to]!.key);
    cells[to]?.focus();
  };
  return (
    <ul ref={grid} class={isDense ? "devices dense" : "devices"} onKeyDown={onKeyDown}>
      {devices.map((device, place) => {
        const text = `${shown(device.name)}: ${deviceText(device, claims?.claims ?? [])}`;
        return (
          <li key={device.key}>
            <button
              type="button"
              class={device.state}
              tabIndex={place === at ? 0 : -1}
              aria-label={text}
              aria-pressed={device.key === chosen}
              title={text}
              onFocus={() => setActive(device.key)}
              onClick={() => onChoose(device.key)}
            >
              <StateMark state={device.state} />
              {!isDense && <span class="name">{shown(device.name)}</span>}
            </button>
          </li>
        );
      })}
    </ul>
  );
}

// What changes with the devices: health and claims are of the kubelet's plugin, the rest is in the driver's messages.
function versionOf({ messageAt, devices, state }: Driver, claims: DriverClaims | undefined): string {
  const held = claims?.claims.map(({ uid, state, updatedAt }) => `${uid} ${state} ${updatedAt}`).join();
  const unhealthy = claims?.unhealthy
    .map(({ pool, device, message }) => `${pool}/${device} ${message}`)
    .join();
  return [messageAt, devices, state, held, unhealthy].join("\n");
}
