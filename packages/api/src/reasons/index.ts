// Why pods are not evicted: values of records, which decisions and their schemas share.
export * from "./refusals.ts";
export * from "./unserved.ts";
