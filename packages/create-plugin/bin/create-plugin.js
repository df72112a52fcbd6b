#!/usr/bin/env node
// Written for old Nodes: they must get as far as the message.
const needed = 24;
if (Number(process.versions.node.split(".")[0]) >= needed) {
  await import("./main.js");
} else {
  console.error(
    `create-plugin needs Node ${needed} or later; this is Node ${process.versions.node} (${process.execPath})`,
  );
  process.exitCode = 1;
}
