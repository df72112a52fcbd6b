import type { RowName } from "./rows.ts";

const relist =
  "most of the CPU time of an unchanged list is garbage collection, because the heap is kept small: the same lists took twice as long before receive buffers were freed without V8's concurrent sweeper, which had no part in their decoding ([lifecycle](benchmarks.md#lifecycle), [memory](benchmarks.md#memory)).";

const claims =
  "the gRPC and HTTP calls of a claim alone, through the same clients and servers without anything in between, take 0.96 ms of CPU, of which an empty call of the kubelet takes 0.21 ms and the call to the driver 0.22 ms; the peer needs no call to a driver, since it is one. A quarter of the rest is garbage collection ([claims](benchmarks.md#claims)).";

const devices =
  "of 584 ms that the main thread is busy until all is published, garbage collection takes 33 % and reading the driver's message of 1.6 MB, which the peer does not receive, 12 %; the rest is mostly 79 requests through Node's HTTP client ([devices](benchmarks.md#devices)).";

const evictionRound =
  "the goal is a ratio that was measured on another machine, with a program that is not in this repository. Nodekeeper needs no more than it did then, 127 CPU ms and 326 ms on a quiet machine; the peer needs half as much as then, 2,199 CPU ms and 3,244 ms. It sends the pods twice to each plugin, and Nodekeeper three times. Nodekeeper's thread waits for the sockets in half of its round; 22 % of its CPU time is garbage collection and 20 % is spent outside of JavaScript, mostly in the kernel ([eviction](benchmarks.md#eviction)).";

const memory =
  "an empty process of Node has 44 MB, 9 MB of them anonymous (`agent-off-rss`), and the agent's use of Node's own modules and of V8's compiler adds 16 MB of pages of its executable, so that 78 MB leave 18 MB for all that is the agent's. It takes 24 MB of anonymous memory beyond the empty process, of which 13 MB are V8's heap (objects, closures, bytecode), 6 MB glibc's, and 4 MB buffers of messages. Without V8's baseline compiler, without modules that nothing uses, and with one collection after the start it is 4 MB less than before; without its optimizing compiler it would be 6 MB less again, but relists would take a third more CPU time ([memory](benchmarks.md#memory)).";

const start =
  "the agent is ready only after it has read all pods of the runtime; everything else is ready before. The start is bound by the CPU: the main thread waits for 3 % of it, so that nothing is gained by doing more at once. Of 0.55 s of CPU time for 110 pods, a process of Node without a program takes 40 ms, compiling 2.5 MB of code about 50 ms, collecting the garbage of a heap that is kept small 60 ms, and the calls for statuses 40 ms; most of the rest is code that runs once, which V8 interprets, while the peer's is compiled before it starts. A cache of compiled code would save 80 ms, for 1.9 MB of memory ([reporting](benchmarks.md#reporting)).";

const reportingStart =
  "an agent with every part off is ready hardly sooner (`agent-off-start`): the time is that of the frame, not of reporting. A process of Node without a program takes 50 ms, the one that replaces itself 65 ms, and the rest is loading the program, opening the state database and connecting to the API server ([reporting](benchmarks.md#reporting)).";

const idle =
  "a profile at rest has 4.0 ms of JavaScript a second, 0.8 ms of it the sampler of eviction, which reads the kernel's files four times a second, and 0.3 ms garbage collection; the rest is divided among fifty timers and calls of at most 0.1 ms each ([memory](benchmarks.md#memory)).";

const pacing =
  "a change after a quiet second is written at once (`reporting-quiet`); while changes keep coming, Nodekeeper writes them together every 200 ms, so that a change waits 100 ms in the median and 200 ms at most. The API server gets 5 requests a second of a node and not 25 (`reporting-busy-writes`), and Nodekeeper uses less than half of the peer's CPU time ([reporting](benchmarks.md#reporting)).";

/**
 * Why a row's figure is what it is, by its name: Markdown that follows "Why:", with figures of a profile and a link to the
 * section of docs/benchmarks.md that has it. Shown if the row misses its goal, or has none.
 */
export const explanations: Readonly<Partial<Record<RowName, string>>> = {
  "relist-110": relist,
  "relist-500": relist,
  "relist-2000": relist,
  "first-list":
    "a third of the CPU time of the first second is garbage collection of a small heap; 17 % is the 440 status calls, which V8 interprets before it compiles them. The peer's code is compiled before it starts ([lifecycle](benchmarks.md#lifecycle)).",
  "devices-published": `of 1,614 ms until the last write, the agent's main thread is idle for 1,030 ms: it waits for the API server and etcd on the same two processors, as the peer does, so that the ratio differs from run to run. ${capitalized(devices)}`,
  "devices-cpu": devices,
  "one-claim": claims,
  "30-claims": claims,
  "30-claims-cpu": claims,
  "eviction-round": evictionRound,
  "eviction-round-cpu": evictionRound,
  "reporting-busy": pacing,
  "reporting-busy-p99": pacing,
  "agent-katalyst-rss": memory,
  "agent-katalyst-anonymous": memory,
  "agent-katalyst-start": start,
  "agent-katalyst-idle": idle,
  "agent-nfd-rss": memory,
  "agent-nfd-anonymous": memory,
  "agent-nfd-start": start,
  "agent-nfd-idle": idle,
  "agent-reporting-start": reportingStart,
};

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
