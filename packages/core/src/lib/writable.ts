/** The type as its owner sees it: others read the same members. */
export type Writable<T> = { -readonly [K in keyof T]: T[K] };
