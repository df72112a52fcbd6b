import { useMemo } from "preact/hooks";
import { addressOf, goTo } from "../../../address.ts";
import { Problem, Waiting } from "../../../parts/notice.tsx";
import { shown } from "../../../text.ts";
import type { ViewProps } from "../../../view-props.ts";
import { unhealthyDevices } from "../topology/zone-text.ts";
import { NodeDetails } from "./details.tsx";
import { driverKey, driverNode } from "./driver-nodes.ts";
import { objectKey, objectNode } from "./object-nodes.ts";
import { Tree } from "./tree.tsx";
import { nodesByKey, openText, readOpen, type TreeNode } from "./tree-node.ts";
import { useChanges } from "./use-changes.ts";
import { useContents } from "./use-contents.ts";

const ROOT = "node";

/** What is published of the node as a tree: objects with resources and zones, drivers with pools and devices. */
export function TreeTab({ live, address: { query } }: ViewProps) {
  const { objects, devices: drivers = [], claims = [], node } = live;
  const asked = query.get("open");
  const open = useMemo(
    () =>
      asked === null
        ? new Set([ROOT, ...(objects ?? []).map((object) => objectKey(object, objects ?? []))])
        : readOpen(asked),
    [asked, objects?.map(({ object }) => object).join("\n")],
  );
  const openDrivers = drivers.map(({ name }) => name).filter((name) => open.has(driverKey(name)));
  const { value, problem } = useContents(live, openDrivers);
  const unhealthy = useMemo(() => unhealthyDevices(claims), [claims]);
  const root: TreeNode = useMemo(
    () => ({
      key: ROOT,
      label: node?.nodeName ?? "This node",
      value: "",
      children: [
        ...(objects ?? []).map((object) =>
          objectNode(object, value?.objects.get(object.object), {
            key: objectKey(object, objects ?? []),
            unhealthy,
          }),
        ),
        ...drivers.map((driver) => {
          const ofDriver = claims.find((each) => each.driver === driver.name);
          return driverNode(driver, ofDriver, value?.devices.get(driver.name));
        }),
      ],
    }),
    [node?.nodeName, objects, drivers, claims, unhealthy, value],
  );
  const nodes = useMemo(() => nodesByKey(root), [root]);
  const changes = useChanges(nodes);
  if (!objects) return <Waiting>Waiting for the agent's first answer.</Waiting>;
  if (problem && !value) return <Problem problem={problem}>What is published can't be shown.</Problem>;
  if (!value) return <Waiting>Reading what is published.</Waiting>;
  const chosen = query.get("item") ?? "";
  const show = (change: { item?: string; open?: ReadonlySet<string> }) => {
    const item = change.item ?? chosen;
    const opened = change.open ? openText(change.open) : (asked ?? undefined);
    goTo(addressOf("resources", ["tree"], { item: item || undefined, open: opened }), "replace");
  };
  const toggle = (key: string, isOpen: boolean) => {
    const next = new Set(open);
    if (isOpen) next.add(key);
    else next.delete(key);
    show({ open: next });
  };
  const found = nodes.get(chosen);
  return (
    <div class="tree-columns">
      <div class="card">
        {problem && <Problem problem={problem}>This is what was published before.</Problem>}
        <Tree {...{ root, open, chosen, changes }} onToggle={toggle} onChoose={(item) => show({ item })} />
        {root.children.length === 0 && <p>Nothing is published: no plugin has reported anything yet.</p>}
      </div>
      {found && <NodeDetails node={found} />}
      {chosen && !found && (
        <p class="card" role="status">
          {shown(chosen)} is not in what was read: it is not published, or its driver is collapsed in the
          tree.
        </p>
      )}
    </div>
  );
}
