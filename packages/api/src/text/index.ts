export * from "./byte-size.ts";
export * from "./compare-text.ts";
export * from "./duration.ts";
export * from "./plain-text.ts";
export * from "./plain-yaml.ts";
export * from "./quantity.ts";
export * from "./quote.ts";
