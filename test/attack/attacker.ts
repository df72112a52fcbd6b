// An attacker, in a process of its own: node test/attack/attacker.ts NAME API_SERVER_URL. Prints a line when it is ready:
// the URL of the API server that the agent is to use. Attacks the target of the first line of input, until it is killed.
import { once } from "node:events";
import { attacks } from "./attacks/index.ts";
import { startProxy } from "./proxy.ts";

const [name = "", apiServer = ""] = process.argv.slice(2);
const attack = attacks.find((known) => known.name === name);
if (!attack) throw new Error(`no attack ${name}`);
const proxy = attack.server && (await startProxy(apiServer, attack.server));
console.log(proxy?.url ?? apiServer);
const [target] = await once(process.stdin.setEncoding("utf8"), "data");
proxy?.attack();
await attack.run?.(JSON.parse(target));
// An attack that has ended leaves its connections and sockets open.
process.stdin.resume();
