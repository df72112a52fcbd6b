import { addressOf } from "../../address.ts";
import { shown } from "../../text.ts";
import type { ViewProps } from "../../view-props.ts";
import { DevicesTab } from "./devices/tab.tsx";
import { ObjectsTab } from "./objects/tab.tsx";
import { TopologyTab } from "./topology/tab.tsx";
import { TreeTab } from "./tree/tab.tsx";

const tabs = [
  { name: "tree", title: "Tree", Tab: TreeTab },
  { name: "objects", title: "Objects", Tab: ObjectsTab },
  { name: "topology", title: "Topology", Tab: TopologyTab },
  { name: "devices", title: "Devices", Tab: DevicesTab },
] as const;

/**
 * The data that the agent publishes, in tabs: a tree, objects and their fields, topology zones, and devices.
 * `#/resources/<tab>` selects a tab.
 */
export function ResourcesView({ live, address }: ViewProps) {
  const wanted = address.path[0] ?? tabs[0].name;
  const tab = tabs.find(({ name }) => name === wanted);
  return (
    <div class="resources-view stack">
      <nav class="tabs" aria-label="Resources">
        {tabs.map(({ name, title }) => (
          <a
            key={name}
            href={addressOf("resources", [name])}
            aria-current={name === wanted ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      {tab ? (
        <tab.Tab key={tab.name} live={live} address={address} />
      ) : (
        <p>There is no tab {shown(wanted, 60)}.</p>
      )}
    </div>
  );
}
