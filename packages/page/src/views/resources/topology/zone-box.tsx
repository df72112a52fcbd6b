import { addressOf } from "../../../address.ts";
import { Facts } from "../../../parts/facts.tsx";
import { amountText } from "../../../parts/kube-quantity.ts";
import { Name } from "../../../parts/name.tsx";
import { shown } from "../../../text.ts";
import { holdsText, isDevice, shortName, typeText } from "./zone-text.ts";
import type { Holder, Zone, ZoneResource } from "./zones.ts";

interface ZoneProps {
  zone: Zone;
  /** Problems of devices, by zone name. */
  unhealthy: ReadonlyMap<string, string>;
  /** "<namespace>/<name>" of the pod that is hovered or focused. */
  highlit: string;
  onHighlight: (pod: string) => void;
}

/** A zone as a box inside its parent's box; a nested list for screen readers. */
export function ZoneBox({ zone, ...shared }: ZoneProps) {
  const { type, name, resources, attributes, holders, children } = zone;
  const devices = children.filter(isDevice);
  const parts = children.filter((child) => !isDevice(child));
  const isOwn = isDevice(zone);
  const broken = isOwn ? shared.unhealthy.get(name) : undefined;
  const state = broken !== undefined ? "broken" : holders.length > 0 ? "held" : "free";
  return (
    <li class={`zone ${isOwn ? `device ${state}` : "part"}`}>
      <p class="title" title={shown(name)}>
        <b>
          {typeText(shown(type, 60))}{" "}
          {type === "DRADevice" ? (
            <a href={addressOf("resources", ["devices"], { device: name })}>{shown(shortName(name), 60)}</a>
          ) : (
            shown(shortName(name), 60)
          )}
        </b>
        {isOwn && <small>{holders.length > 0 ? "● held" : "○ free"}</small>}
        {broken !== undefined && <small class="bad">✕ unhealthy{broken && `: ${shown(broken, 500)}`}</small>}
      </p>
      {resources.length > 0 && !isOwn && (
        <ul class="amounts">
          {resources.map((resource) => (
            <Amount key={resource.name} resource={resource} />
          ))}
        </ul>
      )}
      {holders.length > 0 && (
        <ul class="holders" aria-label="Held by">
          {holders.map((holder) => (
            <HolderItem key={holder.uid + holder.name} {...{ holder, ...shared, isBrief: isOwn }} />
          ))}
        </ul>
      )}
      {attributes.length > 0 && (
        <details>
          <summary>{attributes.length === 1 ? "1 attribute" : `${attributes.length} attributes`}</summary>
          <Facts facts={attributes.map(({ name, value }) => [shown(name), shown(value, 500)])} />
        </details>
      )}
      {parts.length > 0 && <Boxes zones={parts} {...shared} />}
      {devices.length > 0 && <Boxes zones={devices} {...shared} />}
    </li>
  );
}

function Boxes({ zones, ...rest }: Omit<ZoneProps, "zone"> & { zones: readonly Zone[] }) {
  return (
    <ul class="zones">
      {zones.map((zone) => (
        <ZoneBox key={zone.key} zone={zone} {...rest} />
      ))}
    </ul>
  );
}

function Amount({ resource: { name, capacity, allocatable, held } }: { resource: ZoneResource }) {
  const of = allocatable ?? capacity;
  const text = (amount: number) => amountText(name, amount);
  return (
    <li class="amount">
      <span class="what">{shown(name, 120)}</span>{" "}
      {of === undefined ? "–" : held > 0 ? `${text(held)} of ${text(of)} held` : text(of)}
      {capacity !== undefined && allocatable !== undefined && capacity !== allocatable && (
        <small> (capacity {text(capacity)})</small>
      )}
      {of !== undefined && of > 0 && held > 0 && (
        <span class="bar" aria-hidden="true">
          <span style={{ width: `${Math.min(held / of, 1) * 100}%` }} />
        </span>
      )}
    </li>
  );
}

interface HolderProps extends Pick<ZoneProps, "highlit" | "onHighlight"> {
  holder: Holder;
  /** Without amounts, for devices: the amount is always one. */
  isBrief: boolean;
}

function HolderItem({ holder, highlit, onHighlight, isBrief }: HolderProps) {
  const pod = `${holder.namespace}/${holder.name}`;
  const enter = () => onHighlight(pod);
  const leave = () => onHighlight("");
  return (
    <li class={pod === highlit ? "holder same" : "holder"}>
      <a
        href={addressOf("pod", [holder.namespace, holder.name])}
        onPointerEnter={enter}
        onPointerLeave={leave}
        onFocus={enter}
        onBlur={leave}
      >
        <Name text={pod} />
      </a>
      {!isBrief && <small>{holdsText(holder)}</small>}
    </li>
  );
}
