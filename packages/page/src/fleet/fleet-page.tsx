import { useEffect } from "preact/hooks";
import { addressOf, goTo, useAddress } from "../address.ts";
import { shown } from "../text.ts";
import type { Fleet } from "./fleet.ts";
import { NodesView } from "./nodes-view.tsx";

const views = [{ name: "nodes", title: "Nodes", Component: NodesView }] as const;

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
          {views.map(({ name, title }) => (
            <a key={name} href={addressOf(name)} aria-current={name === view?.name ? "page" : undefined}>
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
