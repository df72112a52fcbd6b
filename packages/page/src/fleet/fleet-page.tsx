import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { addressOf, goTo, useAddress } from "../address.ts";
import { shown } from "../text.ts";
import { CompareView } from "./compare-view.tsx";
import { ExplainView } from "./explain-view.tsx";
import type { Fleet } from "./fleet.ts";
import type { FleetViewProps } from "./fleet-view-props.ts";
import { NodesView } from "./nodes-view.tsx";
import { PodsView } from "./pods-view.tsx";

/** A view, below the tab of its name, or of `tab`. */
interface FleetView {
  name: string;
  title: string;
  Component: ComponentType<FleetViewProps>;
  tab?: string;
}

const views: readonly [FleetView, ...FleetView[]] = [
  { name: "nodes", title: "Nodes", Component: NodesView },
  { name: "pods", title: "Pods", Component: PodsView },
  { name: "compare", title: "Compare", Component: CompareView },
  { name: "explain", title: "Explanation", Component: ExplainView, tab: "pods" },
];

/** The frame of the views of all nodes. */
export function FleetPage({ fleet }: { fleet: Fleet }) {
  const address = useAddress();
  const view = views.find(({ name }) => name === address.view);
  useEffect(() => {
    if (address.view === "") goTo(addressOf(views[0].name), "replace");
  }, [address.view]);
  useEffect(() => {
    document.title = [view?.title, "Nodekeeper"].filter(Boolean).join(" · ");
  }, [view]);
  const { lost, problem } = fleet.state;
  return (
    <>
      <header class="frame">
        <p class="node">Nodekeeper</p>
        <nav class="tabs" aria-label="Views">
          {views
            .filter(({ tab }) => tab === undefined)
            .map(({ name, title }) => (
              <a
                key={name}
                href={addressOf(name)}
                aria-current={name === (view?.tab ?? view?.name) ? "page" : undefined}
              >
                {title}
              </a>
            ))}
        </nav>
      </header>
      <div role="status" class="frame-state">
        {lost !== undefined && (
          <p class="lost">
            <b>What is shown is old: {shown(lost, 300)}.</b> If you stopped it, start it again and open its
            new link.
          </p>
        )}
        {lost === undefined && problem !== undefined && (
          <p class="lost">
            <b>The nodes can't be listed:</b> {shown(problem, 600)}
          </p>
        )}
      </div>
      <main id="main" tabIndex={-1}>
        {view && (
          <>
            <div class="title">
              <h1>{view.title}</h1>
            </div>
            <view.Component fleet={fleet} address={address} />
          </>
        )}
        {!view && address.view !== "" && <p>There is no view {shown(address.view, 60)}.</p>}
      </main>
    </>
  );
}
