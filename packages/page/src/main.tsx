import "uplot/dist/uPlot.min.css";
import "./system.css";
import "./views/timeline/timeline.css";
import { render } from "preact";
import { Follower } from "./live.ts";
import { Page } from "./page.tsx";

const place = document.getElementById("page")!;
const draw = () => render(<Page follower={follower} />, place);
const follower = new Follower(draw);
draw();
