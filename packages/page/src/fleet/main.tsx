import "../system.css";
import "./fleet.css";
import { render } from "preact";
import { Fleet } from "./fleet.ts";
import { FleetPage } from "./fleet-page.tsx";
import { openSession } from "./session.ts";

const place = document.getElementById("page")!;

void start();

async function start(): Promise<void> {
  // The path of the page has the secret of the session; "/" has none yet.
  if (location.pathname === "/") {
    const problem = await openSession(location.hash);
    if (problem !== undefined) render(<NoSession problem={problem} />, place);
    return;
  }
  const draw = () => render(<FleetPage fleet={fleet} />, place);
  const fleet = new Fleet(draw);
  draw();
  fleet.start();
}

function NoSession({ problem }: { problem: string }) {
  return (
    <main>
      <h1>Nodekeeper</h1>
      <p class="lost" role="alert">
        This page can't be opened: {problem}. Its link works once. Open the page from the history of the
        browser that used it, or stop <code>kubectl nodekeeper page</code> and start it again.
      </p>
    </main>
  );
}
