import { describe, expect, it } from "vitest";
import { callbackCycles } from "../scripts/callbacks.ts";

const at = "packages/agent/src/lifecycle";
const calledBack = ["packages/agent/src/lifecycle: B calls back A"];
const b = "export class B {\n  start() {}\n}";

function cyclesIn(a: string, others: Readonly<Record<string, string>> = { [`${at}/b.ts`]: b }): string[] {
  return callbackCycles(new Map(Object.entries({ [`${at}/a.ts`]: a, ...others })));
}

describe("a class that calls another one and is called back by it is found", () => {
  it.each([
    ["through a closure", "onHint: (pod) => this.#read(pod)"],
    ["through a closure of statements", "onHint: (pod) => {\n      if (pod) this.read(pod);\n    }"],
    ["through itself", "generator: this"],
  ])("%s", (_, option) => {
    const a = `class A {
  readonly #b: B;
  constructor() {
    this.#b = new B({ clock, ${option} });
  }
  run() {
    this.#b.start();
  }
  #read() {}
}`;
    expect(cyclesIn(a)).toEqual(calledBack);
  });

  it("where both are constructed elsewhere, also in a module above", () => {
    const above = "packages/agent/src/assembly/lifecycle.ts";
    const wiring = "const b = new B({ onHint: () => a.read() });\nconst a = new A({ b });";
    const a =
      "interface Options {\n  b: B;\n}\nclass A {\n  read() {}\n  run() { this.#options.b.start(); }\n}";
    expect(cyclesIn(a, { [`${at}/b.ts`]: b, [above]: wiring })).toEqual(calledBack);
  });

  it.each(["B", "readonly B", 'Pick<B, "start">'])("through a field of type %s", (type) => {
    const wiring = "const b = new B({ onHint: () => a.read() });\nconst a = new A({ b });";
    const a = `interface Options {\n  b: ${type};\n}\nclass A {\n  read() {}\n  run() { this.#options.b.start(); }\n}`;
    expect(cyclesIn(a, { [`${at}/b.ts`]: `${b}\n${wiring}` })).toEqual(calledBack);
  });

  it("over a third class", () => {
    const a =
      "class A {\n  #c = new C();\n  #b = new B({ on: () => this.x() });\n  run() { this.#c.go(); }\n}";
    const c = "class C {\n  readonly #b: B;\n  go() { this.#b.start(); }\n}";
    expect(cyclesIn(a, { [`${at}/b.ts`]: b, [`${at}/c.ts`]: c })).toEqual(calledBack);
  });
});

describe("no cycle", () => {
  it.each([
    ["calls in one direction", "#b = new B({ clock });\n  run() { this.#b.start(); }"],
    ["a callback from a class that is not called", "#b = new B({ on: () => this.x() });"],
    [
      "a closure that reads a field",
      "#b = new B({ state: () => this.#state });\n  run() { this.#b.start(); }",
    ],
    ["a closure of its own", "#b = new B();\n  run() { this.#b.start(); later(() => this.x()); }"],
    [
      "calls in comments and texts",
      '#b = new B({ text: "=> this.x()" }); // => this.x()\n  run() { this.#b.start(); }',
    ],
  ])("%s", (_, body) => expect(cyclesIn(`class A {\n  ${body}\n}`)).toEqual([]));

  it("between modules", () => {
    const a = "class A {\n  #b = new B({ on: () => this.x() });\n  run() { this.#b.start(); }\n}";
    expect(cyclesIn(a, { "packages/agent/src/runtime/b.ts": b })).toEqual([]);
  });

  it("with a mechanism that several classes construct", () => {
    const a = "class A {\n  #b = new B({ on: () => this.x() });\n  run() { this.#b.start(); }\n}";
    const c = "class C {\n  #b = new B({ on: () => this.x() });\n}";
    expect(cyclesIn(a, { [`${at}/b.ts`]: b, [`${at}/c.ts`]: c })).toEqual([]);
  });
});
